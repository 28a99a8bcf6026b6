"""Whether a record is shown whole can often be told from its JSON, unread; when it cannot, nobody claims it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.text.budget import INLINE_CHARS
from headgate.text.ladder import is_whole, looks_whole

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


def written(data: dict[str, Any], *, is_escaped: bool = False) -> bytes:
    return json.dumps(data, ensure_ascii=is_escaped, separators=(",", ":")).encode()


@given(st.lists(DATA, max_size=3))
def test_what_looks_whole_and_is_not_long_is_whole(records: list[dict[str, Any]]):
    for is_escaped in (False, True):
        if looks_whole([written(data, is_escaped=is_escaped) for data in records]):
            longest = max(
                (len(value) for data in records for value in data.values() if isinstance(value, str)),
                default=0,
            )
            assert all(is_whole(data, longest) for data in records)


def test_ordinary_records_are_known_to_be_whole_by_their_looks():
    assert looks_whole([written(MAIL)] * 25)


@pytest.mark.parametrize(
    "odd",
    [
        {"file": {"blob_id": "blob_" + "a" * 64}},
        {"picture": "QUJD" * 64},
        {"picture": "data:image/png;base64," + "QUJD " * 64},
        {"labels": ["a" * 400]},
    ],
)
def test_what_has_to_be_cut_does_not_look_whole(odd: dict[str, Any]):
    assert not is_whole(MAIL | odd, INLINE_CHARS)
    assert not looks_whole([written(MAIL), written(MAIL | odd)])
