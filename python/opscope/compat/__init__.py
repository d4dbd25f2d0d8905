# SPDX-License-Identifier: Apache-2.0
"""Calls that others' tutorials show, over opscope's results. tf_profiler has
those of TensorFlow."""

import importlib as _importlib

__all__ = ["tf_profiler"]


def __getattr__(name):
    if name in __all__:
        return _importlib.import_module("." + name, __name__)
    raise AttributeError("opscope.compat has no '%s'" % name)


def __dir__():
    return list(__all__)
