"""Look at every record and everything kept beside it, change nothing, and name what is damaged.

Each shelf is looked at in one state of the store, so that a program may go on writing meanwhile.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import operator
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec
import numpy as np

from headgate.errors import IntegrityBroken
from headgate.model.ids import BlobId
from headgate.model.maintenance import Damage, Examination
from headgate.store.sqlite.catalog import Catalog, Shelf, current
from headgate.store.sqlite.columns.cache import LIVE, TIME, ColumnCache, ShelfColumns, column_types
from headgate.store.sqlite.database import Database, open_reader
from headgate.store.sqlite.maintenance.bulk_check import OWN, Soundness, typed_place
from headgate.store.sqlite.maintenance.opening import Progress
from headgate.store.sqlite.row_numbers import MAX_N, RID_SHIFT, rid_of, tid_of
from headgate.store.sqlite.write.blobs import BlobFiles
from headgate.store.sqlite.write.derive import digest_of, sort_of, ts_of, typed_row
from headgate.store.sqlite.write.long_texts import CHUNK_CHARS, chunk_sum, long_notes

_AT_ONCE = 500
_NOTES_MOST = 100
_PIECE = 1024 * 1024
_COLUMNS = "r.rid, r.sid, r.record_id, r.seq, r.sort, r.ts, r.deleted, r.long, r.digest, r.body, t.rid"
_INDEXES = {"record_key": "", "record_seq": "", "record_sort": " AND deleted=0"}
_FOREVER = float("inf")


def examine(database: Database, files: BlobFiles, progress: Progress) -> Examination:
    """Look at the file, every shelf and every blob."""
    # The file as a whole is looked at beside the records: SQLite does that without Python.
    beside = open_reader(database.path)
    try:
        with ThreadPoolExecutor(1) as executor:
            checking = executor.submit(_file, beside)
            try:
                with _uncollected():
                    done, damages = _records(database, files, progress)
            except BaseException:
                beside.db.interrupt()
                raise
            return Examination(done, (*checking.result(), *damages))
    finally:
        beside.db.close()


@contextmanager
def _uncollected() -> Generator[None]:
    """Let nobody look for cycles: millions of rows come and go, and none is part of one."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _records(database: Database, files: BlobFiles, progress: Progress) -> tuple[int, list[Damage]]:
    damages: list[Damage] = []
    done = 0
    try:
        with database.reading(_FOREVER):
            catalog = current(database, Catalog())
            shelves = database.all("SELECT sid, live FROM shelf ORDER BY sid")
            damages += _strays(database, {sid for sid, _ in shelves})
        total: int = sum(live for _, live in shelves)
        # A stream that is no longer declared cannot be read by anybody: its rows are left alone.
        for look in [_Look(database, catalog.by_sid[sid]) for sid, _ in shelves if sid in catalog.by_sid]:
            for count in look.all():
                progress(done + count, total)
            done += look.live
            damages += look.damages
        damages += _blobs(database, files)
    except (apsw.CorruptError, IntegrityBroken):
        damages.append(Damage("unreadable", "What tells the records' places cannot be read."))
    return done, damages


def _file(database: Database) -> list[Damage]:
    try:
        rows = database.all(f"PRAGMA quick_check({_NOTES_MOST})")
    except apsw.CorruptError as error:
        rows = [(str(error),)]
    return [Damage("file", " ".join(text.split())) for (text,) in rows if text != "ok"]


def _strays(database: Database, known: set[int]) -> Iterator[Damage]:
    sid = -1
    while row := database.one(
        "SELECT sid FROM record INDEXED BY record_key WHERE sid > ? ORDER BY sid LIMIT 1", (sid,)
    ):
        sid = row[0]
        if sid not in known:
            yield Damage("place", f"There are records of shelf {sid}, which does not exist.")


class _Look:
    """One look at one shelf."""

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self.damages: list[Damage] = []
        self.live = 0
        self._database = database
        self._shelf = shelf
        self._stream = shelf.stream
        self._cache = ColumnCache()
        self._columns: ShelfColumns | None = None
        self._seen = 0
        self._last_seq = 0
        self._tids: list[int] = []
        self._kinds = column_types(self._stream)
        self._soundness = Soundness(self._stream)
        self._sort_at = typed_place(self._stream, self._stream.declaration.cursor_field)
        self._ts_at = typed_place(self._stream, self._stream.time_field)
        select = "".join(f", t.{column.name}" for column in self._stream.columns.values())
        self._sql = (
            f"SELECT {_COLUMNS}{select} FROM record r LEFT JOIN {self._stream.table} t ON t.rid = r.rid "
        )

    def all(self) -> Iterator[int]:
        """Look at everything, and tell now and then how many records were seen."""
        try:
            with self._database.reading(_FOREVER):
                yield from self._everything()
        except apsw.CorruptError:
            self._damaged("unreadable", "What is kept beside the records cannot be read.")

    def _everything(self) -> Iterator[int]:
        row = self._database.one("SELECT live, next_n, seq FROM shelf WHERE sid=?", (self._shelf.sid,))
        if row is None:
            return
        self._columns = self._load_columns()
        for rows in self._portions(row[1]):
            self._look(rows)
            yield self.live
        self._counts(*row)
        self._words()

    def _damaged(self, kind: str, detail: str, record_id: str | None = None) -> None:
        shelf = self._shelf
        self.damages.append(
            Damage(kind, detail, shelf.connection_id, shelf.stream.declaration.name, record_id)
        )

    def _portions(self, next_n: int) -> Iterator[Sequence[tuple[Any, ...]]]:
        first = self._shelf.sid << RID_SHIFT
        for start in range(0, next_n, _AT_ONCE):
            bounds = (first + start, first + start + _AT_ONCE)
            try:
                yield self._database.all(f"{self._sql} WHERE r.rid >= ? AND r.rid < ? ORDER BY r.rid", bounds)
            except apsw.CorruptError:
                yield list(self._one_by_one(range(*bounds), first + next_n))

    def _one_by_one(self, rids: range, end: int) -> Iterator[tuple[Any, ...]]:
        for rid in rids:
            try:
                row = self._database.one(f"{self._sql} WHERE r.rid = ?", (rid,)) if rid < end else None
            except apsw.CorruptError:
                self._damaged("unreadable", f"Row {rid & MAX_N} cannot be read.")
            else:
                if row is not None:
                    yield row

    def _look(self, rows: Sequence[Sequence[Any]]) -> None:
        """Look at many at once; only where something is odd, at each."""
        if not rows:
            return
        columns = tuple(zip(*rows, strict=True))
        is_plain = not any(columns[6]) and columns[7].count(None) == len(rows)
        plain = rows if is_plain else [row for row in rows if not row[6] and row[7] is None]
        chosen = columns if is_plain else tuple(zip(*plain, strict=True))
        is_sound = self._soundness.holds(self._shelf.sid, chosen)
        if is_sound:
            self._count(chosen)
        for row in () if is_sound and is_plain else rows:
            if not is_sound or row[6] or row[7] is not None:
                self._record(row)
        self._compare_columns(columns)

    def _count(self, columns: Sequence[Sequence[Any]]) -> None:
        if columns:
            rids, seqs, times = columns[0], columns[3], columns[5]
            self._seen += len(rids)
            self.live += len(rids)
            self._last_seq = max(self._last_seq, *seqs)
            if self._stream.slots:
                self._tids += map(tid_of, times, rids)

    def _record(self, row: Sequence[Any]) -> None:
        rid, sid, record_id, seq, _, ts, deleted, _, digest, body, typed_rid = row[:OWN]
        self._seen += 1
        self._last_seq = max(self._last_seq, seq)
        if sid != rid >> RID_SHIFT:
            self._damaged("place", "The record lies in the place of another shelf.", record_id)
        if deleted:
            if body is not None or digest or typed_rid is not None:
                self._damaged("typed", "A deleted record has left something behind.", record_id)
            return
        self.live += 1
        if self._stream.slots:
            self._tids.append(tid_of(ts, rid))
        self._live_record(row)

    def _live_record(self, row: Sequence[Any]) -> None:
        rid, _, record_id, _, sort, ts, _, long, digest, body, _ = row[:OWN]
        if body is None or digest_of(record_id, long, body) != digest:
            self._damaged("digest", "The record does not match its digest.", record_id)
            return
        values: dict[str, Any] = msgspec.json.decode(body)
        if long is not None:
            values.update(self._long_texts(rid, record_id, long))
        typed = typed_row(self._stream, rid, values)
        if row[OWN - 1 :] != typed:
            self._damaged("typed", "The typed values are not those of the record.", record_id)
        if (sort, ts) != self._place(typed, values):
            self._damaged("place", "The record's place in the order is not its own.", record_id)

    def _place(self, typed: Sequence[Any], values: dict[str, Any]) -> tuple[Any, Any]:
        """Give what a record is ordered by, and its time; a typed value tells it without parsing it again."""
        sort_at, ts_at = self._sort_at, self._ts_at
        return (
            sort_of(self._stream, values) if sort_at is None else typed[sort_at],
            ts_of(self._stream, values) if ts_at is None else typed[ts_at],
        )

    def _long_texts(self, rid: int, record_id: str, long: bytes) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name, (chars, digest) in long_notes(long).items():
            rows = self._database.all(
                "SELECT n, sum, text FROM chunk WHERE rid=? AND fid=? ORDER BY n",
                (rid, self._stream.fids[name]),
            )
            text = texts[name] = "".join(piece for _, _, piece in rows)
            whole = [n for n, _, _ in rows] == list(range((chars + CHUNK_CHARS - 1) // CHUNK_CHARS))
            sums = all(chunk_sum(piece) == stored for _, stored, piece in rows)
            if not (whole and sums and hashlib.sha256(text.encode()).digest() == digest):
                self._damaged("text", f"The long text '{name}' does not match its digest.", record_id)
        return texts

    # What is kept beside the records

    def _counts(self, live: int, next_n: int, seq: int) -> None:
        if self.live != live or self._seen >= next_n or self._last_seq > seq:
            self._damaged("count", f"The shelf counts {live} records; {self.live} are there.")
        for index, condition in _INDEXES.items():
            rows: int = self._database.value(
                f"SELECT count(*) FROM record INDEXED BY {index} WHERE sid=?{condition}", (self._shelf.sid,)
            )
            if rows != (self.live if condition else self._seen):
                self._damaged("index", f"{index} has {rows} rows for this shelf.")

    def _words(self) -> None:
        """Compare the rows of the full-text index; the words in them are checked with the file."""
        if not self._stream.slots:
            return
        found = self._database.all("SELECT rowid FROM fts WHERE fts MATCH ?", (f"sh : s{self._shelf.sid}",))
        held = np.array(list(itertools.chain.from_iterable(found)), np.int64)
        due = np.sort(np.array(self._tids, np.int64))
        if np.array_equal(held, due):
            return
        for tid in np.setdiff1d(due, held).tolist():
            self._damaged("index", "The record is missing in the search index.", self._name(tid))
        for tid in np.setdiff1d(held, due).tolist():
            self._damaged("index", "The search index has a row too many.", self._name(tid))

    def _name(self, tid: int) -> str | None:
        row = self._database.one("SELECT record_id FROM record WHERE rid=?", (rid_of(tid),))
        return None if row is None else row[0]

    def _load_columns(self) -> ShelfColumns | None:
        sid = self._shelf.sid
        if self._database.one("SELECT 1 FROM column_block WHERE sid=? LIMIT 1", (sid,)) is None:
            return None
        try:
            numbers = [column.number for column in self._stream.columns.values()]
            return self._cache.get(self._database, self._stream, [self._shelf], numbers)[0]
        except (ValueError, msgspec.MsgspecError, apsw.CorruptError):
            self._damaged("columns", "The column blocks cannot be read.")
            return None

    def _compare_columns(self, held: Sequence[Sequence[Any]]) -> None:
        if self._columns is None:
            return
        places = (np.array(held[0], np.int64) & ((1 << RID_SHIFT) - 1)) - 1
        wrong = self._columns.column(LIVE)[places] == np.array(held[6], np.bool_)
        wrong |= self._differ(TIME, places, held[5])
        for column, values in zip(self._stream.columns.values(), held[OWN:], strict=True):
            wrong |= self._differ(column.number, places, values)
        for index in np.flatnonzero(wrong).tolist():
            self._damaged("columns", "The column blocks hold other values.", held[2][index])

    def _differ(self, number: int, places: Any, values: Sequence[Any]) -> Any:
        assert self._columns is not None
        dtype, none = self._kinds[number]
        found = self._columns.column(number)[places]
        if dtype is np.uint32:
            names = self._cache.words(self._stream, number).names
            texts: list[str | None] = list(map(names.__getitem__, found.tolist()))
            return np.array(list(map(operator.ne, texts, values)), np.bool_)
        due = np.array([none if value is None else value for value in values], dtype)
        same = found == due
        return ~(same | (np.isnan(found) & np.isnan(due))) if dtype is np.float64 else ~same


def _blobs(database: Database, files: BlobFiles) -> Iterator[Damage]:
    for blob_id, size in database.all("SELECT blob_id, size_bytes FROM blob"):
        path = files.path(BlobId(blob_id))
        if not path.exists():
            yield Damage("blob", f"The file {blob_id} is missing.")
            continue
        hashed, read = hashlib.sha256(), 0
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                hashed.update(piece)
                read += len(piece)
        if read != size or f"blob_{hashed.hexdigest()}" != blob_id:
            yield Damage("blob", f"The file {blob_id} is not what was stored.")
