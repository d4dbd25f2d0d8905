# SPDX-License-Identifier: Apache-2.0
from typing import Any

from . import (jax as jax, keras as keras, lightning as lightning,
               notebook as notebook, torch as torch,
               transformers as transformers)
from ._opscope import Error as Error, scope as scope
from .reading import (Profile as Profile, Result as Result,
                      analyses as analyses, open as open)
from .recording import (counter as counter, epoch as epoch,
                        instant as instant, profile as profile,
                        scalar as scalar, start as start, step as step,
                        step_end as step_end, stop as stop)

__version__: str
__all__ = ["Error", "Profile", "Result", "analyses", "open", "scope", "start",
           "stop", "step", "step_end", "epoch", "scalar", "counter", "instant",
           "profile", "get_include", "get_library"]

def get_include() -> str:
    """The folder with opscope/record.h, for custom ops in C."""

def get_library() -> str:
    """The recorder's library, to link a custom op with: what it records then
    lies in the same profile."""

def load_ipython_extension(shell: Any) -> None:
    """%load_ext opscope"""

def __getattr__(name: str) -> Any: ...
