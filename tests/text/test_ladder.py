"""Which records are shown whole, and that shortening leaves those as they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.text.ladder import Handles, is_whole, shorten
from headgate.text.writing import INLINE_CHARS

WORDS = st.text(st.characters(codec="utf-8"), max_size=40)
#: Among them prose, encoded bytes and addresses that hold a file, each with something odd before it.
LONG = st.builds(
    lambda head, unit, times: head + unit * times,
    st.sampled_from(["", "data:image/png;base64,", "data:text/plain;base64,A b", '"', "\\", "é", "{", " "]),
    st.sampled_from(["Abc1", "two words ", "iVBORw0KGgo=", '\\"', "ab\n", "é", "QUJD/+"]),
    st.integers(0, INLINE_CHARS // 3),
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), WORDS, LONG)
DATA = st.dictionaries(WORDS, st.one_of(VALUES, st.lists(VALUES, max_size=3)), max_size=6)
MAIL = {"id": "m1", "subject": "On the bridge", "body": "It needs new planks. " * 40, "size": 3, "read": True}


HANDLES = Handles("c/s:m1", window_uri=str, blob_uri=str)


@given(DATA, st.sampled_from([64, 256, INLINE_CHARS]))
def test_a_record_that_is_whole_is_not_changed_by_shortening(data: dict[str, Any], inline_chars: int):
    short, ladder = shorten(data, HANDLES, inline_chars=inline_chars, lengths={})
    assert not is_whole(data, inline_chars) or (short is data and not ladder.members())


def test_an_ordinary_record_is_whole():
    assert is_whole(MAIL, INLINE_CHARS)


@pytest.mark.parametrize(
    "odd",
    [
        {"file": {"blob_id": "blob_" + "a" * 64}},
        {"picture": "QUJD" * 64},
        {"picture": "data:image/png;base64," + "QUJD " * 64},
        {"labels": ["a" * 400]},
    ],
)
def test_a_record_with_something_to_cut_is_not_whole(odd: dict[str, Any]):
    assert not is_whole(MAIL | odd, INLINE_CHARS)
    _, ladder = shorten(MAIL | odd, HANDLES, inline_chars=INLINE_CHARS, lengths={})
    assert ladder.members() or "labels" in odd
