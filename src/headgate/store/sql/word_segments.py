"""Segments of the word index in the file: added by transactions, merged when there are many, purged by erasures."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate import memory
from headgate.errors import IntegrityBroken
from headgate.store.format import analyser
from headgate.store.format.analyser import index_tokens
from headgate.store.format.arrays import np
from headgate.store.format.records import N_MASK, RID_SHIFT
from headgate.store.format.segments import (
    OCCURRENCES_MOST,
    TEXTS_MOST,
    Leaf,
    Numbers,
    Part,
    Segment,
    Text,
    build,
    merge,
    unpack_texts,
)
from headgate.store.format.word_filter import word_filter

if TYPE_CHECKING:
    from headgate.store.sql.database import Database, TextChange

LEAF_SHIFT = 24
#: The number of a record, its time, and a text of it.
_Entering: TypeAlias = tuple[int, int | None, str]
#: So many characters are cut into words at a time.
_PORTION_CHARS = 2_000_000
#: So many segments of about the same size are merged by the transaction that adds the last of them.
_SIMILAR_MOST = 12
_SIZE_BITS = 3
#: So many texts that left a field may wait beside its segments.
_WAITING_MOST = 256
#: How much memory a merge takes for each occurrence, about.
_MERGE_BYTES = 64


class SegmentSize(NamedTuple):
    """How much a segment holds."""

    gid: int
    text_count: int
    occurrence_count: int
    dead_count: int

    @property
    def live(self) -> int:
        """How many of its texts have not left."""
        return self.text_count - self.dead_count


def write_changes(database: Database, changes: Iterable[TextChange]) -> None:
    """Write the texts that a transaction has put in and taken out; of several of one record the last counts."""
    fields: defaultdict[tuple[int, int], dict[int, TextChange]] = defaultdict(dict)
    gone: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for change in changes:
        key = (change.rid >> RID_SHIFT, change.fid)
        number = change.rid & N_MASK
        fields[key][number] = change
        if change.text is None:
            gone[key].add(number)
    for (sid, fid), numbers in gone.items():
        _note_gone(database, sid, fid, numbers)
    for (sid, fid), latest in sorted(fields.items(), key=lambda item: item[0]):
        entering = [
            (number, latest_change.time, latest_change.text)
            for number, latest_change in latest.items()
            if latest_change.text is not None
        ]
        for portion in _portions(entering):
            for segment in build([Text(number, time, index_tokens(text)) for number, time, text in portion]):
                _insert(database, sid, fid, segment)
        if entering:
            _merge_similar(database, sid, fid)


def _portions(texts: Sequence[_Entering]) -> Iterator[list[_Entering]]:
    """Part texts so that the words of one part fit in little memory: in memory a word takes ten times its length."""
    portion: list[_Entering] = []
    size = 0
    for text in texts:
        portion.append(text)
        size += len(text[2])
        if size > _PORTION_CHARS:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _note_gone(database: Database, sid: int, fid: int, gone: set[int]) -> None:
    """Note that the texts of some records have left all segments there are.

    Which segments hold them is looked for once for many: the numbers of a whole shelf are read for it.
    """
    last_gid: int | None = database.value(database.sql["last_segment"], (sid, fid))
    if last_gid is None:
        return
    waiting = GoneTexts.read(database, sid, fid).with_more(gone, last_gid)
    if len(waiting.numbers) > _WAITING_MOST:
        _note_dead(database, sid, fid, waiting)
        return
    for number in sorted(gone):
        database.run(database.sql["put_gone_text"], (sid, fid, number, last_gid))


class GoneTexts(NamedTuple):
    """Records whose texts left a field without being noted in its segments, and up to which segment."""

    numbers: Numbers
    last_gids: Numbers

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int]]) -> GoneTexts:
        numbers, last_gids = np.array(rows, np.int64).reshape(-1, 2).T
        return cls(numbers.astype(np.uint32), last_gids)

    @classmethod
    def read(cls, database: Database, sid: int, fid: int) -> GoneTexts:
        """Read those of one field of one shelf."""
        return cls.of(database.all(database.sql["gone_texts"], (sid, fid)))

    def with_more(self, gone: set[int], last_gid: int) -> GoneTexts:
        """Add records whose texts left all segments up to now."""
        known = dict(zip(self.numbers.tolist(), self.last_gids.tolist(), strict=True))
        return GoneTexts.of([*(known | dict.fromkeys(gone, last_gid)).items()])

    def among(self, gid: int, numbers: Numbers) -> Numbers:
        """Return which texts of a segment have left, by the numbers of their records."""
        left = self.numbers[self.last_gids >= gid]
        return np.isin(numbers, left) if len(left) else np.zeros(len(numbers), np.bool_)


def note_every_dead(database: Database) -> None:
    """Note in the segments of every field which of their texts have left."""
    for sid, fid in database.all(database.sql["fields_with_gone_texts"]):
        _note_dead(database, sid, fid, GoneTexts.read(database, sid, fid))


def _note_dead(database: Database, sid: int, fid: int, gone: GoneTexts) -> None:
    database.run(database.sql["delete_gone_texts"], (sid, fid))
    for gid, numbers, dead in database.all(database.sql["numbers_of_field"], (sid, fid)):
        places = np.flatnonzero(gone.among(gid, np.frombuffer(numbers, "<u4")))
        if not len(places):
            continue
        every = np.union1d(dead_texts(dead), places)
        if len(every) * 4 == len(numbers):
            delete_segment(database, gid)
        else:
            database.run(database.sql["set_dead_texts"], (every.astype("<u2").tobytes(), gid))


def dead_texts(dead: bytes | None) -> Numbers:
    return np.frombuffer(dead or b"", "<u2")


def _insert(database: Database, sid: int, fid: int, segment: Segment) -> None:
    gid: int = database.value(
        database.sql["insert_word_segment"],
        (
            sid,
            fid,
            len(segment.texts),
            segment.occurrence_count,
            segment.languages,
            word_filter(segment.words),
            *segment.directory.pack(),
            *segment.texts.pack(),
        ),
    )
    first = gid << LEAF_SHIFT
    database.many(
        database.sql["insert_word_leaf"],
        [
            (first + number, leaf.words, leaf_sum(leaf), leaf.counts, leaf.occurrences)
            for number, leaf in enumerate(segment.leaves)
        ],
    )


def leaf_sum(leaf: Leaf) -> int:
    """Return the checksum that a leaf is checked against whenever it is read."""
    words, counts, occurrences = leaf
    return zlib.crc32(occurrences, zlib.crc32(counts, zlib.crc32(words)))


def delete_segment(database: Database, gid: int) -> None:
    """Remove a segment with its leaves."""
    database.run(database.sql["delete_word_leaves"], (gid << LEAF_SHIFT, (gid + 1) << LEAF_SHIFT))
    database.run(database.sql["delete_word_segment"], (gid,))


def read_leaves(database: Database, gid: int) -> Iterator[Leaf]:
    """Read the leaves of a segment in order, once the first is needed: a merge reads one segment after the other.

    Raises:
        IntegrityBroken: one does not match its checksum.
    """
    rows = database.all(database.sql["word_leaves"], (gid << LEAF_SHIFT, (gid + 1) << LEAF_SHIFT))
    yield from (checked_leaf(*row) for row in rows)


def checked_leaf(words: bytes, crc: int, counts: bytes, occurrences: bytes) -> Leaf:
    """Compare a leaf with its checksum."""
    leaf = Leaf(words, counts, occurrences)
    if leaf_sum(leaf) != crc:
        raise IntegrityBroken("The word index is damaged.", hint="Run 'headgate store fsck'.")
    return leaf


# Merging


def merge_segments(database: Database, sid: int, fid: int, gids: Sequence[int]) -> None:
    """Put one segment in the place of several, without the texts that have left."""
    gone = GoneTexts.read(database, sid, fid)
    merged = merge([_part(database, gid, gone) for gid in gids])
    for gid in gids:
        delete_segment(database, gid)
    if merged is not None:
        _insert(database, sid, fid, merged)


def _part(database: Database, gid: int, gone: GoneTexts) -> Part:
    row = database.one(database.sql["word_segment_texts"], (gid,))
    assert row is not None
    numbers, times, lengths, dead = row
    texts = unpack_texts(numbers, times, lengths)
    stays = ~gone.among(gid, texts.numbers)
    stays[dead_texts(dead)] = False
    return Part(texts, read_leaves(database, gid), stays)


def _merge_similar(database: Database, sid: int, fid: int) -> None:
    """Merge the segments of one size when there are many: each text is written anew only a few times."""
    by_size: defaultdict[int, list[SegmentSize]] = defaultdict(list)
    for size in database.rows(SegmentSize, database.sql["word_segments_of_field"], (sid, fid)):
        by_size[size.text_count.bit_length() // _SIZE_BITS].append(size)
    for _, similar in sorted(by_size.items()):
        if len(similar) >= _SIMILAR_MOST:
            chosen = within_limits(sorted(similar, key=lambda size: size.live))
            if len(chosen) > 1:
                merge_segments(database, sid, fid, [size.gid for size in chosen])


def within_limits(sizes: Iterable[SegmentSize]) -> list[SegmentSize]:
    chosen: list[SegmentSize] = []
    texts = occurrences = 0
    most = min(OCCURRENCES_MOST, (memory.left_bytes() - memory.RESERVE_BYTES) // _MERGE_BYTES)
    for size in sizes:
        texts += size.live
        occurrences += size.occurrence_count
        if texts > TEXTS_MOST or occurrences > most:
            break
        chosen.append(size)
    return chosen


def purge_record(database: Database, sid: int, number: int) -> None:
    """Write the segments anew that hold a text of a record, dead or not, so that no word of it is left."""
    for gid, fid, numbers in database.all(database.sql["numbers_of_shelf"], (sid,)):
        if number in np.frombuffer(numbers, "<u4"):
            merge_segments(database, sid, fid, [gid])


def is_current(database: Database) -> bool:
    """Return whether the index is complete and was made by the rules of this version."""
    return database.value(database.sql["words_version"]) == analyser.VERSION
