"""Rows as the checks read them: a record's own columns, then those of its row in the typed table.

One statement reads both. Its rows are turned into columns once, because most checks compare whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headgate.store.relational.catalog import StreamTable
from headgate.store.relational.database import Dialect

#: What a statement selects before the typed values, in the order of the fields below.
_OWN = [
    "r.rid",
    "r.sid",
    "r.record_id",
    "r.seq",
    "r.sort",
    "r.ts",
    "r.deleted",
    "r.long",
    "r.digest",
    "r.body",
    "t.rid",
]


class StoredRow(NamedTuple):
    """One record, as it lies in the file."""

    rid: int
    sid: int
    record_id: str
    seq: int
    sort: Any
    ts: int | None
    deleted: int
    long: bytes | None
    digest: bytes
    body: bytes | None
    #: The row number in the typed table; None where there is no such row.
    typed_rid: int | None
    #: The values of the typed row, in the order of the stream's columns.
    typed: tuple[Any, ...]

    @classmethod
    def of(cls, row: Sequence[Any]) -> StoredRow:
        """Name the values of a selected row."""
        return cls._make([*row[: len(_OWN)], tuple(row[len(_OWN) :])])


class StoredColumns(NamedTuple):
    """The same of many records, a column at a time."""

    rids: Sequence[int]
    sids: Sequence[int]
    record_ids: Sequence[str]
    seqs: Sequence[int]
    sorts: Sequence[Any]
    times: Sequence[int | None]
    deleted: Sequence[int]
    longs: Sequence[bytes | None]
    digests: Sequence[bytes]
    bodies: Sequence[bytes | None]
    typed_rids: Sequence[int | None]
    typed: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, rows: Iterable[Sequence[Any]]) -> StoredColumns:
        """Turn selected rows into columns."""
        columns = list(zip(*rows, strict=True)) or [()] * len(_OWN)
        return cls._make([*columns[: len(_OWN)], columns[len(_OWN) :]])


def select_rows(dialect: Dialect, stream: StreamTable, condition: str) -> str:
    """Build the statement; the condition is the name of the part that says which rows."""
    typed = [dialect.typed_column(column) for column in stream.columns.values()]
    select = dialect.sql["stored_rows"].format(
        columns=", ".join([*_OWN, *typed]), table=dialect.typed_table(stream.stid)
    )
    return f"{select} {dialect.sql[condition]}"
