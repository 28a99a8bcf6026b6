from __future__ import annotations

from hypothesis import given, strategies as st

from headgate.store.format.word_filter import FilterTable, word_filter

WORDS = st.sets(st.binary(min_size=1, max_size=12), max_size=40)


@given(st.lists(WORDS, min_size=1, max_size=5))
def test_a_filter_lets_every_word_of_its_segment_through(segments: list[set[bytes]]):
    table = FilterTable([word_filter(words) for words in segments])
    for number, words in enumerate(segments):
        assert table.may_hold(sorted(words))[number].all()


def test_a_filter_holds_back_nearly_all_other_words():
    segments = [[b"%d-%d" % (number, word) for word in range(2000)] for number in range(3)]
    table = FilterTable([word_filter(words) for words in segments])
    for number in range(3):
        found = table.may_hold(segments[number])
        assert found[number].all()
        assert all(found[other].mean() < 0.05 for other in range(3) if other != number)


def test_a_segment_without_a_filter_may_hold_any_word():
    found = FilterTable([None, word_filter([b"soup"]), None]).may_hold([b"letter", b"soup", b"lettuce"])
    assert found[0].all()
    assert found[2].all()
    assert found[1].tolist() == [False, True, False]
