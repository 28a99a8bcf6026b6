from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, strategies as st

from headgate.errors import InvalidRecord, InvalidRequest
from headgate.model.ids import RecordId, canonical_key, key_parts

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
PART = TEXT | NUMBER | st.booleans()


def test_a_single_key_is_its_own_text():
    assert canonical_key(["m1"]) == "m1"
    assert canonical_key([17]) == "17"
    assert canonical_key([True]) == "true"


def test_a_compound_key_is_a_minified_array_of_strings():
    assert canonical_key(["user_123", "2026-04-01"]) == '["user_123","2026-04-01"]'
    assert canonical_key(["ü", 3, 1.5]) == '["ü","3","1.5"]'


@given(st.lists(TEXT, min_size=2, max_size=4))
def test_compound_keys_come_apart_into_the_parts_they_were_made_of(parts: list[str]):
    assert key_parts(canonical_key(parts), len(parts)) == tuple(parts)


@given(st.lists(TEXT, min_size=1, max_size=4), st.lists(TEXT, min_size=1, max_size=4))
def test_different_text_keys_of_one_width_have_different_canonical_keys(left: list[str], right: list[str]):
    assume(len(left) == len(right) and left != right)
    assert canonical_key(left) != canonical_key(right)


@given(st.lists(PART, min_size=1, max_size=4))
def test_a_canonical_key_does_not_depend_on_a_trip_through_json(parts: list[object]):
    assert key_or_refusal(json.loads(json.dumps(parts))) == key_or_refusal(parts)


def key_or_refusal(parts: list[object]) -> str:
    """Give the key; four large numbers, each with all its digits, are too long for one."""
    try:
        return canonical_key(parts)
    except InvalidRequest as refusal:
        return refusal.message


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_is_the_same_key_however_json_writes_it(number: int):
    assert canonical_key([float(number)]) == canonical_key([number])


@pytest.mark.parametrize("part", [None, [], {}, float("nan"), float("inf"), b"bytes"])
def test_what_has_no_text_cannot_be_a_key(part: object):
    with pytest.raises(InvalidRecord):
        canonical_key([part])


@pytest.mark.parametrize("parts", [[], [""], ["a\0b"], ["\ud800"]])
def test_a_key_is_neither_empty_nor_broken(parts: list[object]):
    with pytest.raises((InvalidRecord, InvalidRequest)):
        canonical_key(parts)


@pytest.mark.parametrize(
    "text", ["a", '["a"]', '["a","b","c"]', '["a", "b"]', '["a",1]', "[", '{"a":1}', '["\\u0061","b"]']
)
def test_only_the_canonical_spelling_of_a_compound_key_is_taken_apart(text: str):
    with pytest.raises(InvalidRecord):
        key_parts(RecordId(text), 2)
