"""Copy a whole store into an empty one of any engine, number for number: cursors, bookmarks and handles stay valid.

The source is read in one state. Rows come in the order of their keys, a portion in a transaction; a copy that was
stopped goes on after the last key that arrived. If the source has changed since, it starts over. While it is not
complete, and compared row by row, the target refuses to be opened.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from headgate.errors import BlobNotFound, Conflict, IntegrityBroken, StorageUnusable
from headgate.model.ids import BlobId
from headgate.model.maintenance import Moved, Progress
from headgate.store.changes.stored_rows import put_typed_rows
from headgate.store.format import analyser
from headgate.store.format.records import shelf_rows
from headgate.store.format.streams import Shelf, StreamTable
from headgate.store.maintenance.copied_tables import FACTS, TABLES, CopyMode, Table
from headgate.store.maintenance.fsck import BlobPieces
from headgate.store.sql.catalog import current, note_catalog_sum
from headgate.store.sql.database import Database

_NOTE = "copying"
_ROWS_AT_ONCE = 1000
_BYTES_AT_ONCE = 8 * 1024 * 1024
#: Turns a value of a column into what every engine understands, or back; None: it is that already.
Conversion = Callable[[Any], Any] | None
_Row = tuple[Any, ...]
_encode = msgspec.msgpack.Encoder().encode


class CopiedBlobs(BlobPieces, Protocol):
    """Where the bytes of files are copied from and to."""

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; returns its id and size."""
        ...


class StoreSide(Protocol):
    """One end of a copy: a store, and what an engine does its own way."""

    @property
    def database(self) -> Database:
        """The connection to the store."""
        ...

    @property
    def blobs(self) -> CopiedBlobs:
        """The bytes of its files."""
        ...

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the columns of a table with their types; none if there is no such table."""
        ...

    def key_column(self, table: str, column: str) -> str:
        """Write a column of a key so that texts are ordered by their bytes."""
        ...

    def shown(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        """Return how the values of columns are read."""
        ...

    def stored(self, table: str, columns: Sequence[str]) -> Sequence[Conversion]:
        """Return how the values of columns are written."""
        ...

    def insertion(self, table: str, columns: Sequence[str]) -> str:
        """Write the statement that adds a row; columns that this engine alone has are made from the others."""
        ...

    def given_numbers(self) -> Mapping[str, int]:
        """Return the numbers that shelves (sid), streams (stid), segments (gid) and vectors (bid) were given last."""
        ...

    def put_given_numbers(self, numbers: Mapping[str, int]) -> None:
        """Go on after these numbers, inside a writer's transaction."""

    def has_blob(self, blob_id: BlobId) -> bool:
        """Return whether a file is there, whole."""
        ...

    def empty(self) -> None:
        """Remove everything from a copy that is not complete."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is copied from the source as it is now."""

    #: The tables that both stores have, with the columns that both have.
    tables: Mapping[Table, tuple[str, ...]]
    streams: tuple[StreamTable, ...]
    shelves: tuple[Shelf, ...]
    #: Another number if anything changed that would make a part of the copy wrong.
    state: int
    row_count: int


def _nothing() -> None:
    pass


def copy_store(
    source: StoreSide, target: StoreSide, progress: Progress, *, before_opening: Callable[[], None] = _nothing
) -> Moved:
    """Copy everything, compare it, and only then let the target be opened.

    The last step is done in the transaction after which it can be opened.
    """
    with source.database.reading(float("inf")):
        plan = _plan(source, target)
        _begin(target, plan)
        count = _Count(progress, 2 * plan.row_count)
        _copy_rows(source, target, plan, count)
        missing = asyncio.run(_copy_blobs(source, target))
        _compare(source, target, plan, count)
        _finish(source, target, before_opening)
        total: int = source.database.value(source.database.sql["live_total"])
        number: int = source.database.value(source.database.sql["change_number"])
    return Moved(total, number, plan.row_count, missing)


class _Count:
    """How many rows are done: a row is copied, and then compared."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def add(self, rows: int) -> None:
        self._done = min(self._done + rows, self._total)
        self._progress(self._done, self._total)


def _plan(source: StoreSide, target: StoreSide) -> _Plan:
    database = source.database
    if database.value(database.sql["words_version"]) != analyser.VERSION:
        raise StorageUnusable(
            "The store's word index is not of this version.", hint="Serve the home once with this version."
        )
    catalog = current(database)
    tables = {table: _columns(source, target, table) for table in TABLES}
    tables = {table: columns for table, columns in tables.items() if columns}
    counts = {table: _row_count(database, table) for table in tables}
    shelves = catalog.all_shelves
    streams = (*catalog.streams.values(), *catalog.retired.values())
    return _Plan(tables, streams, shelves, _state(source, counts), sum(counts.values()))


def _columns(source: StoreSide, target: StoreSide, table: Table) -> tuple[str, ...]:
    there = target.columns(table.name)
    return tuple(column for column in source.columns(table.name) if column in there)


def _row_count(database: Database, table: Table) -> int:
    return database.value(database.sql["count_rows"].format(table=table.name))


def _state(source: StoreSide, counts: Mapping[Table, int]) -> int:
    """Return a number that is another one if a row changed which a copy may hold already."""
    facts = dict(source.database.all(source.database.sql["facts"]))
    noted = sorted(
        (table.name, count) for table, count in counts.items() if table.mode is CopyMode.RESTART_IF_CHANGED
    )
    shelves = source.database.all(source.database.sql["shelf_states"])
    numbers = sorted(source.given_numbers().items())
    known = ([facts[name] for name in FACTS], numbers, noted, shelves)
    return int.from_bytes(hashlib.sha256(_encode(known)).digest()[:7]) or 1


# Beginning and ending


def _begin(target: StoreSide, plan: _Plan) -> None:
    """Go on with a copy of the same state, or start over; refuse a store that is in use."""
    database = target.database
    noted = database.one(database.sql["unfinished_copy"])
    if noted is not None and noted[0] == plan.state:
        return
    if noted is not None:
        target.empty()
    elif any(_row_count(database, table) for table in plan.tables):
        raise Conflict(
            "The store to copy into is not empty.", hint="Choose a home that does not exist there yet."
        )
    with target.database.writing():
        _put_fact(target, _NOTE, plan.state)
        for stream in plan.streams:
            _lay_out(target.database, stream)


def _lay_out(database: Database, stream: StreamTable) -> None:
    database.dialect.make_typed_table(database, stream.stid)
    for name, column in sorted(stream.columns.items(), key=lambda item: item[1].number):
        database.dialect.add_typed_column(database, stream.stid, column)
        if name in stream.foreign_keys:
            database.dialect.index_typed_column(database, stream.stid, column)


def _finish(source: StoreSide, target: StoreSide, last_step: Callable[[], None]) -> None:
    facts = dict(source.database.all(source.database.sql["facts"]))
    with target.database.writing():
        for name in FACTS:
            _put_fact(target, name, facts[name])
        note_catalog_sum(target.database)
        target.put_given_numbers(source.given_numbers())
        last_step()
        target.database.run(target.database.sql["delete_fact"], (_NOTE,))


def _put_fact(target: StoreSide, name: str, value: int) -> None:
    target.database.run(target.database.sql["put_fact"], (name, value))


# Rows


def _copy_rows(source: StoreSide, target: StoreSide, plan: _Plan, count: _Count) -> None:
    for table, columns in plan.tables.items():
        if table.mode is CopyMode.WHOLE:
            with target.database.writing():
                target.database.run(target.database.sql["delete_all_rows"].format(table=table.name))
                count.add(_put(target, table, columns, list(_rows(source, table, columns))))
            continue
        after = _last_key(target, table)
        count.add(0 if after is None else _row_count(target.database, table))
        with closing(_rows(source, table, columns, after)) as rows:
            for portion in _portions(rows):
                with target.database.writing():
                    count.add(_put(target, table, columns, portion))
    for shelf in plan.shelves:
        with closing(_typed_rows(source, shelf, _last_typed(target, shelf))) as rows:
            for portion in _portions(rows):
                with target.database.writing():
                    put_typed_rows(target.database, shelf.stream, portion)


def _put(target: StoreSide, table: Table, columns: Sequence[str], rows: Sequence[_Row]) -> int:
    if rows:
        stored = target.stored(table.name, columns)
        target.database.many(target.insertion(table.name, columns), [_converted(stored, row) for row in rows])
    return len(rows)


def _rows(
    side: StoreSide, table: Table, columns: Sequence[str], after: _Row | None = None
) -> Generator[_Row]:
    """Yield the rows of a table in the order of its key, as every engine understands them."""
    named = {
        "names": ", ".join(columns),
        "table": table.name,
        "key": ", ".join(side.key_column(table.name, column) for column in table.key),
        "marks": ", ".join("?" for _ in table.key),
    }
    statement = side.database.sql["rows_in_key_order" if after is None else "rows_after_key"]
    conversions = side.shown(table.name, columns)
    for row in side.database.each(statement.format(**named), after or ()):
        yield _converted(conversions, row)


def _converted(conversions: Sequence[Conversion], row: _Row) -> _Row:
    return tuple(
        value if convert is None or value is None else convert(value)
        for convert, value in zip(conversions, row, strict=True)
    )


def _last_key(target: StoreSide, table: Table) -> _Row | None:
    key = [target.key_column(table.name, column) for column in table.key]
    return target.database.one(
        target.database.sql["last_key"].format(
            table=table.name, key=", ".join(key), last=", ".join(f"{column} DESC" for column in key)
        )
    )


def _portions(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    portion: list[_Row] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(portion) >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


# Typed values: they are in one table or in many


def _typed_rows(side: StoreSide, shelf: Shelf, after: int | None = None) -> Generator[_Row]:
    dialect, stream = side.database.dialect, shelf.stream
    first, last = shelf_rows(shelf.sid)
    statement = side.database.sql["typed_rows_between"].format(
        table=dialect.typed_table(stream.stid),
        select="".join(f", {dialect.typed_column(column)}" for column in stream.columns.values()),
    )
    yield from side.database.each(statement, (first if after is None else after, last))


def _last_typed(target: StoreSide, shelf: Shelf) -> int | None:
    table = target.database.dialect.typed_table(shelf.stream.stid)
    return target.database.value(
        target.database.sql["last_typed_row"].format(table=table), shelf_rows(shelf.sid)
    )


# Files


async def _pieces(blobs: CopiedBlobs, blob_id: BlobId) -> AsyncIterator[bytes]:
    for piece in blobs.pieces(blob_id):
        yield piece


async def _copy_blobs(source: StoreSide, target: StoreSide) -> int:
    """Copy the files that the target lacks; returns how many the source should have and does not."""
    missing = 0
    for (text,) in source.database.all(source.database.sql["blob_ids"]):
        blob_id = BlobId(text)
        if target.has_blob(blob_id):
            continue
        try:
            written, _ = await target.blobs.write(_pieces(source.blobs, blob_id))
        except BlobNotFound:
            missing += 1
            continue
        if written != blob_id:
            raise IntegrityBroken(
                f"The file {blob_id} is not what was stored.", hint="Run 'headgate store fsck'."
            )
    return missing


# Comparing


def _compare(source: StoreSide, target: StoreSide, plan: _Plan, count: _Count) -> None:
    with target.database.reading(float("inf")):
        for table, columns in plan.tables.items():
            _refuse_difference(table.name, *(_rows(side, table, columns) for side in (source, target)))
            count.add(_row_count(target.database, table))
        for shelf in plan.shelves:
            rows = (_typed_rows(side, shelf) for side in (source, target))
            _refuse_difference(f"the typed values of {shelf.connection_id}/{shelf.name}", *rows)


def _refuse_difference(what: str, *both: Iterator[_Row]) -> None:
    first, other = map(_digest, both)
    if first != other:
        raise IntegrityBroken(
            f"The copy differs from the source in {what}.",
            hint="It cannot be opened. Remove it, and copy again.",
        )


def _digest(rows: Iterator[_Row]) -> bytes:
    hashed = hashlib.sha256()
    for row in rows:
        # SQLite stores no negative zero.
        hashed.update(_encode([value + 0.0 if isinstance(value, float) else value for value in row]))
    return hashed.digest()
