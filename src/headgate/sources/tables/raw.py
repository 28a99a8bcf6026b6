"""A table before its columns are understood: where its rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from headgate.sources.protocol import Reject

#: The values of one row by the number of its column, and where it stands: "line 7".
RawRow = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RawTable:
    """The rows of one table of a file, which can be read again and again."""

    name: str
    columns: Sequence[str]
    #: Whether every value is text.
    is_untyped: bool
    rows: Callable[[], AbstractContextManager[Iterator[RawRow | Reject]]]
    #: The columns of its primary key, if the file declares one.
    key: Sequence[str] = ()
