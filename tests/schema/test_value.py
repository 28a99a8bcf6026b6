"""A copy of JSON is equal, apart, and made of plain types; what is not JSON is named and not quoted."""

import enum
import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from headgate.schema.value import MAX_VALUE_DEPTH, child_path, copy_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_a_copy_is_equal_and_shares_no_container(value):
    copied, problem = copy_json(value)
    assert problem is None
    assert copied == value
    assert json.dumps(copied) == json.dumps(value)
    if isinstance(value, dict | list):
        assert copied is not value


class Colour(enum.StrEnum):
    RED = "red"


def test_kindred_types_become_plain_json():
    copied, problem = copy_json({Colour.RED: (1, Colour.RED, enum.IntEnum("N", "A").A)})
    assert problem is None
    assert copied == {"red": [1, "red", 1]}
    assert [type(one) for one in copied["red"]] == [int, str, int]
    assert type(next(iter(copied))) is str

    class Degrees(float):
        __slots__ = ()

    copied, problem = copy_json(MappingProxyType({"t": Degrees(1.5)}))
    assert problem is None
    assert copied == {"t": 1.5}
    assert type(copied["t"]) is float


@pytest.mark.parametrize(
    "value",
    [b"secret", {1: 2}, object(), {"a": {3}}, "\ud800", {"\ud800": 1}, math.nan, [math.inf], -math.inf],
)
def test_what_is_not_json_is_reported_without_its_value(value):
    copied, problem = copy_json(value)
    assert copied is None
    assert (problem.path, problem.keyword) == ("$", "json")
    assert "secret" not in problem.message


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_depth_is_bounded_because_validators_walk_on_the_machine_stack():
    assert copy_json(nested(MAX_VALUE_DEPTH))[1] is None
    assert copy_json(nested(MAX_VALUE_DEPTH + 1))[1].keyword == "json"
    assert copy_json(nested(100_000))[1].keyword == "json"
    circle = []
    circle.append(circle)
    assert copy_json(circle)[1].keyword == "json"


def test_paths_are_readable_and_odd_keys_are_quoted_and_cut():
    assert child_path("$", "name") == "$.name"
    assert child_path("$.a", 3) == "$.a[3]"
    assert child_path("$", "a\n\u202eb") == "$['a\\n\\u202eb']"
    assert len(child_path("$", "x" * 10_000)) < 100
