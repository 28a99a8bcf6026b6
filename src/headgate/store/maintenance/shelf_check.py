"""Check one shelf: every record, and everything that is stored beside its records."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from headgate.errors import IntegrityBroken
from headgate.model.maintenance import Damage
from headgate.store.changes.stored_rows import exact_value, scales_of
from headgate.store.format.records import (
    CHUNK_CHARS,
    N_MASK,
    RID_SHIFT,
    chunk_sum,
    digest_of,
    long_notes,
    shelf_rows,
    sort_of,
    ts_of,
    typed_row,
)
from headgate.store.format.segments import (
    NO_TIME,
    Numbers,
    bounds_of,
    texts_and_positions,
    unpack_directory,
    words_in,
)
from headgate.store.format.streams import Shelf, StreamTable
from headgate.store.format.word_filter import word_filter
from headgate.store.sql.database import Database, Dialect
from headgate.store.sql.vector_blocks import PART_SHIFT, read_block
from headgate.store.sql.word_segments import GoneTexts, dead_texts, read_leaves

_AT_ONCE = 500
#: Indexes of the record table, and whether they hold live records alone.
_INDEXES = {"record_key": False, "record_seq": False, "record_sort": True}


class ShelfCheck:
    """One check of one shelf. `run` does it; `live` and `damages` hold what it found so far."""

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self.damages: list[Damage] = []
        self.live = 0
        self._database = database
        self._shelf = shelf
        self._stream = shelf.stream
        self._sql_of_some = select_rows(database.dialect, self._stream, "rows_of_range")
        self._sql_of_one = select_rows(database.dialect, self._stream, "row_of_number")
        self._shown = database.dialect.shown_sort
        self._seen = 0
        self._last_seq = 0
        #: Number and time of every live record.
        self._places: list[tuple[int, int | None]] = []

    def run(self) -> Iterator[int]:
        """Check everything in one read transaction; yields the number of live records now and then."""
        try:
            with self._database.reading(float("inf")):
                yield from self._run()
        except Exception as error:  # noqa: BLE001 - a damaged file can break what any line here relies on
            name = type(error).__name__
            self._damaged("unreadable", f"What is stored beside the records cannot be read ({name}).")

    def _run(self) -> Iterator[int]:
        row = self._database.one(self._database.sql["shelf_to_check"], (self._shelf.sid,))
        if row is None:
            return
        live, next_n, seq = row
        for rows in self._portions(next_n):
            if rows:
                self._check_records(rows)
            yield self.live
        self._check_counts(live, next_n, seq)
        self._check_exact_values()
        self._check_search_index()

    def _damaged(self, kind: str, detail: str, record_id: str | None = None) -> None:
        shelf = self._shelf
        self.damages.append(Damage(kind, detail, shelf.connection_id, shelf.name, record_id))

    def _portions(self, next_n: int) -> Iterator[Sequence[tuple[Any, ...]]]:
        first = self._shelf.sid << RID_SHIFT
        for start in range(0, next_n, _AT_ONCE):
            bounds = (first + start, first + start + _AT_ONCE)
            try:
                yield self._database.all(self._sql_of_some, bounds)
            except self._database.damage:
                yield list(self._one_by_one(range(*bounds), first + next_n))

    def _one_by_one(self, rids: range, end: int) -> Iterator[tuple[Any, ...]]:
        for rid in rids:
            try:
                row = self._database.one(self._sql_of_one, (rid,)) if rid < end else None
            except self._database.damage:
                self._damaged("unreadable", f"Row {rid & N_MASK} cannot be read.")
            else:
                if row is not None:
                    yield row

    # Records

    def _check_records(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in map(StoredRow.of, rows):
            self._seen += 1
            self._last_seq = max(self._last_seq, row.seq)
            if row.sid != row.rid >> RID_SHIFT:
                self._damaged("place", "The record lies in the place of another shelf.", row.record_id)
            if row.deleted:
                self._check_tombstone(row)
            else:
                self._check_live(row)

    def _check_tombstone(self, row: StoredRow) -> None:
        if row.body is not None or row.digest or row.typed_rid is not None:
            self._damaged("typed", "A deleted record has left something behind.", row.record_id)

    def _check_live(self, row: StoredRow) -> None:
        self.live += 1
        self._places.append((row.rid & N_MASK, row.ts))
        if row.body is None or digest_of(row.record_id, row.long, row.body) != row.digest:
            self._damaged("digest", "The record does not match its digest.", row.record_id)
            return
        values: dict[str, Any] = msgspec.json.decode(row.body)
        if row.long is not None:
            values.update(self._long_texts(row.rid, row.record_id, row.long))
        if (row.typed_rid, *row.typed) != typed_row(self._stream, row.rid, values):
            self._damaged("typed", "The typed values are not those of the record.", row.record_id)
        if (self._shown(row.sort), row.ts) != (sort_of(self._stream, values), ts_of(self._stream, values)):
            self._damaged("place", "The record's place in the order is not its own.", row.record_id)

    def _long_texts(self, rid: int, record_id: str, long: bytes) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name, (chars, digest) in long_notes(long).items():
            rows = self._database.all(self._database.sql["chunks_to_check"], (rid, self._stream.fids[name]))
            text = texts[name] = "".join(piece for _, _, piece in rows)
            is_complete = [n for n, _, _ in rows] == list(range((chars + CHUNK_CHARS - 1) // CHUNK_CHARS))
            sums_match = all(chunk_sum(piece) == stored for _, stored, piece in rows)
            if not (is_complete and sums_match and hashlib.sha256(text.encode()).digest() == digest):
                self._damaged("text", f"The long text '{name}' does not match its digest.", record_id)
        return texts

    # Beside the records

    def _check_counts(self, live: int, next_n: int, seq: int) -> None:
        if self.live != live or self._seen >= next_n or self._last_seq > seq:
            self._damaged("count", f"The shelf counts {live} records; {self.live} are there.")
        for index, holds_live in _INDEXES.items():
            condition = f" AND {self._database.sql['is_in_order']}" if holds_live else ""
            rows: int = self._database.value(
                self._database.sql["rows_in_index"].format(index=index, condition=condition),
                (self._shelf.sid,),
            )
            if rows != (self.live if holds_live else self._seen):
                self._damaged("index", f"{index} has {rows} rows for this shelf.")

    def _check_exact_values(self) -> None:
        """Compare the exact values of numbers with those numbers."""
        database, dialect, sid = self._database, self._database.dialect, self._shelf.sid
        scales = scales_of(database, self._stream)
        for column in self._stream.columns.values():
            if column.number not in scales:
                continue
            sql = database.sql["wrong_exact_rows"].format(
                table=dialect.typed_table(self._stream.stid),
                held=dialect.typed_column(column.scaled),
                value=exact_value(dialect, column, scales[column.number]),
            )
            for (rid,) in database.all(sql, shelf_rows(sid)):
                key = database.value(database.sql["record_key"], (rid,))
                self._damaged("typed", "The exact value of a number is another one.", key)

    def _check_search_index(self) -> None:
        """Compare the index of words and the vectors with the records, and each part of them with itself."""
        check = WordIndexCheck(self._database, self._shelf)
        vectors = check_vectors(self._database, self._shelf, self._places)
        for number, detail in itertools.chain(check.run(self._places), vectors):
            row = self._database.one(
                self._database.sql["record_key"], (self._shelf.sid << RID_SHIFT | number,)
            )
            self._damaged("index", detail, None if row is None else row[0])


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


#: What a statement selects before the typed values.
_OWN = [*(f"r.{name}" for name in StoredRow._fields[:-2]), "t.rid"]


def select_rows(dialect: Dialect, stream: StreamTable, condition: str) -> str:
    """Build the statement; the condition is the name of the part that says which rows."""
    typed = [dialect.typed_column(column) for column in stream.columns.values()]
    select = dialect.sql["stored_rows"].format(
        columns=", ".join([*_OWN, *typed]), table=dialect.typed_table(stream.stid)
    )
    return f"{select} {dialect.sql[condition]}"


class WordIndexCheck:
    """One check of the word index of one shelf."""

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self._database = database
        self._shelf = shelf
        self._segments: list[tuple[Any, ...]] = []

    def run(self, places: Sequence[tuple[int, int | None]]) -> Iterator[tuple[int, str]]:
        """Check everything; returns the number of a record (0: of none) and what is wrong with it.

        ``places`` are the number and the time of every live record.
        """
        self._segments = self._database.all(self._database.sql["segments_to_check"], (self._shelf.sid,))
        due = _pairs(
            np.array([number for number, _ in places], np.int64),
            np.array([NO_TIME if time is None else time for _, time in places], np.int64),
        )
        for fid in self._shelf.stream.searched.values():
            indexed = self._held(fid)
            missing, surplus = due - indexed, indexed - due
            yield from (
                (number, "The record is missing in the search index.") for number, _ in sorted(missing)
            )
            yield from ((number, "The search index has a text too many.") for number, _ in sorted(surplus))
        for gid, _, text_count, occurrence_count, indexed, firsts, bounds, *_ in self._segments:
            if not self._is_whole(gid, text_count, occurrence_count, indexed, firsts, bounds):
                yield 0, "A segment of the search index is damaged."

    def _held(self, fid: int) -> set[tuple[int, int]]:
        indexed: set[tuple[int, int]] = set()
        gone = GoneTexts.read(self._database, self._shelf.sid, fid)
        for gid, own, text_count, _, _, _, _, numbers, times, dead in self._segments:
            if own == fid and len(numbers) == 4 * text_count and len(times) == 8 * text_count:
                alive = ~gone.among(gid, np.frombuffer(numbers, "<u4"))
                alive[dead_texts(dead)[dead_texts(dead) < text_count]] = False
                pair = np.frombuffer(numbers, "<u4")[alive], np.frombuffer(times, "<i8")[alive]
                indexed |= _pairs(*pair)
        return indexed

    def _is_whole(
        self,
        gid: int,
        text_count: int,
        occurrence_count: int,
        held_words: bytes | None,
        firsts: bytes,
        bounds: bytes,
    ) -> bool:
        """Return whether the leaves of a segment are those that its directory names, and hold only its texts."""
        try:
            leaves = list(read_leaves(self._database, gid))
            directory = unpack_directory(firsts, bounds)
        except (IntegrityBroken, ValueError):
            return False
        total = 0
        for leaf in leaves:
            occurrences = np.frombuffer(leaf.occurrences, "<u4")
            texts, _ = texts_and_positions(occurrences)
            total += len(occurrences)
            if (
                int(np.frombuffer(leaf.counts, "<u4").sum()) != len(occurrences)
                or (texts >= text_count).any()
            ):
                return False
        words = [words_in(leaf.words) for leaf in leaves]
        is_filtered = held_words is None or held_words == word_filter(set(chain.from_iterable(words)))
        is_named = [word[0] for word in words] == list(directory.firsts)
        is_bounded = [*map(bounds_of, leaves)] == [*map(tuple, directory.bounds.tolist())]
        return is_named and is_bounded and is_filtered and total == occurrence_count


def _pairs(numbers: Numbers, times: Numbers) -> set[tuple[int, int]]:
    return set(zip(numbers.tolist(), times.tolist(), strict=True))


def check_vectors(
    database: Database, shelf: Shelf, places: Sequence[tuple[int, int | None]]
) -> Iterator[tuple[int, str]]:
    """Check everything; returns the number of a record (0: of none) and what is wrong with it.

    ``places`` are the number and the time of every live record.
    """
    first, last = shelf_rows(shelf.sid)
    # What is stale is not compared, and its record may have changed or gone.
    stale = {(rid - first, fid) for rid, fid in database.all(database.sql["stale_texts"], (first, last, -1))}
    times = {number: NO_TIME if time is None else time for number, time in places}
    for bid, fid, part in database.all(database.sql["vector_blocks_of_shelf"], (shelf.sid,)):
        try:
            block = read_block(database, bid)
        except IntegrityBroken:
            yield 0, "A block of vectors is damaged."
            continue
        for number, time in sorted(set(zip(block.numbers.tolist(), block.times.tolist(), strict=True))):
            if (number, fid) not in stale and (times.get(number) != time or number >> PART_SHIFT != part):
                yield number, "The vectors are not those of a record that is there."
