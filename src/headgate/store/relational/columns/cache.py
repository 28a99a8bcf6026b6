"""Columns in memory: one numpy array for each shelf and field, brought up to date by change numbers.

Every column notes the change number that its values are true as of. Inside a read transaction the shelf's number
shows whether a column lacks changes, and only the records that changed since are read. A column that is not in
memory starts from the blocks in the file, which hold a recent state. One cache belongs to one thread.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from headgate.errors import IntegrityBroken
from headgate.store.relational.catalog import Shelf, StreamTable
from headgate.store.relational.columns.blocks import BLOCK_ROWS, TextNumbers, unpack
from headgate.store.relational.columns.specs import Array, ColumnSpec, OwnColumn, column_specs, quarter_hours
from headgate.store.relational.database import Database, Dialect
from headgate.store.relational.row_numbers import RID_SHIFT

_N_MASK = (1 << RID_SHIFT) - 1
#: What the columns of one cache may take together; eight columns of four million records.
LIMIT_BYTES = 256 * 1024 * 1024


@dataclass(slots=True)
class _LoadedColumn:
    """One column of one shelf in memory."""

    #: Longer than the shelf, so that it seldom has to grow.
    values: Array
    #: The change number that the values are true as of. Some may be newer, none is older.
    seq: int


class ShelfColumns:
    """The columns of one shelf that are in memory."""

    __slots__ = ("loaded", "rows", "sid", "stid")

    def __init__(self, sid: int, stid: int) -> None:
        self.sid = sid
        self.stid = stid
        self.rows = 0
        self.loaded: dict[int, _LoadedColumn] = {}

    def column(self, number: int) -> Array:
        """Give a column's values, one for each record number that was ever used."""
        return self.loaded[number].values[: self.rows]

    def size_bytes(self) -> int:
        """Count the bytes of the columns."""
        return sum(column.values.nbytes for column in self.loaded.values())


class _ShelfHead(NamedTuple):
    """What the shelf table holds of one shelf."""

    sid: int
    #: The shelf's last change.
    seq: int
    next_n: int
    #: The change number that the blocks are true as of.
    col_seq: int
    #: Of the whole store: tombstones up to this change have been removed.
    pruned_seq: int

    def can_update(self, seq: int) -> bool:
        """Say whether a column of this change number can be brought up to date.

        One that is ahead of this transaction cannot go back. For one from before `pruned_seq` nothing shows which
        records were deleted, because their tombstones are gone.
        """
        return min(self.seq, self.pruned_seq) <= seq <= self.seq


class _Stale(NamedTuple):
    """A column in memory that lacks the changes after its number."""

    sid: int
    number: int
    column: _LoadedColumn


@dataclass(frozen=True, slots=True)
class _Source:
    """What columns are read from: one read transaction, one stream."""

    database: Database
    stream: StreamTable
    specs: Mapping[int, ColumnSpec]


class ColumnCache:
    """Columns of any shelves, loaded and brought up to date when a read needs them.

    When they take too much memory, those of the shelves that were used least recently leave.
    """

    def __init__(self) -> None:
        self._shelves: dict[int, ShelfColumns] = {}
        self._texts: dict[tuple[int, int], TextNumbers] = {}

    def texts(self, stream: StreamTable, number: int) -> TextNumbers:
        """Give the numbers that stand for the texts of a column; all shelves of a stream share them."""
        return self._texts.setdefault((stream.stid, number), TextNumbers())

    def get(
        self, database: Database, stream: StreamTable, shelves: Sequence[Shelf], numbers: Iterable[int]
    ) -> list[ShelfColumns]:
        """Give shelves with these columns, and LIVE and TIME, as of the read transaction of the database."""
        source = _Source(database, stream, column_specs(stream))
        wanted = tuple(dict.fromkeys((OwnColumn.LIVE, OwnColumn.TIME, *numbers)))
        heads = _heads(database, shelves)
        stale = [one for head in heads.values() for one in self._prepare(source, head, wanted)]
        for changed, starts in _by_columns(stale).items():
            self._read_changes(source, changed, starts)
        # Only now: a read that was stopped half way leaves columns that are read again.
        for one in stale:
            one.column.seq = heads[one.sid].seq
        return self._used([*heads])

    def _used(self, sids: Sequence[int]) -> list[ShelfColumns]:
        """Give the shelves of a read, and drop others while all together take too much."""
        for sid in sids:
            # The last in the order is the one that was used last.
            self._shelves[sid] = self._shelves.pop(sid)
        total = sum(shelf.size_bytes() for shelf in self._shelves.values())
        for sid in [*self._shelves][: -len(sids)]:
            if total <= LIMIT_BYTES:
                break
            total -= self._shelves.pop(sid).size_bytes()
        streams = {shelf.stid for shelf in self._shelves.values()}
        for key in [key for key in self._texts if key[0] not in streams]:
            del self._texts[key]
        return [self._shelves[sid] for sid in sids]

    def _prepare(self, source: _Source, head: _ShelfHead, wanted: Sequence[int]) -> list[_Stale]:
        """Load what is missing of a shelf; returns the columns that lack changes."""
        shelf = self._shelves.get(head.sid)
        if shelf is None:
            shelf = self._shelves[head.sid] = ShelfColumns(head.sid, source.stream.stid)
        shelf.rows = head.next_n - 1
        stale: list[_Stale] = []
        for number in wanted:
            column = shelf.loaded.get(number)
            if column is None or not head.can_update(column.seq):
                column = shelf.loaded[number] = self._load(source, head, shelf, number)
            if len(column.values) < shelf.rows:
                column.values = _grown(column.values, source.specs[number], shelf.rows)
            if column.seq < head.seq:
                stale.append(_Stale(head.sid, number, column))
        return stale

    def _load(self, source: _Source, head: _ShelfHead, shelf: ShelfColumns, number: int) -> _LoadedColumn:
        if number == OwnColumn.QUARTER_HOUR:
            times = shelf.loaded[OwnColumn.TIME]
            return _LoadedColumn(quarter_hours(times.values), times.seq)
        values = source.specs[number].empty(shelf.rows)
        texts = self.texts(source.stream, number)
        try:
            blocks = source.database.all(source.database.sql["column_blocks"], (head.sid, number))
            for b, block in blocks:
                held = unpack(block, texts)
                values[b * BLOCK_ROWS : b * BLOCK_ROWS + len(held)] = held
        except (ValueError, TypeError, IndexError, msgspec.MsgspecError) as error:
            raise IntegrityBroken("A column block is damaged.", hint="Restore a backup.") from error
        return _LoadedColumn(values, head.col_seq)

    def _read_changes(
        self, source: _Source, numbers: Sequence[int], starts: Sequence[tuple[int, int]]
    ) -> None:
        """Read the records that changed on some shelves, each after its number, and put their values in place."""
        typed = [number for number in numbers if number > 0]
        statement = typed_select(source.database.dialect, "changed_values", source.stream, typed)
        rows = source.database.all(statement, (json.dumps(starts),))
        if not rows:
            return
        rids, deleted, times, *others = zip(*rows, strict=True)
        values: dict[int, Array] = {
            OwnColumn.LIVE: ~np.array(deleted, np.bool_),
            OwnColumn.TIME: source.specs[OwnColumn.TIME].array(times),
        }
        values[OwnColumn.QUARTER_HOUR] = quarter_hours(values[OwnColumn.TIME])
        for number, held in zip(typed, others, strict=True):
            spec = source.specs[number]
            values[number] = (
                self.texts(source.stream, number).encode(held) if spec.is_text else spec.array(held)
            )
        self._put(np.array(rids, np.int64), numbers, values)

    def _put(self, rids: Array, numbers: Sequence[int], values: Mapping[int, Array]) -> None:
        sids, places = rids >> RID_SHIFT, (rids & _N_MASK) - 1
        cuts = [0, *(np.flatnonzero(np.diff(sids)) + 1).tolist(), len(rids)]
        for start, end in itertools.pairwise(cuts):
            loaded = self._shelves[int(sids[start])].loaded
            for number in numbers:
                loaded[number].values[places[start:end]] = values[number][start:end]


def typed_select(dialect: Dialect, statement: str, stream: StreamTable, numbers: Sequence[int]) -> str:
    """Fill the typed columns of some numbers into a statement that selects them."""
    by_number = {column.number: column for column in stream.columns.values()}
    select = "".join(f", {dialect.typed_column(by_number[number])}" for number in numbers)
    return dialect.sql[statement].format(select=select, table=dialect.typed_table(stream.stid))


def _heads(database: Database, shelves: Sequence[Shelf]) -> dict[int, _ShelfHead]:
    sids = ",".join(str(shelf.sid) for shelf in shelves)
    rows = database.all(database.sql["shelf_heads"].format(sids=sids))
    return {sid: _ShelfHead(sid, *rest) for sid, *rest in rows}


def _by_columns(stale: Iterable[_Stale]) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """Group by sets of columns, so that shelves that lack the same ones are read by one statement.

    The value lists shelves, each with the change number to start after.
    """
    numbers: dict[tuple[int, int], list[int]] = {}
    for one in stale:
        numbers.setdefault((one.sid, one.column.seq), []).append(one.number)
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for start, columns in numbers.items():
        groups.setdefault(tuple(columns), []).append(start)
    return groups


def _grown(values: Array, spec: ColumnSpec, rows: int) -> Array:
    out = spec.empty(rows)
    out[: len(values)] = values
    return out
