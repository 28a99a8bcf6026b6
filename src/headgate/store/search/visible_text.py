"""The part of the word index that a search may see, and no other part of it.

Segments belong to one field of one shelf, so those outside the reach are never looked at. A segment of which only some
texts may be seen, because a grant ends at a time or names records, is narrowed to these once and remembered: no word
that stands only in hidden text makes any difference to the work of a search.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from headgate import memory
from headgate.model.ids import FieldName
from headgate.model.plan import SearchReach
from headgate.store.format.arrays import np
from headgate.store.format.languages import DEFAULT_LANGUAGE, languages_in
from headgate.store.format.records import RID_SHIFT
from headgate.store.format.segments import (
    POSITION_BITS,
    Directory,
    Leaf,
    Numbers,
    Part,
    Segment,
    Texts,
    narrow,
    unpack_directory,
    unpack_texts,
)
from headgate.store.format.word_filter import FilterTable, word_filter
from headgate.store.search.ranking import Occurrences, TextColumns, nowhere
from headgate.store.search.scope import Bounds, SearchedField, SearchScope, SizedMemory, inside
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import LEAF_SHIFT, GoneTexts, checked_leaf, dead_texts, read_leaves

#: What a reader remembers of segments, in bytes, and for how many searched parts of the store.
SEGMENT_BYTES = 256 * 1024 * 1024
_TEXTS_MOST = 16
#: How much memory a search takes for each occurrence of its words, about.
_OCCURRENCE_BYTES = 64
#: How many leaves are read by one statement.
_LEAVES_AT_ONCE = 1024
_END = b"\0"
_LEAF_MASK = (1 << LEAF_SHIFT) - 1
#: No word begins with this byte.
_AFTER_ALL = b"\xff"


@dataclass(frozen=True, slots=True)
class _View:
    """A segment, or what may be seen of it."""

    gid: int
    texts: Texts
    directory: Directory
    languages: int
    #: Which words it cannot hold; None: that is not known.
    filter: bytes | None
    #: Which of the texts are there; None: all.
    alive: Numbers | None
    #: None: they are in the file.
    leaves: Sequence[Leaf] | None = None

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, about."""
        size = sum(sum(map(len, leaf)) for leaf in self.leaves or ())
        size += len(self.filter or b"")
        return 14 * len(self.texts) + 80 * len(self.directory.firsts) + size + 1000


class WordPlace(NamedTuple):
    """Where a word stands: in which leaf, and at which place in that leaf."""

    word: bytes
    lid: int
    place: int


class FoundWords(NamedTuple):
    """Where some words stand, and how often each does."""

    occurrences: Occurrences
    counts: Mapping[bytes, int]
    #: How many occurrences were read for it.
    read: int = 0
    #: Whether some places were left out, because there are too many.
    is_cut: bool = False


class _SegmentRows(NamedTuple):
    """What decides which texts may be seen: the segments, and the records whose texts left them."""

    #: Each with how many of its texts left, its shelf and its field.
    segments: tuple[tuple[int, int, int, int], ...]
    #: Shelf, field, number of the record, and up to which segment.
    gone: tuple[tuple[int, int, int, int], ...]

    def gone_by_field(self) -> dict[tuple[int, int], GoneTexts]:
        by_field: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for sid, fid, number, last_gid in self.gone:
            by_field[sid, fid].append((number, last_gid))
        return {key: GoneTexts.of(rows) for key, rows in by_field.items()}


class SegmentMemory:
    """The segments that a reader has seen, the least recently used of them forgotten first."""

    def __init__(self) -> None:
        self._views = SizedMemory[tuple[int, int, Bounds | None], _View](SEGMENT_BYTES)
        self._texts: OrderedDict[tuple[SearchReach, ...], tuple[int, _SegmentRows, VisibleText]] = (
            OrderedDict()
        )

    def visible_text(
        self, database: Database, reaches: tuple[SearchReach, ...], scope: SearchScope
    ) -> VisibleText:
        """Return what a search may see; made again only when it has changed."""
        known = self._texts.get(reaches)
        version = database.snapshot_version()
        if known is not None and known[0] == version:
            return known[2]
        rows = _SegmentRows(
            tuple(database.all(database.sql["visible_segments"], (scope.pairs,))),
            tuple(database.all(database.sql["visible_gone_texts"], (scope.pairs,))),
        )
        text = known[2] if known is not None and known[1] == rows else self._read(database, scope, rows)
        self._texts[reaches] = (version, rows, text)
        self._texts.move_to_end(reaches)
        if len(self._texts) > _TEXTS_MOST:
            self._texts.popitem(last=False)
        return text

    def _read(self, database: Database, scope: SearchScope, rows: _SegmentRows) -> VisibleText:
        views: list[_View] = []
        fields: list[SearchedField] = []
        gone = rows.gone_by_field()
        for gid, dead_count, sid, fid in rows.segments:
            whole = self._views.get((gid, dead_count, None), lambda gid=gid: _read_view(database, gid))
            assert whole is not None
            field_seen = scope.fields[sid, fid]
            view = whole
            if not field_seen.bounds.is_open:
                view = self._views.get(
                    (gid, dead_count, field_seen.bounds),
                    lambda whole=whole, field_seen=field_seen: _narrowed(database, whole, field_seen),
                )
            if view is not None:
                left = gone.get((sid, fid))
                views.append(view if left is None else _without(view, left))
                fields.append(field_seen)
        return _visible_text(views, fields)


def _without(view: _View, gone: GoneTexts) -> _View:
    """Leave out the texts that left and are not noted in the segment yet."""
    stays = ~gone.among(view.gid, view.texts.numbers)
    if stays.all():
        return view
    return replace(view, alive=stays if view.alive is None else view.alive & stays)


def _read_view(database: Database, gid: int) -> _View:
    row = database.one(database.sql["word_segment_head"], (gid,))
    assert row is not None
    languages, dead, held_words, firsts, bounds, numbers, times, lengths = row
    texts = unpack_texts(numbers, times, lengths)
    alive = None
    if dead is not None:
        alive = np.ones(len(texts), np.bool_)
        alive[dead_texts(dead)] = False
    return _View(gid, texts, unpack_directory(firsts, bounds), languages, held_words, alive)


def _narrowed(database: Database, view: _View, field_seen: SearchedField) -> _View | None:
    """Make the segment of those texts alone that may be seen; None: there are none."""
    stays = inside(database, field_seen, view.texts.numbers, view.texts.times)
    if view.alive is not None:
        stays &= view.alive
    if stays.all():
        return view
    if not stays.any():
        return None
    return _in_memory(view.gid, narrow(Part(view.texts, read_leaves(database, view.gid), stays)))


def _in_memory(gid: int, segment: Segment) -> _View:
    return _View(
        gid,
        segment.texts,
        segment.directory,
        segment.languages,
        word_filter(segment.words),
        None,
        segment.leaves,
    )


@dataclass(frozen=True, slots=True)
class VisibleText:
    """All texts that a search may see, numbered through: those of one segment after those of another."""

    views: Sequence[_View]
    fields: Sequence[SearchedField]
    #: Which texts are there; None: all.
    alive: Numbers | None
    #: Each segment is a run of texts.
    columns: TextColumns
    #: The time of each record, by its number; the smallest number for none, and where it may not be seen.
    record_times: Numbers
    #: How many records there are, about; what the rarity of a word is counted against.
    record_count: int
    languages: tuple[str, ...]
    #: The first number of each shelf's records, in the order of the shelves.
    _shelves: Numbers = field(repr=False)
    _record_starts: Numbers = field(repr=False)
    #: The place of each segment among the views, and the leaves of those that are in memory.
    _numbers: Mapping[int, int] = field(repr=False)
    _in_memory: Mapping[int, Sequence[Leaf]] = field(repr=False)
    _filters: FilterTable = field(repr=False)

    def rids(self, records: Numbers) -> Numbers:
        places = np.searchsorted(self._record_starts, records, "right") - 1
        return self._shelves[places] << RID_SHIFT | (records - self._record_starts[places])

    def field_names(self, texts: Numbers) -> list[FieldName]:
        runs: list[int] = self.columns.runs_of(texts).tolist()
        return [self.fields[run].name for run in runs]

    # Finding words

    def word(self, database: Database, word: bytes) -> list[WordPlace]:
        needle = b"\0%b\0" % word
        return [
            WordPlace(word, lid, words.count(_END, 0, words.index(needle)))
            for lid, words in self._leaf_words(database, self._leaf_ids(word, word), needle)
        ]

    def beginning(
        self, database: Database, start: bytes, accepts: Callable[[bytes], bool] | None = None
    ) -> list[WordPlace]:
        """Find the places of the words that begin with some letters and are accepted."""
        needle = b"\0%b" % start
        rows = [
            # The words that begin so stand together: from the first of them to the end of the last.
            (lid, words, words.index(needle), _end_of_word(words, words.rindex(needle)))
            for lid, words in self._leaf_words(database, self._leaf_ids(start, start + _AFTER_ALL), needle)
        ]
        if accepts is None:
            return [
                WordPlace(word, lid, place)
                for lid, words, low, high in rows
                for place, word in enumerate(words[low + 1 : high].split(_END), words.count(_END, 0, low))
            ]
        # Most words are in many leaves: each is judged once.
        distinct = set(_END.join(words[low + 1 : high] for _, words, low, high in rows).split(_END))
        return [
            WordPlace(word, lid, words.count(_END, 0, at))
            for word in filter(accepts, sorted(distinct - {b""}))
            for lid, words, low, high in rows
            if (at := words.find(b"\0%b\0" % word, low, high + 1)) >= 0
        ]

    def any_of(self, database: Database, words: Collection[bytes]) -> list[WordPlace]:
        """Find the places of those of many words that are there; only leaves that may hold one are read."""
        if not self.views or not words:
            return []
        every = list(words)
        wanted: defaultdict[int, list[bytes]] = defaultdict(list)
        numbers, places = np.nonzero(self._filters.may_hold(every))
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True):
            view, word = self.views[number], every[place]
            for leaf in view.directory.leaves(word, word):
                wanted[view.gid << LEAF_SHIFT | leaf].append(word)
        return [
            WordPlace(word, lid, leaf_words.count(_END, 0, at))
            for lid, leaf_words in self._leaf_words(database, list(wanted), b"")
            for word in wanted[lid]
            if (at := leaf_words.find(b"\0%b\0" % word)) >= 0
        ]

    def _leaf_ids(self, low: bytes, high: bytes) -> list[int]:
        """Return the leaves that may hold words from one to another, both included."""
        lids: list[int] = []
        for view in self.views:
            leaves, first = view.directory.leaves(low, high), view.gid << LEAF_SHIFT
            lids += range(first + leaves.start, first + leaves.stop)
        return lids

    def _leaf_words(self, database: Database, lids: Sequence[int], needle: bytes) -> list[tuple[int, bytes]]:
        """Read the words of those leaves that hold the needle."""
        stored, in_memory = self._apart(lids)
        inside = [(lid, leaf.words) for lid, leaf in in_memory.items() if needle in leaf.words]
        if stored:
            inside += database.all(database.sql["leaf_words"], (msgspec.json.encode(stored).decode(), needle))
        return inside

    def _apart(self, lids: Sequence[int]) -> tuple[Sequence[int], dict[int, Leaf]]:
        """Tell the leaves in the file from those in memory."""
        if not self._in_memory:
            return lids, {}
        in_memory = {
            lid: leaves[lid & _LEAF_MASK]
            for lid in lids
            if (leaves := self._in_memory.get(lid >> LEAF_SHIFT)) is not None
        }
        return [lid for lid in lids if lid not in in_memory], in_memory

    # Reading where they stand

    def occurrences(
        self, database: Database, places: Sequence[WordPlace], factors: Mapping[bytes, float], most: int
    ) -> FoundWords:
        """Read where words stand, as far as that may be seen; a word that is nowhere visible is not counted.

        At most so many occurrences are read, those of the newest segments first.
        """
        if not places:
            return FoundWords(nowhere(), {})
        leaves, read = self._leaves_within(database, {at.lid for at in places}, most)
        every, places = places, [at for at in places if at.lid in leaves]
        parts = [_part_of(leaves[lid], place) for _, lid, place in places]
        sizes = [len(part) // 4 for part in parts]
        memory.require(sum(sizes) * _OCCURRENCE_BYTES)
        runs = [self._numbers[lid >> LEAF_SHIFT] for _, lid, _ in places]
        keys = _joined_keys(parts, self.columns.run_starts[runs] << POSITION_BITS)
        weights = _repeated([factors[word] for word, _, _ in places], sizes)
        if self.alive is not None:
            is_there = self.alive[keys >> POSITION_BITS]
            starts = list(accumulate(sizes, initial=0))[:-1]
            sizes = np.add.reduceat(is_there, starts, dtype=np.int64).tolist()
            keys, weights = keys[is_there], weights[is_there]
        counts: Counter[bytes] = Counter()
        for at, size in zip(places, sizes, strict=True):
            counts[at.word] += size
        return FoundWords(Occurrences(keys, weights), +counts, read, len(places) < len(every))

    def _leaves_within(
        self, database: Database, lids: Collection[int], most: int
    ) -> tuple[Mapping[int, Leaf], int]:
        """Read leaves until they hold so many occurrences, but at least one; returns them, and how many they hold."""
        in_order, read = sorted(lids, reverse=True), 0
        leaves: dict[int, Leaf] = {}
        for start in range(0, len(in_order), _LEAVES_AT_ONCE):
            some = self._leaves(database, in_order[start : start + _LEAVES_AT_ONCE])
            for lid in in_order[start : start + _LEAVES_AT_ONCE]:
                size = len(some[lid].occurrences) // 4
                if leaves and read + size > most:
                    return leaves, read
                leaves[lid] = some[lid]
                read += size
        return leaves, read

    def _leaves(self, database: Database, lids: Sequence[int]) -> Mapping[int, Leaf]:
        stored, leaves = self._apart(lids)
        if stored:
            for lid, *row in database.all(
                database.sql["leaf_occurrences"], (msgspec.json.encode(stored).decode(),)
            ):
                leaves[lid] = checked_leaf(*row)
        return leaves


def _joined_keys(parts: Sequence[bytes], starts: Numbers) -> Numbers:
    """Put occurrences of many leaves in one column; each is written once, with the first text of its segment added."""
    keys = np.empty(sum(map(len, parts)) // 4, np.int64)
    at = 0
    for part, start in zip(parts, starts, strict=True):
        end = at + len(part) // 4
        np.add(np.frombuffer(part, "<u4"), start, out=keys[at:end])
        at = end
    return keys


def _repeated(values: Sequence[float], sizes: Sequence[int]) -> Numbers:
    """Repeat each value so often; one that is the same everywhere takes no memory."""
    if len(set(values)) == 1:
        return np.broadcast_to(np.float64(values[0]), sum(sizes))
    return np.repeat(np.array(values), sizes)


def _part_of(leaf: Leaf, place: int) -> bytes:
    """Return the occurrences of the word at a place of a leaf."""
    counts = memoryview(leaf.counts).cast("I")
    if len(counts) == 1:
        return leaf.occurrences
    before = 4 * sum(counts[:place])
    return leaf.occurrences[before : before + 4 * counts[place]]


def _end_of_word(words: bytes, at: int) -> int:
    """Find where a word ends that begins after a place; without any letters to begin with, the last one does."""
    end = words.find(_END, at + 1)
    return end if end >= 0 else at


def _visible_text(views: Sequence[_View], fields: Sequence[SearchedField]) -> VisibleText:
    sizes = np.array([len(view.texts) for view in views], np.int64)
    shelves, record_starts, record_end = _record_spans(views, fields)
    first = dict(zip(shelves, record_starts, strict=True))
    kind = np.int32 if record_end <= np.iinfo(np.int32).max else np.int64
    records = [
        view.texts.numbers.astype(kind) + kind(first[searched.sid])
        for view, searched in zip(views, fields, strict=True)
    ]
    times = [
        view.texts.times if searched.shows_time else np.full(len(view.texts), np.iinfo(np.int64).min)
        for view, searched in zip(views, fields, strict=True)
    ]
    alive = None
    if any(view.alive is not None for view in views):
        alive = np.concatenate(
            [np.ones(len(view.texts), np.bool_) if view.alive is None else view.alive for view in views]
        )
    columns = TextColumns(
        _joined(records, kind),
        _joined([view.texts.lengths for view in views], np.uint16),
        np.cumsum(sizes) - sizes,
        np.array([searched.weight for searched in fields]),
        np.array([searched.is_quoted for searched in fields], np.bool_),
        record_end,
    )
    bits = 0
    for view in views:
        bits |= view.languages
    return VisibleText(
        views,
        fields,
        alive,
        columns,
        _record_times(columns, _joined(times, np.int64), alive),
        _record_count(views, fields),
        languages_in(bits) or (DEFAULT_LANGUAGE,),
        np.array(shelves, np.int64),
        np.array(record_starts, np.int64),
        {view.gid: number for number, view in enumerate(views)},
        {view.gid: view.leaves for view in views if view.leaves is not None},
        FilterTable([view.filter for view in views]),
    )


def _record_times(columns: TextColumns, times: Numbers, alive: Numbers | None) -> Numbers:
    record_times = np.full(columns.record_end, np.iinfo(np.int64).min)
    chosen = slice(None) if alive is None else alive
    record_times[columns.records[chosen]] = times[chosen]
    return record_times


def _joined(parts: Sequence[Numbers], kind: Any) -> Numbers:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _record_spans(
    views: Sequence[_View], fields: Sequence[SearchedField]
) -> tuple[list[int], list[int], int]:
    """Number the records of all shelves through: the shelves, the first number of each, and the end."""
    most: dict[int, int] = {}
    for view, searched in zip(views, fields, strict=True):
        if len(view.texts):
            most[searched.sid] = max(most.get(searched.sid, 0), int(view.texts.numbers.max()))
    shelves = sorted(most)
    starts: list[int] = []
    end = 0
    for sid in shelves:
        starts.append(end)
        end += most[sid] + 1
    return shelves, starts, end


def _record_count(views: Sequence[_View], fields: Sequence[SearchedField]) -> int:
    """Count records by the field of each shelf that has the most texts."""
    counts: dict[tuple[int, int], int] = {}
    for view, searched in zip(views, fields, strict=True):
        alive = len(view.texts) if view.alive is None else int(view.alive.sum())
        counts[searched.sid, searched.fid] = counts.get((searched.sid, searched.fid), 0) + alive
    most: dict[int, int] = {}
    for (sid, _), count in counts.items():
        most[sid] = max(most.get(sid, 0), count)
    return sum(most.values())
