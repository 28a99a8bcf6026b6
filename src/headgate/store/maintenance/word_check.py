"""Check the word index and the vectors of one shelf: against the records, and each part against itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from headgate.errors import IntegrityBroken
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.format.segments import (
    NO_TIME,
    Numbers,
    bounds_of,
    texts_and_positions,
    unpack_directory,
    words_in,
)
from headgate.store.format.streams import Shelf
from headgate.store.format.word_filter import word_filter
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import PART_SHIFT, read_block
from headgate.store.sql.word_segments import dead_texts, read_leaves


class WordIndexCheck:
    """One check of the word index of one shelf."""

    def __init__(self, database: Database, shelf: Shelf) -> None:
        self._database = database
        self._shelf = shelf
        self._segments: list[tuple[Any, ...]] = []

    def run(self, places: Sequence[tuple[int, int | None]]) -> Iterator[tuple[int, str]]:
        """Check everything; gives the number of a record (0: of none) and what is wrong with it.

        ``places`` are the number and the time of every live record.
        """
        self._segments = self._database.all(self._database.sql["segments_to_check"], (self._shelf.sid,))
        due = _pairs(
            np.array([number for number, _ in places], np.int64),
            np.array([NO_TIME if time is None else time for _, time in places], np.int64),
        )
        for fid in self._shelf.stream.searched.values():
            held = self._held(fid)
            missing, surplus = due - held, held - due
            yield from (
                (number, "The record is missing in the search index.") for number, _ in sorted(missing)
            )
            yield from ((number, "The search index has a text too many.") for number, _ in sorted(surplus))
        for gid, _, text_count, occurrence_count, held, firsts, bounds, *_ in self._segments:
            if not self._is_whole(gid, text_count, occurrence_count, held, firsts, bounds):
                yield 0, "A segment of the search index is damaged."

    def _held(self, fid: int) -> set[tuple[int, int]]:
        held: set[tuple[int, int]] = set()
        for _, own, text_count, _, _, _, _, numbers, times, dead in self._segments:
            if own == fid and len(numbers) == 4 * text_count and len(times) == 8 * text_count:
                alive = np.ones(text_count, np.bool_)
                alive[dead_texts(dead)[dead_texts(dead) < text_count]] = False
                found = np.frombuffer(numbers, "<u4")[alive], np.frombuffer(times, "<i8")[alive]
                held |= _pairs(*found)
        return held

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
    """Check everything; gives the number of a record (0: of none) and what is wrong with it.

    ``places`` are the number and the time of every live record.
    """
    first, last = shelf.sid << RID_SHIFT, (shelf.sid + 1) << RID_SHIFT
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
