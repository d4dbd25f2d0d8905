# SPDX-License-Identifier: Apache-2.0
from os import PathLike
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, Type, TypeVar, Union

from .reading import Profile, Result

__all__ = ["profile", "schedule"]

_Path = Union[str, "PathLike[str]"]
_F = TypeVar("_F", bound=Callable[..., Any])
_P = TypeVar("_P", bound=profile)

def schedule(*args: Any, **kwargs: Any) -> Callable[[int], Any]:
    """torch.profiler.schedule."""

class profile:
    """Profiles a block, or a function that it decorates, by torch.profiler."""
    logdir: str
    folder: Optional[str]
    paths: list[str]
    def __init__(self, *, activities: Optional[Iterable[Any]] = None,
                 schedule: Optional[Callable[[int], Any]] = None,
                 on_trace_ready: Optional[Callable[[Any], Any]] = None,
                 record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, logdir: _Path = "logs",
                 run: Optional[str] = None, **more: Any) -> None: ...
    def __enter__(self: _P) -> _P: ...
    def __exit__(self, kind: Optional[Type[BaseException]] = ...,
                 value: Optional[BaseException] = ...,
                 where: Optional[TracebackType] = ...) -> bool: ...
    def __call__(self, function: _F) -> _F: ...
    # what torch's profiler has: key_averages(), events(), ...
    def __getattr__(self, name: str) -> Any: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def step(self) -> None: ...
    def export_chrome_trace(self, path: _Path) -> None:
        """Writes the last trace to path, .json or .json.gz, as often as one
        likes."""
    def open(self) -> Profile:
        """What was recorded, as opscope.open() gives it."""
    def overview(self) -> Result: ...
    def hints(self) -> Result: ...
