"""Columns in memory: numpy arrays of typed values, one per shelf and field, kept true by change numbers.

A column is what its shelf held at one change number. Inside a read transaction the shelf's number says how
much has changed since, and only those records are read again. Blocks in the file hold a recent state, so that
a new process does not have to read every typed row. One cache belongs to one thread.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headgate.store.sqlite.catalog import ColumnKind, Shelf, StreamTable
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import RID_SHIFT

Array = NDArray[Any]

BLOCK = 16_384
NO_INTEGER = -(2**63)
NO_QUARTER = -(2**31)
QUARTER_US = 900 * 1_000_000
#: Columns that every shelf has, beside those of its typed table.
LIVE, TIME, QUARTER = 0, -1, -2
_N_MASK = (1 << RID_SHIFT) - 1
_SPARE = 1024

_TYPES: Mapping[ColumnKind, tuple[Any, Any]] = {
    ColumnKind.WORD: (np.uint32, 0),
    ColumnKind.HASH: (np.int64, NO_INTEGER),
    ColumnKind.INTEGER: (np.int64, NO_INTEGER),
    ColumnKind.NUMBER: (np.float64, np.nan),
    ColumnKind.BOOLEAN: (np.int8, -1),
    ColumnKind.TIME: (np.int64, NO_INTEGER),
}
_OWN: Mapping[int, tuple[Any, Any]] = {
    LIVE: (np.bool_, False),
    TIME: (np.int64, NO_INTEGER),
    QUARTER: (np.int32, NO_QUARTER),
}


class Words:
    """Numbers for the texts of one column; 0 is no text."""

    __slots__ = ("names", "numbers")

    def __init__(self) -> None:
        self.numbers: dict[str | None, int] = {None: 0}
        self.names: list[str | None] = [None]

    def encode(self, texts: Iterable[str | None]) -> Array:
        """Give the number of each text; new ones get new numbers."""
        numbers, names = self.numbers, self.names
        out: list[int] = []
        for text in texts:
            number = numbers.get(text)
            if number is None:
                number = numbers[text] = len(names)
                names.append(text)
            out.append(number)
        return np.array(out, np.uint32)


class ShelfColumns:
    """The columns of one shelf, as of one change number."""

    __slots__ = ("arrays", "dead", "rows", "seq", "sid")

    def __init__(self, sid: int, seq: int) -> None:
        self.sid = sid
        self.seq = seq
        self.rows = 0
        self.dead = -1
        self.arrays: dict[int, Array] = {}

    def column(self, number: int) -> Array:
        """Give a column's values, one for each record that ever was."""
        return self.arrays[number][: self.rows]

    def grow(self, rows: int, kinds: Mapping[int, tuple[Any, Any]]) -> None:
        """Make room for more records."""
        for number, array in self.arrays.items():
            if len(array) < rows:
                self.arrays[number] = _empty(rows, kinds[number])
                self.arrays[number][: len(array)] = array
        self.rows = rows


class ColumnCache:
    """Columns of any shelves, brought up to date as they are asked for."""

    def __init__(self) -> None:
        self._shelves: dict[int, ShelfColumns] = {}
        self._words: dict[tuple[int, int], Words] = {}

    def words(self, stream: StreamTable, number: int) -> Words:
        """Give the numbers of a text column."""
        return self._words.setdefault((stream.stid, number), Words())

    def get(
        self, database: Database, stream: StreamTable, shelves: Sequence[Shelf], numbers: Iterable[int]
    ) -> list[ShelfColumns]:
        """Give columns as of the read transaction that the database is in."""
        wanted = [LIVE, TIME, *(number for number in dict.fromkeys(numbers) if number not in {LIVE, TIME})]
        kinds = column_types(stream)
        heads = _heads(database, shelves)
        tails: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        found = [
            self._prepare(database, stream, sid, head, wanted, kinds, tails) for sid, head in heads.items()
        ]
        for stale, starts in tails.items():
            self._read_tail(database, stream, stale, starts, kinds)
        changed = {sid for starts in tails.values() for sid, _ in starts}
        for columns in found:
            columns.seq = heads[columns.sid][0]
            if columns.dead < 0 or columns.sid in changed:
                columns.dead = columns.rows - int(np.count_nonzero(columns.column(LIVE)))
        return found

    def _prepare(
        self,
        database: Database,
        stream: StreamTable,
        sid: int,
        head: tuple[int, int, int, int],
        wanted: Sequence[int],
        kinds: Mapping[int, tuple[Any, Any]],
        tails: dict[tuple[int, ...], list[tuple[int, int]]],
    ) -> ShelfColumns:
        seq, next_n, col_seq, pruned = head
        columns = self._shelves.get(sid)
        if columns is None or columns.seq > seq or columns.seq < min(seq, pruned):
            # A cache that is ahead of this transaction cannot go back, and one from before the horizon
            # cannot learn what was deleted: it starts again from the blocks.
            columns = self._shelves[sid] = ShelfColumns(sid, col_seq)
        if columns.rows < next_n - 1:
            columns.grow(next_n - 1, kinds)
        if columns.arrays and columns.seq < seq:
            tails.setdefault(tuple(columns.arrays), []).append((sid, columns.seq))
        missing = [number for number in wanted if number not in columns.arrays]
        for number in missing:
            columns.arrays[number] = self._load(database, stream, columns, number, kinds[number])
        if missing and col_seq < seq:
            tails.setdefault(tuple(missing), []).append((sid, col_seq))
        return columns

    def _load(
        self,
        database: Database,
        stream: StreamTable,
        columns: ShelfColumns,
        number: int,
        kind: tuple[Any, Any],
    ) -> Array:
        array = _empty(columns.rows, kind)
        if number == QUARTER:
            array[: columns.rows] = quarters(columns.column(TIME))
            return array
        words = self.words(stream, number)
        for b, block in database.all(
            "SELECT b, data FROM column_block WHERE sid=? AND fid=?", (columns.sid, number)
        ):
            values = unpack(block, words)
            array[b * BLOCK : b * BLOCK + len(values)] = values
        return array

    def _read_tail(
        self,
        database: Database,
        stream: StreamTable,
        numbers: Sequence[int],
        starts: Sequence[tuple[int, int]],
        kinds: Mapping[int, tuple[Any, Any]],
    ) -> None:
        """Read the records that changed after a number, and put their values in place."""
        typed = [number for number in numbers if number > 0]
        select = "".join(f", t.c{number}" for number in typed)
        rows = database.all(
            f"SELECT r.rid, r.deleted, r.ts{select} FROM json_each(?) w "
            "JOIN record r INDEXED BY record_seq ON r.sid = w.value->>0 AND r.seq > w.value->>1 "
            f"LEFT JOIN {stream.table} t ON t.rid = r.rid ORDER BY r.rid",
            (json.dumps(starts),),
        )
        if not rows:
            return
        rids, deleted, times, *others = zip(*rows, strict=True)
        values: dict[int, Array] = {LIVE: ~np.array(deleted, np.bool_), TIME: _integers(times)}
        values[QUARTER] = quarters(values[TIME])
        for number, texts in zip(typed, others, strict=True):
            is_word = kinds[number] is _TYPES[ColumnKind.WORD]
            values[number] = (
                self.words(stream, number).encode(texts) if is_word else _array(texts, kinds[number])
            )
        self._put(np.array(rids, np.int64), [*numbers, LIVE], values)

    def _put(self, rids: Array, numbers: Sequence[int], values: Mapping[int, Array]) -> None:
        sids, places = rids >> RID_SHIFT, (rids & _N_MASK) - 1
        cuts = [0, *(np.flatnonzero(np.diff(sids)) + 1).tolist(), len(rids)]
        for start, end in itertools.pairwise(cuts):
            arrays = self._shelves[int(sids[start])].arrays
            for number in numbers:
                if number in arrays:
                    arrays[number][places[start:end]] = values[number][start:end]


def column_types(stream: StreamTable) -> dict[int, tuple[Any, Any]]:
    """Give the array type and the value for 'none' of every column a stream has."""
    return {**_OWN, **{column.number: _TYPES[column.kind] for column in stream.columns.values()}}


def quarters(times: Array) -> Array:
    """Give the quarter of an hour that each time falls into."""
    out = np.full(len(times), NO_QUARTER, np.int32)
    known = times != NO_INTEGER
    # Beyond the range of 32 bits lies no year that a calendar could show.
    out[known] = np.clip(times[known] // QUARTER_US, NO_QUARTER + 1, 2**31 - 1)
    return out


def pack(array: Array, words: Words | None) -> bytes:
    """Write a block; texts go along with it, so that no list of texts has to outlive the records."""
    if words is None:
        return msgspec.msgpack.encode((array.dtype.name, None, array.tobytes()))
    used, places = np.unique(array, return_inverse=True)
    numbers: list[int] = used.tolist()
    names = [words.names[number] for number in numbers]
    return msgspec.msgpack.encode(("uint32", names, places.astype(np.uint32).tobytes()))


def unpack(block: bytes, words: Words) -> Array:
    """Read a block."""
    dtype, names, raw = msgspec.msgpack.decode(block, type=tuple[str, list[str | None] | None, bytes])
    values: Array = np.frombuffer(raw, np.dtype(dtype))
    return values if names is None else words.encode(names)[values]


def _heads(database: Database, shelves: Sequence[Shelf]) -> dict[int, tuple[int, int, int, int]]:
    sids = ",".join(str(shelf.sid) for shelf in shelves)
    rows = database.all(
        "SELECT sid, seq, next_n, col_seq, (SELECT v FROM meta WHERE k='pruned_seq') FROM shelf "
        f"WHERE sid IN ({sids}) ORDER BY sid"
    )
    return {sid: (seq, next_n, col_seq, pruned) for sid, seq, next_n, col_seq, pruned in rows}


def _empty(rows: int, kind: tuple[Any, Any]) -> Array:
    dtype, none = kind
    return np.full(max(rows + rows // 8, _SPARE), none, dtype)


def _integers(values: Sequence[int | None]) -> Array:
    return np.array([NO_INTEGER if value is None else value for value in values], np.int64)


def _array(values: Sequence[Any], kind: tuple[Any, Any]) -> Array:
    dtype, none = kind
    return np.array([none if value is None else value for value in values], dtype)
