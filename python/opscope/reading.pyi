# SPDX-License-Identifier: Apache-2.0
from os import PathLike
from types import TracebackType
from typing import (Any, Iterator, NamedTuple, NoReturn, Optional, Sequence,
                    Type, Union, overload)

from . import _opscope
from ._analyses import Analyses

__all__ = ["open", "analyses", "Profile", "Result", "Column"]

_Path = Union[str, bytes, "PathLike[str]", "PathLike[bytes]"]

class Column(NamedTuple):
    name: str
    type: str
    unit: Optional[str]
    help: Optional[str]

def analyses() -> list[dict[str, Any]]:
    """The analyses: name, help, what a row is, and the options of each."""

def open(path: Union[_Path, Sequence[_Path]], *more: _Path,
         run: Optional[str] = None, threads: int = 0) -> Profile:
    """Opens a profile: a file of any known format, a run's folder, a log
    folder (its newest run, or `run`), or several of them."""

class Profile(Analyses, _opscope.Profile):
    """A profile that was opened. Every analysis is a method of it."""
    paths: list[Union[str, bytes]]
    def __init__(self, paths: Sequence[_Path], run: Optional[str] = None,
                 threads: int = 0) -> None: ...
    def run(self, analysis: str,  # type: ignore[override]
            **options: Any) -> Result:
        """Runs an analysis by its name."""
    def sql(self, query: str) -> NoReturn:
        """SQL over profiles is not in this version."""
    def __enter__(self) -> Profile: ...
    def __exit__(self, kind: Optional[Type[BaseException]] = ...,
                 value: Optional[BaseException] = ...,
                 where: Optional[TracebackType] = ...) -> bool: ...

class Result:
    """A table: rows are tuples with names, in the order in which they are
    shown. r[0] is a row, r["host_us"] a column, for row in r goes over rows.
    What was not recorded is None."""
    analysis: str
    columns: list[Column]
    def __init__(self, table: _opscope.Table, analysis: str) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, what: int) -> Any: ...
    @overload
    def __getitem__(self, what: str) -> list[Any]: ...
    @overload
    def __getitem__(self, what: slice) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def rows(self) -> list[Any]:
        """All rows, a list of named tuples."""
    def dicts(self) -> list[dict[str, Any]]:
        """All rows, a list of dicts."""
    def ps(self, name: str) -> list[Optional[int]]:
        """A column of times in picoseconds, exactly."""
    @property
    def total_rows(self) -> int:
        """How many rows there are without top."""
    @property
    def remarks(self) -> list[str]:
        """Sentences below the table."""
    @property
    def missing(self) -> list[dict[str, Optional[str]]]:
        """What was not recorded, why, and how to record it."""
    @property
    def notes(self) -> list[dict[str, Any]]:
        """What was skipped, mended or inferred, with counts."""
    @property
    def sources(self) -> list[dict[str, Any]]:
        """The files that it was made from."""
    def json(self) -> str:
        """As `--format json` prints it."""
    def csv(self) -> str:
        """As `--format csv` prints it."""
    def text(self) -> str:
        """As a terminal of 120 columns shows it."""
    def __arrow_c_stream__(self,
                           requested_schema: object = None) -> object: ...
    def to_arrow(self) -> Any:
        """A pyarrow.Table, without a copy of its own."""
    def to_numpy(self) -> dict[str, Any]:
        """A dict of arrays by column: numbers that were not recorded are nan
        (integers with such ones become floats), texts are objects."""
    def to_pandas(self) -> Any:
        """A pandas.DataFrame; integers that may lack a value are Int64."""
