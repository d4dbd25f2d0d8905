# SPDX-License-Identifier: Apache-2.0
from os import PathLike
from types import TracebackType
from typing import (Any, Callable, Optional, Sequence, SupportsIndex, Type,
                    TypeVar, Union)

from ._analyses import Analyses
from ._opscope import counter, epoch, instant, scalar
from .reading import Profile, Result

__all__ = ["profile", "start", "stop", "step", "step_end", "epoch", "scalar",
           "counter", "instant"]

_Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]
_Steps = Union[None, int, str, range, Sequence[int]]
_F = TypeVar("_F", bound=Callable[..., Any])
_P = TypeVar("_P", bound=profile)

def start(logdir: _Path = "logs", *,
          steps: _Steps = None, memory: bool = False,
          shapes: bool = False, stacks: bool = False,
          run: Optional[str] = None) -> Optional[str]:
    """Starts recording into logdir/plugins/profile/<run>.

    Frameworks that are imported, now or later, are traced: from now on until
    stop(), or, with steps ("100..102", "1,10,100", "every 500"), in these
    steps. memory, shapes and stacks ask their tracers for more."""

def stop() -> Optional[str]:
    """Ends the recording that start() began. Returns the run's folder, or
    None if there was none."""

def is_on(folder: Optional[str]) -> bool:
    """Is this the recording that goes on?"""

def step(number: SupportsIndex) -> None:
    """Says that step `number` begins; the one before it ends."""

def step_end() -> None:
    """Says that the step is over, before something that belongs to none."""

class profile(Analyses):
    """Records a block, or a function that it decorates:

        with opscope.profile("logs", steps="100..102") as prof:
            train()
        print(prof.overview())

    After the block, prof.folder is the run's folder, and every analysis is a
    method."""
    logdir: _Path
    options: dict[str, Any]
    folder: Optional[str]
    problems: list[str]
    def __init__(self, logdir: _Path = "logs", *,
                 steps: _Steps = None, memory: bool = False,
                 shapes: bool = False, stacks: bool = False,
                 run: Optional[str] = None) -> None: ...
    def __enter__(self: _P) -> _P: ...
    def __exit__(self, kind: Optional[Type[BaseException]] = ...,
                 value: Optional[BaseException] = ...,
                 where: Optional[TracebackType] = ...) -> bool: ...
    def start(self: _P) -> _P: ...
    def stop(self) -> Optional[str]: ...
    def step(self, number: Optional[SupportsIndex] = None) -> None:
        """Says that a step begins: the number given, or the next one."""
    def __call__(self, function: _F) -> _F: ...
    def open(self) -> Profile:
        """What was recorded, as opscope.open() gives it. In a program under
        `opscope record` that is the whole run so far."""
    def run(self, analysis: str, **options: Any) -> Result:
        """Runs an analysis by its name on what was recorded."""
    def __getattr__(self, name: str) -> Any: ...
