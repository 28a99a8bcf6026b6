"""Forcing a value into its schema, row by row of what ``Value.Cast`` does."""

import copy

import pytest
from hypothesis import given, strategies as st

from headgate.schema.cast import cast_value
from headgate.schema.check import compile_schema

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "mail": {"type": "string"}},
    "required": ["name", "age"],
}
TAGGED = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"k": {"const": "a"}, "x": {"type": "number"}},
            "required": ["k", "x"],
        },
        {
            "type": "object",
            "properties": {"k": {"const": "b"}, "y": {"type": "string"}},
            "required": ["k", "y"],
        },
    ]
}
ROWS = {
    "a valid value stays as it is, with what was not declared": (
        PERSON,
        {"name": "Ada", "age": 36, "more": 1},
        {"name": "Ada", "age": 36, "more": 1},
    ),
    "an invalid object loses what was not declared": (
        PERSON,
        {"name": "Ada", "age": "36", "more": 1},
        {"name": "Ada", "age": 0},
    ),
    "a declared rest is cast and kept": (
        {**PERSON, "additionalProperties": {"type": "number"}},
        {"name": "Ada", "age": 36, "more": "x"},
        {"name": "Ada", "age": 36, "more": 0},
    ),
    "a missing member is made only when it is required": (PERSON, {"age": 1}, {"name": "", "age": 1}),
    "a wrong member is replaced, required or not": (
        PERSON,
        {"name": 1, "age": 2, "mail": 3},
        {"name": "", "age": 2, "mail": ""},
    ),
    "no object where one is declared": (PERSON, ["x"], {"name": "", "age": 0}),
    "a default is what is made": ({"type": "integer", "default": 5}, "x", 5),
    "a least number is what is made": ({"type": "number", "minimum": 3}, "x", 3),
    "a text is never converted": ({"type": "integer"}, "42", 0),
    "false, nothing, and a constant": (
        {
            "type": "object",
            "properties": {"b": {"type": "boolean"}, "n": {"type": "null"}, "c": {"const": 7}},
            "required": ["b", "n", "c"],
        },
        {},
        {"b": False, "n": None, "c": 7},
    ),
    "the first of a list of values": ({"enum": ["low", "high"]}, 1, "low"),
    "a list is cut": ({"type": "array", "maxItems": 2}, [1, 2, 3], [1, 2]),
    "a list is padded and its items cast": (
        {"type": "array", "items": {"type": "integer"}, "minItems": 3},
        [1, "x"],
        [1, 0, 0],
    ),
    "a tuple": (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2},
        [1],
        ["", 0],
    ),
    "the variant that the tag names": (TAGGED, {"k": "b", "y": 1, "x": 2}, {"k": "b", "y": ""}),
    "the first variant when nothing is like any": (TAGGED, 1, {"k": "a", "x": 0}),
    "the default of a union": ({**TAGGED, "default": {"k": "a", "x": 1}}, 1, {"k": "a", "x": 1}),
    "through a reference": (
        {"type": "object", "properties": {"p": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
        {"p": "x"},
        {"p": 0},
    ),
    "an unknown schema": ({}, {"any": [1]}, {"any": [1]}),
}


@pytest.mark.requirement("S4-06")
@pytest.mark.parametrize("row", list(ROWS))
def test_a_value_is_forced_into_its_schema(row):
    schema, value, expected = ROWS[row]
    before = copy.deepcopy(value)
    assert cast_value(compile_schema(schema), value) == (expected, ())
    assert value == before


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": "^a$"}, 1),
        ({"type": "string", "format": "date"}, 1),
        ({"type": "array", "uniqueItems": True, "minItems": 2}, "x"),
        ({"type": "array", "contains": {"const": 1}}, "x"),
        ({"type": "array", "minItems": 1_000_000_000}, []),
        ({"type": "string", "minLength": 1_000_000_000}, 1),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]}}}, 1),
    ],
)  # fmt: skip
def test_what_cannot_be_made_up_leaves_the_value_and_says_so(schema, value):
    result, issues = cast_value(compile_schema(schema), value)
    assert result == value
    assert issues


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("kxyname"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, st.sampled_from([PERSON, TAGGED, {"type": "array", "items": PERSON}]))
def test_a_cast_value_fits_and_casting_it_again_changes_nothing(value, schema):
    compiled = compile_schema(schema)
    result, issues = cast_value(compiled, value)
    assert issues == ()
    assert cast_value(compiled, result) == (result, ())
