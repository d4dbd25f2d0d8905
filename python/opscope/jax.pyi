# SPDX-License-Identifier: Apache-2.0
from typing import Optional

from . import recording
from .recording import _Path, _Steps

__all__ = ["trace"]

class trace(recording.profile):
    """Traces a block, or a function that it decorates, by jax.profiler."""
    def __init__(self, logdir: _Path = "logs", *,
                 steps: _Steps = None, memory: bool = False,
                 shapes: bool = False, stacks: bool = False,
                 run: Optional[str] = None) -> None: ...
