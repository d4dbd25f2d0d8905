# SPDX-License-Identifier: Apache-2.0
"""opscope: a profiler for deep-learning programs.

    import opscope
    with opscope.profile("logs") as prof:       # traces what is in the block
        train()
    print(prof.overview())

    p = opscope.open("logs")                    # any profile, of any framework
    p.ops(top=20)
    p.hints().to_pandas()

`opscope record -- python train.py` does the same for a script as it is."""

import importlib as _importlib
import os as _os

from ._python import explained as _explained, refuse as _refuse

_refuse()
try:
    from . import _opscope
except ImportError as e:
    raise _explained(e)

from ._opscope import Error, scope  # noqa: E402
from .reading import Profile, Result, analyses, open  # noqa: E402
from .recording import (counter, epoch, instant, profile, scalar,  # noqa: E402
                        start, step, step_end, stop)

__version__ = _opscope.__version__
__all__ = ["Error", "Profile", "Result", "analyses", "open", "scope", "start",
           "stop", "step", "step_end", "epoch", "scalar", "counter", "instant",
           "profile", "get_include", "get_library"]

_MODULES = ("keras", "torch", "jax", "lightning", "transformers", "compat",
            "notebook")
_FROM = {"Profiler": "compat.tf_profiler",
         "ProfileOptionBuilder": "compat.tf_profiler"}


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _FROM:
        return getattr(_importlib.import_module("." + _FROM[name], __name__),
                       name)
    raise AttributeError("opscope has no '%s'" % name)


def __dir__():
    return sorted(__all__ + list(_MODULES) + list(_FROM))


def get_include():
    """The folder with opscope/record.h, for custom ops in C."""
    here = _os.path.dirname(_os.path.realpath(__file__))
    for folder in (_os.path.join(here, "include"),
                   _os.path.join(here, "..", "..", "include")):
        if _os.path.exists(_os.path.join(folder, "opscope", "record.h")):
            return _os.path.normpath(folder)
    raise Error("the headers are not beside the package")


def get_library():
    """The recorder's library, to link a custom op with: what it records then
    lies in the same profile."""
    here = _os.path.dirname(_os.path.abspath(__file__))
    return _os.path.join(here, "libopscope-record.so.0")


def load_ipython_extension(shell):
    """%load_ext opscope"""
    from .notebook import load_ipython_extension as load
    load(shell)
