from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from headgate.store.format import segments
from headgate.store.format.segments import (
    Part,
    Segment,
    Text,
    build,
    merge,
    narrow,
    texts_and_positions,
    words_in,
)

WORDS = st.sampled_from([b"a", b"b", b"canal", b"gloves", "é".encode(), b"saw", b"sawn"])
TEXTS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(-5, 5)), st.lists(WORDS, max_size=30)), min_size=1, max_size=12
)
Held = dict[int, tuple[int, list[bytes]]]


def held(segment: Segment) -> Held:
    """Read a segment back, text by text."""
    numbers, times = segment.texts.numbers.tolist(), segment.texts.times.tolist()
    found: dict[int, dict[int, bytes]] = {number: {} for number in numbers}
    for leaf, first in zip(segment.leaves, segment.directory.firsts, strict=True):
        words, counts = words_in(leaf.words), np.frombuffer(leaf.counts, "<u4").tolist()
        assert words[0] == first
        every = [word for word, count in zip(words, counts, strict=True) for _ in range(count)]
        texts, positions = texts_and_positions(np.frombuffer(leaf.occurrences, "<u4"))
        for word, text, position in zip(every, texts.tolist(), positions.tolist(), strict=True):
            found[numbers[text]][position] = word
    return {
        number: (time, [found[number][at] for at in sorted(found[number])])
        for number, time in zip(numbers, times, strict=True)
    }


def made(texts: list[tuple[int | None, list[bytes]]], first: int = 0) -> tuple[Segment, Held]:
    (segment,) = build(Text(first + n, time, words) for n, (time, words) in enumerate(texts))
    wanted = {
        first + n: (segments.NO_TIME if time is None else time, words)
        for n, (time, words) in enumerate(texts)
    }
    return segment, wanted


@pytest.fixture(autouse=True)
def _small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few words fill several leaves, and a frequent one has leaves for itself."""
    monkeypatch.setattr(segments, "_LEAF_OCCURRENCES", 6)
    monkeypatch.setattr(segments, "_PART_OCCURRENCES", 4)


@settings(deadline=None)
@given(TEXTS)
def test_a_segment_holds_its_texts_in_order_of_time_and_words_in_order(
    texts: list[tuple[int | None, list[bytes]]],
):
    segment, wanted = made(texts)
    assert held(segment) == wanted
    assert segment.texts.times.tolist() == sorted(segment.texts.times.tolist())
    assert list(segment.directory.firsts) == sorted(segment.directory.firsts)
    for word in {word for _, words in texts for word in words}:
        leaves = segment.directory.leaves(word, word)
        assert any(word in words_in(segment.leaves[leaf].words) for leaf in leaves)
        others = set(range(len(segment.leaves))) - set(leaves)
        assert not any(word in words_in(segment.leaves[leaf].words) for leaf in others)


@settings(deadline=None)
@given(TEXTS, TEXTS, st.data())
def test_a_merged_segment_is_the_one_of_all_texts_that_stay(
    left: list[tuple[int | None, list[bytes]]],
    right: list[tuple[int | None, list[bytes]]],
    data: st.DataObject,
):
    parts: list[Part] = []
    wanted: Held = {}
    for first, texts in ((0, left), (100, right)):
        segment, every = made(texts, first)
        stays = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))))
        parts.append(Part(segment.texts, segment.leaves, stays))
        wanted |= {number: every[number] for number in segment.texts.numbers[stays].tolist()}
        if stays.any():
            numbers = set(segment.texts.numbers[stays].tolist())
            assert held(narrow(parts[-1])) == {number: every[number] for number in numbers}
    merged = merge(parts)
    assert (None if merged is None else held(merged)) == (wanted or None)


def test_a_long_text_is_cut_into_parts_that_overlap(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(segments, "PART_WORDS", 10)
    monkeypatch.setattr(segments, "PART_OVERLAP", 3)
    (segment,) = build([Text(7, None, [b"%d" % n for n in range(24)])])
    assert segment.texts.numbers.tolist() == [7, 7, 7, 7]
    assert segment.texts.lengths.tolist() == [10, 10, 10, 3]
