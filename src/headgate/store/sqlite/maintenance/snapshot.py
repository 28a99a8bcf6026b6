"""Write column blocks: the state of a shelf's columns as of one change number, so that a start is quick.

Done in small steps, each a transaction of its own. A block may be newer than its shelf's number says: whoever
reads it reads again every record that changed after that number, so only an older one would be wrong.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.store.sqlite.catalog import Catalog, StreamTable, current
from headgate.store.sqlite.columns.cache import BLOCK, LIVE, TIME, Array, Words, column_types, pack
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import RID_SHIFT

#: A shelf with fewer changes than this since its last blocks is read quickly enough without new ones.
ENOUGH_CHANGES = 1000
#: Cells of one step: rows times columns. A step of this size takes a few tens of milliseconds.
_STEP_CELLS = 32_768
_AT_ONCE = 250
_N_MASK = (1 << RID_SHIFT) - 1


@dataclass(frozen=True, slots=True)
class _Step:
    """Some columns of one block; or, without columns, the note that a shelf's blocks are all written."""

    stream: StreamTable
    sid: int
    #: The catalog's and the shelf's number when the steps were planned.
    catalog: int
    seq: int
    block: int = 0
    columns: tuple[int, ...] = ()


class Snapshot:
    """The steps that are still to be taken."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: deque[_Step] = deque()

    def plan(self, database: Database, *, enough: int = ENOUGH_CHANGES) -> bool:
        """Look for shelves with many changes since their last blocks; says whether there is work."""
        if not self._steps:
            with database.reading(float("inf")):
                self._steps.extend(_plan(database, enough))
        return bool(self._steps)

    def step(self, database: Database) -> bool:
        """Take one step; says whether more are left."""
        if self._steps:
            with database.writing():
                _take(database, self._steps[0])
            self._steps.popleft()
        return bool(self._steps)

    def run(self, database: Database, *, enough: int = ENOUGH_CHANGES, seconds: float = float("inf")) -> None:
        """Take steps until all are taken, or time is up."""
        end = time.monotonic() + seconds
        while self.plan(database, enough=enough) and time.monotonic() < end:
            while self.step(database) and time.monotonic() < end:
                pass


def _plan(database: Database, enough: int) -> Iterator[_Step]:
    catalog = current(database, Catalog())
    for sid, seq, col_seq in database.all("SELECT sid, seq, col_seq FROM shelf WHERE seq > col_seq"):
        shelf = catalog.by_sid.get(sid)
        if shelf is None or not _has_changed(database, sid, col_seq, enough):
            continue
        numbers = sorted(column_types(shelf.stream).keys() & {LIVE, TIME} | _typed(shelf.stream))
        width = max(1, _STEP_CELLS // BLOCK)
        for block in _touched(database, sid, col_seq):
            for start in range(0, len(numbers), width):
                yield _Step(
                    shelf.stream, sid, catalog.number, seq, block, tuple(numbers[start : start + width])
                )
        yield _Step(shelf.stream, sid, catalog.number, seq)


def _typed(stream: StreamTable) -> set[int]:
    return {column.number for column in stream.columns.values()}


def _has_changed(database: Database, sid: int, col_seq: int, enough: int) -> bool:
    rows = database.all(
        "SELECT 1 FROM record INDEXED BY record_seq WHERE sid=? AND seq > ? LIMIT ?", (sid, col_seq, enough)
    )
    return len(rows) >= enough


def _touched(database: Database, sid: int, col_seq: int) -> list[int]:
    rows = database.all(
        f"SELECT DISTINCT ((rid & {_N_MASK}) - 1) / {BLOCK} FROM record INDEXED BY record_seq WHERE sid=? AND seq > ?",
        (sid, col_seq),
    )
    return sorted(block for (block,) in rows)


def _take(database: Database, step: _Step) -> None:
    if not step.columns:
        # Whatever drops blocks raises the catalog's number: then some of these may be gone again.
        database.run(
            "UPDATE shelf SET col_seq=? WHERE sid=? AND (SELECT v FROM meta WHERE k='catalog') = ?",
            (step.seq, step.sid, step.catalog),
        )
        return
    first = step.sid << RID_SHIFT | step.block * BLOCK + 1
    typed = [number for number in step.columns if number > 0]
    select = "".join(f", t.c{number}" for number in typed)
    columns = _columns(
        database,
        f"SELECT r.rid, r.deleted, r.ts{select} FROM record r LEFT JOIN {step.stream.table} t ON t.rid = r.rid "
        "WHERE r.rid >= ? AND r.rid < ? ORDER BY r.rid",
        (first, first + BLOCK),
    )
    if columns:
        blocks = _blocks(step, typed, first, columns)
        database.many("INSERT OR REPLACE INTO column_block VALUES(?, ?, ?, ?)", blocks)


def _columns(database: Database, sql: str, values: tuple[int, int]) -> list[list[Any]]:
    """Read rows as columns, a few at a time: so many rows at once would set off a search for garbage."""
    rows: Iterator[tuple[Any, ...]] = database.db.execute(sql, values)
    columns: list[list[Any]] = []
    while portion := list(itertools.islice(rows, _AT_ONCE)):
        read = zip(*portion, strict=True)
        columns = columns or [[] for _ in portion[0]]
        for column, more in zip(columns, read, strict=True):
            column.extend(more)
    return columns


def _blocks(
    step: _Step, typed: Sequence[int], first: int, columns: Sequence[Sequence[Any]]
) -> list[tuple[int, int, int, bytes]]:
    rids, deleted, times, *others = columns
    held: dict[int, Sequence[Any]] = {
        LIVE: [not one for one in deleted],
        TIME: times,
        **dict(zip(typed, others, strict=True)),
    }
    places = np.array(rids, np.int64) - first
    return [
        (step.sid, number, step.block, _packed(step.stream, number, places, held[number]))
        for number in step.columns
    ]


def _packed(stream: StreamTable, number: int, places: Array, values: Sequence[Any]) -> bytes:
    dtype, none = column_types(stream)[number]
    array = np.full(int(places[-1]) + 1, none, dtype)
    words = Words() if dtype is np.uint32 else None
    if words is None:
        array[places] = [none if value is None else value for value in values]
    else:
        array[places] = words.encode(values)
    return pack(array, words)
