"""Write column blocks: the state of a shelf's columns as of one change number, so that a process starts fast.

The work is done in small steps, each in one transaction. A block may be newer than its shelf's number
says: a reader reads every record that changed after that number again, so only an older one would be wrong.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.store.relational.catalog import Catalog, Shelf, StreamTable, current
from headgate.store.relational.columns.blocks import BLOCK_ROWS, TextNumbers, pack, pack_texts
from headgate.store.relational.columns.cache import typed_select
from headgate.store.relational.columns.specs import Array, ColumnSpec, OwnColumn, column_specs
from headgate.store.relational.database import Database
from headgate.store.relational.row_numbers import RID_SHIFT

#: A shelf with fewer changes than this since its last blocks is read fast enough without new ones.
ENOUGH_CHANGES = 1000
#: Cells of one step: rows times columns. A step of this size takes a few tens of milliseconds.
_STEP_CELLS = 32_768
_STEP_COLUMNS = max(1, _STEP_CELLS // BLOCK_ROWS)
_ROWS_AT_ONCE = 250
_N_MASK = (1 << RID_SHIFT) - 1


@dataclass(frozen=True, slots=True)
class _BlockStep:
    """Write one block of some columns."""

    stream: StreamTable
    sid: int
    block: int
    columns: tuple[int, ...]

    def take(self, database: Database) -> None:
        first = self.sid << RID_SHIFT | self.block * BLOCK_ROWS + 1
        typed = [number for number in self.columns if number > 0]
        sql = typed_select(database.dialect, "block_values", self.stream, typed)
        columns = _read_columns(database, sql, (first, first + BLOCK_ROWS))
        if not columns:
            return
        rids, deleted, times, *others = columns
        values = {OwnColumn.LIVE: [not one for one in deleted], OwnColumn.TIME: times}
        values |= dict(zip(typed, others, strict=True))
        places, specs = np.array(rids, np.int64) - first, column_specs(self.stream)
        database.many(
            database.sql["put_column_block"],
            [
                (self.sid, number, self.block, _packed(specs[number], places, values[number]))
                for number in self.columns
            ],
        )


@dataclass(frozen=True, slots=True)
class _NoteStep:
    """Note that the blocks of a shelf are all written."""

    sid: int
    #: The shelf's and the catalog's number when the steps were planned.
    seq: int
    catalog: int

    def take(self, database: Database) -> None:
        # Whatever drops blocks raises the catalog's number: then some of these may be gone again.
        database.run(database.sql["note_column_blocks"], (self.seq, self.sid, self.catalog))


class Snapshot:
    """An idle task: the steps that are still to be taken."""

    name = "columns"

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: deque[_BlockStep | _NoteStep] = deque()

    def plan(self, database: Database, *, enough: int = ENOUGH_CHANGES) -> bool:
        """Look for shelves with many changes since their last blocks; returns whether there is work."""
        if not self._steps:
            with database.reading(float("inf")):
                self._steps.extend(_plan(database, enough))
        return bool(self._steps)

    def step(self, database: Database) -> bool:
        """Take one step; returns whether more are left."""
        if self._steps:
            with database.writing():
                self._steps[0].take(database)
            self._steps.popleft()
        return bool(self._steps)

    def run(self, database: Database, *, enough: int = ENOUGH_CHANGES, seconds: float = float("inf")) -> None:
        """Take steps until all are taken, or time is up."""
        end = time.monotonic() + seconds
        while self.plan(database, enough=enough) and time.monotonic() < end:
            while self.step(database) and time.monotonic() < end:
                pass


def _plan(database: Database, enough: int) -> Iterator[_BlockStep | _NoteStep]:
    catalog = current(database, Catalog())
    for sid, seq, col_seq in database.all(database.sql["shelves_with_changes"]):
        shelf = catalog.by_sid.get(sid)
        if shelf is not None and _has_changed(database, sid, col_seq, enough):
            yield from _block_steps(shelf, _touched(database, sid, col_seq))
            yield _NoteStep(sid, seq, catalog.number)


def _block_steps(shelf: Shelf, blocks: Sequence[int]) -> Iterator[_BlockStep]:
    typed = [column.number for column in shelf.stream.columns.values()]
    numbers = (OwnColumn.TIME, OwnColumn.LIVE, *sorted(typed))
    for block in blocks:
        for start in range(0, len(numbers), _STEP_COLUMNS):
            yield _BlockStep(shelf.stream, shelf.sid, block, numbers[start : start + _STEP_COLUMNS])


def _has_changed(database: Database, sid: int, col_seq: int, enough: int) -> bool:
    return len(database.all(database.sql["some_changes"], (sid, col_seq, enough))) >= enough


def _touched(database: Database, sid: int, col_seq: int) -> list[int]:
    """Find the blocks that hold a record which changed after a number."""
    sql = database.sql["touched_blocks"].format(mask=_N_MASK, block_rows=BLOCK_ROWS)
    rows = database.all(sql, (sid, col_seq))
    return sorted(block for (block,) in rows)


def _read_columns(database: Database, sql: str, values: tuple[int, int]) -> list[list[Any]]:
    """Read rows as columns, a few at a time: all rows of a block at once would start the garbage collector."""
    rows = database.each(sql, values)
    columns: list[list[Any]] = []
    while portion := list(itertools.islice(rows, _ROWS_AT_ONCE)):
        columns = columns or [[] for _ in portion[0]]
        for column, more in zip(columns, zip(*portion, strict=True), strict=True):
            column.extend(more)
    return columns


def _packed(spec: ColumnSpec, places: Array, values: Sequence[Any]) -> bytes:
    array = np.full(int(places[-1]) + 1, spec.none, spec.dtype)
    if not spec.is_text:
        array[places] = spec.array(values)
        return pack(array)
    numbers = TextNumbers()
    array[places] = numbers.encode(values)
    return pack_texts(array, numbers)
