"""One spelling for each value, as RFC 8785 writes it, and a fingerprint that order cannot change."""

import hashlib
import json
import random

import pytest
from hypothesis import given, strategies as st

from headgate.schema.diff import canonical_json, digest
from tests.schema.test_value import JSON


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        # The number samples of RFC 8785, appendix B.
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (999999999999999700000.0, "999999999999999700000"),
        (1e21, "1e+21"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.33333325, "333333333.33333325"),
        (0.002, "0.002"),
        (4.50, "4.5"),
        (1424953923781206.2, "1424953923781206.2"),
        # Beyond the RFC: all digits are kept.
        (9223372036854775807, "9223372036854775807"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        ([1, [2, {}]], "[1,[2,{}]]"),
        ('\u20ac$\u000f\nA\'B"\\\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
    ],
)
def test_values_are_spelled_as_the_rfc_says(value, spelling):
    assert canonical_json(value).decode() == spelling


def test_keys_are_sorted_by_utf16_units():
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical_json(value)).values()) == [2, 4, 6, 7, 1, 5, 3]


def shuffled(value, order):
    if isinstance(value, dict):
        names = list(value)
        order.shuffle(names)
        return {name: shuffled(value[name], order) for name in names}
    return [shuffled(one, order) for one in value] if isinstance(value, list) else value


@given(JSON, st.randoms(use_true_random=False))
def test_key_order_and_a_trip_through_json_never_change_the_digest(value, order: random.Random):
    again = json.loads(json.dumps(shuffled(value, order)))
    assert digest(again) == digest(value)


@given(JSON)
def test_the_canonical_spelling_is_json_that_is_spelled_the_same_again(value):
    spelling = canonical_json(value)
    assert canonical_json(json.loads(spelling)) == spelling


def test_anything_else_changes_the_digest():
    assert digest({"a": 1}) != digest({"a": "1"})
    assert digest([1, 2]) != digest([2, 1])
    assert digest({"a": None}) != digest({})
    assert digest({"a": 1}) == "sha256:" + hashlib.sha256(b'{"a":1}').hexdigest()


def test_half_a_character_has_a_digest_too():
    assert digest("\ud800") != digest("\ud801")


def test_what_is_not_json_has_no_digest():
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            digest(value)
    with pytest.raises(TypeError):
        digest({"a": {1}})
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="deeply"):
        digest(circle)
