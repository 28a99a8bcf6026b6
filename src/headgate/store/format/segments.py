"""Segments: the stored form of the words of some texts of one field of one shelf. Pure; engines store the bytes.

A segment numbers its texts by time and holds, for every word in order, each occurrence as one number::

    occurrence = text << 16 | position of the word in the text

The words lie in leaves of a few kilobytes, and a directory says which words each leaf holds. So a word, or all words
with the same beginning, are found by reading only the leaves that hold them, of only those segments that may be seen.
A segment never changes: a text that leaves is noted as dead beside it, and is dropped when segments are merged.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from headgate.store.format.arrays import np
from headgate.store.format.languages import FREQUENT, bits_of, languages_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[Any]"
#: The time of a text without one: before all others.
NO_TIME = -(1 << 63)
#: A merged segment has at most so many texts, and so many occurrences: merging takes time and memory.
TEXTS_MOST = 65_535
OCCURRENCES_MOST = 4_000_000
#: A text with more words is cut into parts; the parts overlap, so that a phrase lies whole in one of them.
PART_WORDS = 65_000
PART_OVERLAP = 32
POSITION_BITS = 16
_POSITION_MASK = (1 << POSITION_BITS) - 1
_LENGTH_MOST = (1 << 16) - 1
_LEAF_OCCURRENCES = 1024
_LEAF_WORDS = 128
#: A frequent word has leaves of its word alone, so that a time range reads only some of them.
_PART_OCCURRENCES = 16_384
_SEPARATOR = b"\0"


class Text(NamedTuple):
    """One text to be indexed: the number of its record in the shelf, its time, and its words."""

    number: int
    time: int | None
    words: Sequence[bytes]


class Leaf(NamedTuple):
    """Some words in order, how often each occurs, and the occurrences of one after those of the other."""

    words: bytes
    counts: bytes
    occurrences: bytes


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a segment, in order of time: the record's number, its time, and how many words it has."""

    numbers: Numbers
    times: Numbers
    lengths: Numbers

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.numbers)

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """Write the three columns."""
        return (
            self.numbers.astype("<u4").tobytes(),
            self.times.astype("<i8").tobytes(),
            self.lengths.astype("<u2").tobytes(),
        )


def unpack_texts(numbers: bytes, times: bytes, lengths: bytes) -> Texts:
    """Read the three columns."""
    return Texts(np.frombuffer(numbers, "<u4"), np.frombuffer(times, "<i8"), np.frombuffer(lengths, "<u2"))


@dataclass(frozen=True, slots=True)
class Directory:
    """The first word of every leaf, and which texts a leaf of a single word goes over."""

    firsts: Sequence[bytes]
    #: For each leaf the first and the last text with an occurrence in it.
    bounds: Numbers

    def pack(self) -> tuple[bytes, bytes]:
        """Write the words and the bounds."""
        return _SEPARATOR.join(self.firsts), self.bounds.astype("<u2").tobytes()

    def leaves(self, low: bytes, high: bytes) -> range:
        """Return the leaves that may hold words from one to another, both included."""
        end = bisect_right(self.firsts, high)
        start = bisect_left(self.firsts, low, 0, end)
        if start and (start == end or self.firsts[start] != low):
            start -= 1
        return range(start, end)


def unpack_directory(firsts: bytes, bounds: bytes) -> Directory:
    """Read the words and the bounds."""
    words = firsts.split(_SEPARATOR) if firsts else []
    return Directory(words, np.frombuffer(bounds, "<u2").reshape(-1, 2))


@dataclass(frozen=True, slots=True)
class Segment:
    """A whole segment."""

    texts: Texts
    directory: Directory
    leaves: Sequence[Leaf]
    words: Sequence[bytes]
    #: The languages of its texts, as bits.
    languages: int
    occurrence_count: int


@dataclass(frozen=True, slots=True)
class _Postings:
    """The words of a segment, how often each occurs, and all occurrences in the order of the words."""

    words: Sequence[bytes]
    counts: Numbers
    occurrences: Numbers


def build(texts: Iterable[Text]) -> list[Segment]:
    """Make the segments of some texts: one, unless there are very many."""
    parts = list(texts)
    if max((len(words) for _, _, words in parts), default=0) > PART_WORDS:
        parts = [part for text in parts for part in _parts(text)]
    times = np.array([NO_TIME if time is None else time for _, time, _ in parts], np.int64)
    numbers = np.array([number for number, _, _ in parts], np.uint32)
    order = np.lexsort((numbers, times))
    times, numbers = times[order], numbers[order]
    words = [parts[at].words for at in order.tolist()]
    return [
        _build(numbers[at : at + TEXTS_MOST], times[at : at + TEXTS_MOST], words[at : at + TEXTS_MOST])
        for at in range(0, len(parts), TEXTS_MOST)
    ]


def _parts(text: Text) -> Iterable[Text]:
    words = text.words
    starts = range(0, len(words), PART_WORDS - PART_OVERLAP)
    return (Text(text.number, text.time, words[at : at + PART_WORDS]) for at in starts)


def _build(numbers: Numbers, times: Numbers, words_of_texts: Sequence[Sequence[bytes]]) -> Segment:
    lengths = np.array(list(map(len, words_of_texts)), np.int64)
    every = list(chain.from_iterable(words_of_texts))
    total = len(every)
    words, keys = _numbered(every, total)
    starts = np.cumsum(lengths) - lengths
    texts = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    positions = np.arange(total, dtype=np.uint64) - np.repeat(starts.astype(np.uint64), lengths)
    keys = keys << np.uint64(32) | texts << np.uint64(POSITION_BITS) | positions
    texts_of_segment = Texts(numbers, times, np.minimum(lengths, _LENGTH_MOST).astype(np.uint16))
    return _packed(texts_of_segment, _sorted_postings(words, keys))


def _numbered(every: Iterable[bytes], total: int) -> tuple[list[bytes], Numbers]:
    """Return the words in order, and the number of each occurrence's word in that order."""
    met: defaultdict[bytes, int] = defaultdict()
    # A word that is met for the first time gets the next number.
    met.default_factory = met.__len__
    keys = np.fromiter(map(met.__getitem__, every), np.int64, total)
    words = sorted(met)
    place = np.empty(len(words), np.uint64)
    place[np.fromiter(map(met.__getitem__, words), np.int64, len(words))] = np.arange(
        len(words), dtype=np.uint64
    )
    return words, place[keys]


def _sorted_postings(words: Sequence[bytes], keys: Numbers) -> _Postings:
    """Put occurrences in the order of their words; a key is the number of a word, then its occurrence."""
    keys.sort()
    begins = np.searchsorted(keys, np.arange(len(words) + 1, dtype=np.uint64) << np.uint64(32))
    counts = np.diff(begins)
    # The lower half of each key.
    occurrences = keys.astype(np.uint32)
    if counts.all():
        return _Postings(words, counts, occurrences)
    return _Postings([words[at] for at in np.flatnonzero(counts).tolist()], counts[counts > 0], occurrences)


def _packed(texts: Texts, postings: _Postings) -> Segment:
    leaves: list[Leaf] = []
    firsts: list[bytes] = []
    bounds: list[tuple[int, int]] = []
    words, ends = postings.words, np.cumsum(postings.counts).tolist()
    counts, occurrences = (
        postings.counts.astype("<u4").tobytes(),
        postings.occurrences.astype("<u4").tobytes(),
    )
    at = begin = 0
    while at < len(words):
        end = min(bisect_right(ends, begin + _LEAF_OCCURRENCES, at), at + _LEAF_WORDS)
        if end > at + 1:
            leaf_words = _SEPARATOR.join(words[at:end])
            leaves.append(
                Leaf(
                    b"\0%b\0" % leaf_words,
                    counts[4 * at : 4 * end],
                    occurrences[4 * begin : 4 * ends[end - 1]],
                )
            )
            firsts.append(words[at])
            bounds.append((0, _POSITION_MASK))
        else:
            end = at + 1
            for low in range(begin, ends[at], _PART_OCCURRENCES):
                high = min(low + _PART_OCCURRENCES, ends[at])
                leaves.append(
                    Leaf(
                        b"\0%b\0" % words[at],
                        (high - low).to_bytes(4, "little"),
                        occurrences[4 * low : 4 * high],
                    )
                )
                firsts.append(words[at])
                edges = postings.occurrences[low], postings.occurrences[high - 1]
                bounds.append((int(edges[0]) >> POSITION_BITS, int(edges[1]) >> POSITION_BITS))
        at, begin = end, ends[end - 1]
    directory = Directory(firsts, np.array(bounds, np.uint16).reshape(-1, 2))
    return Segment(texts, directory, leaves, words, _languages(postings), len(postings.occurrences))


def bounds_of(leaf: Leaf) -> tuple[int, int]:
    """Return the bounds that the directory of a segment has for a leaf: only those of a single word are narrow."""
    if len(words_in(leaf.words)) > 1:
        return 0, _POSITION_MASK
    texts, _ = texts_and_positions(np.frombuffer(leaf.occurrences, "<u4"))
    return int(texts[0]), int(texts[-1])


def _languages(postings: _Postings) -> int:
    words = postings.words
    counts = {word: int(postings.counts[bisect_left(words, word)]) for word in FREQUENT.intersection(words)}
    return bits_of(languages_of(counts, len(postings.occurrences)))


# Merging


class Part(NamedTuple):
    """A segment that goes into a merge, and which of its texts do."""

    texts: Texts
    leaves: Iterable[Leaf]
    stays: Numbers


def merge(parts: Sequence[Part]) -> Segment | None:
    """Make one segment of several, of those texts that stay; None if none does."""
    numbers = np.concatenate([part.texts.numbers[part.stays] for part in parts])
    if not len(numbers):
        return None
    times = np.concatenate([part.texts.times[part.stays] for part in parts])
    lengths = np.concatenate([part.texts.lengths[part.stays] for part in parts])
    order = np.lexsort((numbers, times))
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    met: dict[bytes, bytes] = {}
    postings = [_with_words_of(met, _read(part.leaves)) for part in parts]
    words = sorted(met)
    ids = {word: number for number, word in enumerate(words)}
    keys = np.empty(sum(len(posting.occurrences) for posting in postings), "<u8")
    begun = filled = 0
    for part in parts:
        stays = int(part.stays.sum())
        new_place = np.zeros(len(part.texts), np.uint32)
        new_place[part.stays] = place[begun : begun + stays]
        begun += stays
        # Each is dropped once its keys are made: they take twice its memory.
        filled += _fill_keys(keys[filled:], postings.pop(0), part.stays, new_place, ids)
    merged = _sorted_postings(words, keys[:filled])
    del keys
    return _packed(Texts(numbers[order], times[order], lengths[order]), merged)


def _with_words_of(met: dict[bytes, bytes], postings: _Postings) -> _Postings:
    """Replace words by equal ones that were met before: most are in every segment, and take more than their numbers."""
    return replace(postings, words=[met.setdefault(word, word) for word in postings.words])


def _fill_keys(
    keys: Numbers, postings: _Postings, stays: Numbers, new_place: Numbers, ids: Mapping[bytes, int]
) -> int:
    """Write the keys of a part's occurrences that stay, a half at a time: whole ones would need more memory."""
    word_ids = np.fromiter(map(ids.__getitem__, postings.words), np.uint32, len(postings.words))
    texts = postings.occurrences >> POSITION_BITS
    is_left = stays[texts]
    lower = new_place[texts]
    lower <<= np.uint32(POSITION_BITS)
    lower |= postings.occurrences & np.uint32(_POSITION_MASK)
    lower = lower[is_left]
    halves = keys.view("<u4")
    halves[: 2 * len(lower) : 2] = lower
    halves[1 : 2 * len(lower) : 2] = np.repeat(word_ids, postings.counts)[is_left]
    return len(lower)


def _read(leaves: Iterable[Leaf]) -> _Postings:
    """Read all words and occurrences of a segment."""
    every = list(leaves)
    if not every:
        return _Postings([], np.empty(0, np.int64), np.empty(0, np.uint32))
    # A leaf's words have a separator before and after them: all leaves are split at once.
    words = b"".join([leaf.words[1:] for leaf in every]).split(_SEPARATOR)[:-1]
    counts = np.frombuffer(b"".join([leaf.counts for leaf in every]), "<u4").astype(np.int64)
    occurrences = np.frombuffer(b"".join([leaf.occurrences for leaf in every]), "<u4")
    ends = accumulate(len(leaf.counts) // 4 for leaf in every[:-1])
    begun_before = [end for end in ends if words[end] == words[end - 1]]
    if begun_before:
        # A word that continues from the previous leaf.
        is_first = np.ones(len(words), np.bool_)
        is_first[begun_before] = False
        counts = np.bincount(np.cumsum(is_first) - 1, counts).astype(np.int64)
        words = list(compress(words, is_first.tolist()))
    return _Postings(words, counts, occurrences)


def narrow(part: Part) -> Segment:
    """Make the segment of those texts alone that stay, at least one; their order is the same, so nothing is sorted."""
    postings, stays = _read(part.leaves), part.stays
    first, last = int(np.argmax(stays)), len(stays) - 1 - int(np.argmax(stays[::-1]))
    occurrences_before = postings.occurrences
    # Nearly always the texts of a range of time stay, and comparing is far quicker than looking each text up.
    places = np.flatnonzero(
        (occurrences_before >= np.uint32(first << POSITION_BITS))
        & (occurrences_before <= np.uint32(last << POSITION_BITS | _POSITION_MASK))
    )
    if not stays[first : last + 1].all():
        places = places[stays[occurrences_before[places] >> POSITION_BITS]]
    texts, positions = texts_and_positions(occurrences_before[places])
    new_place = (np.cumsum(stays) - 1).astype(np.uint32)
    occurrences = new_place[texts] << np.uint32(POSITION_BITS) | positions
    counts = np.diff(np.searchsorted(places, np.cumsum(postings.counts)), prepend=0)
    is_left = counts > 0
    words = list(compress(postings.words, is_left.tolist()))
    chosen = part.texts
    left = Texts(chosen.numbers[stays], chosen.times[stays], chosen.lengths[stays])
    return _packed(left, _Postings(words, counts[is_left], occurrences))


def words_in(words: bytes) -> list[bytes]:
    """Return the words of a leaf."""
    return words[1:-1].split(_SEPARATOR)


def texts_and_positions(occurrences: Numbers) -> tuple[Numbers, Numbers]:
    """Take occurrences apart."""
    return occurrences >> POSITION_BITS, occurrences & _POSITION_MASK
