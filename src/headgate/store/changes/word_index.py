"""The word index as a whole: it is made when a store is opened that has none, or one that was made by other rules.

It is filled in portions, each of them a transaction that also notes how far it got: a process that is stopped in
between goes on where it was. A small store has its index when it is opened. That of a large one is filled in idle
time, while records come and go. A text that other rules put in stays until it is put in again, so that the older
index answers meanwhile.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from headgate.store.changes.stored_rows import stored_rows, values_of
from headgate.store.format import analyser
from headgate.store.format.records import RID_SHIFT, search_texts
from headgate.store.format.streams import Shelf, StreamTable
from headgate.store.sql.catalog import bump_catalog, current
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import (
    SegmentSize,
    delete_segment,
    is_current,
    merge_segments,
    note_every_dead,
    within_limits,
)
from headgate.telemetry import get_logger

#: Records of one portion.
_AT_ONCE = 2000
#: How long the opening of a store may wait for its index.
OPENING_SECONDS = 1.0


def bring_up_to_date(database: Database, seconds: float = float("inf")) -> None:
    """Make the index if there is none, or it was made by other rules; what takes longer is left to idle time.

    So is what damage keeps it from: a store that finds fewer words is better than one that does not open.
    """
    end = time.monotonic() + seconds
    with suppress(*database.damage):
        while not is_current(database) and time.monotonic() < end:
            _make_portion(database)


class WordFilling:
    """An idle task: make the index that is missing, or was made by other rules, one portion at a step."""

    name = "word index"

    def plan(self, database: Database) -> bool:
        return not is_current(database)

    def step(self, database: Database) -> bool:
        _make_portion(database)
        return not is_current(database)


def _make_portion(database: Database) -> None:
    with database.writing():
        # Another process may have gone on while this one waited for its turn.
        if not is_current(database):
            _go_on(database)


def _go_on(database: Database) -> None:
    """Begin, fill one portion, or note that all are filled."""
    if database.value(database.sql["words_version"]) != -analyser.VERSION:
        _begin(database)
    after: int = database.value(database.sql["words_filled"])
    rows = database.all(database.sql["live_records_after"], (after, _AT_ONCE))
    shelves = _shelves(database)
    for rid, ts, long, body in rows:
        stream = shelves[rid >> RID_SHIFT]
        # Other rules may have put it in, of other fields too, or it was written since the index was begun.
        database.texts.take_out(rid, stream.fids.values())
        if stream.searched:
            values = values_of(database, stream, rid, long, body)
            database.texts.put(rid, ts, search_texts(stream, values or {}))
    if rows:
        database.run(database.sql["set_words_filled"], (rows[-1][0],))
        get_logger().info("word_index_filled", count=len(rows))
    else:
        # Segments of other rules, of which no text is left, go.
        note_every_dead(database)
        database.run(database.sql["set_words_version"], (analyser.VERSION,))


def _begin(database: Database) -> None:
    catalog = current(database)
    for stream in (*catalog.streams.values(), *catalog.retired.values()):
        for name in stream.declaration.query.lexical_fields:
            database.run(database.sql["mark_searched_field"], (stream.stid, name))
    bump_catalog(database)
    database.run(database.sql["set_words_filled"], (0,))
    # A negative number: the index is being made by the rules of this version.
    database.run(database.sql["set_words_version"], (-analyser.VERSION,))


def _shelves(database: Database) -> dict[int, StreamTable]:
    catalog = current(database)
    return {shelf.sid: shelf.stream for shelf in catalog.all_shelves}


def put_texts(database: Database, stream: StreamTable, sid: int, fids: frozenset[int]) -> None:
    """Put some fields of a shelf's live records into the index, a portion at a time."""
    for rows in stored_rows(database, stream, sid):
        for rid, ts, values in rows:
            database.texts.put(
                rid, ts, ((fid, text) for fid, text in search_texts(stream, values or {}) if fid in fids)
            )
        # A large shelf's texts must not all wait in memory.
        database.texts.flush(database)


def delete_texts(database: Database, shelf: Shelf) -> None:
    for gid, _, _ in database.all(database.sql["numbers_of_shelf"], (shelf.sid,)):
        delete_segment(database, gid)
    database.run(database.sql["delete_gone_of_shelf"], (shelf.sid,))


#: In idle time a segment is merged into one that is at most so many times as large.
_TIMES_LARGER = 16


#: A segment is written anew when one in so many of its texts has left.
_DEAD_ONE_IN = 4


def worth_merging(sizes: Sequence[SegmentSize]) -> list[int]:
    """Choose the segments of one field that should be one, the small ones first; empty: all is well.

    A large segment is written anew only when what joins it is not much smaller.
    """
    in_order = sorted(sizes, key=lambda size: (size.live, size.gid))
    for start in range(len(in_order) - 1):
        chosen = within_limits(_not_much_larger(in_order[start:]))
        if len(chosen) > 1:
            return [size.gid for size in chosen]
    return [size.gid for size in sizes if size.dead_count * _DEAD_ONE_IN > size.text_count][:1]


def _not_much_larger(sizes: Iterable[SegmentSize]) -> Iterator[SegmentSize]:
    total = 0
    for size in sizes:
        if total and size.live > _TIMES_LARGER * total:
            return
        yield size
        total += size.live


class WordMerging:
    """An idle task: merge segments, one field of one shelf at a step."""

    name = "merging of the word index"

    def plan(self, database: Database) -> bool:
        return self._next(database) is not None

    def step(self, database: Database) -> bool:
        """Merge some segments; returns whether more may be left."""
        with database.writing():
            segments = self._next(database)
            if segments is not None:
                merge_segments(database, *segments)
        return segments is not None

    def _next(self, database: Database) -> tuple[int, int, list[int]] | None:
        fields: defaultdict[tuple[int, int], list[SegmentSize]] = defaultdict(list)
        for sid, fid, *size in database.all(database.sql["word_segment_sizes"]):
            fields[sid, fid].append(SegmentSize._make(size))
        for (sid, fid), sizes in fields.items():
            gids = worth_merging(sizes)
            if gids:
                return sid, fid, gids
        return None
