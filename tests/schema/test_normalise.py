"""Normalising keeps, drops what is forbidden, fills declared defaults, and never invents anything."""

import copy
import json
import time

import pytest
from hypothesis import given, strategies as st

from headgate.schema.check import compile_schema
from headgate.schema.normalise import Extras, fill_defaults, normalise, normalise_output

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def of(required=(), /, **properties):
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


CLOSED = {"additionalProperties": False}
TAGGED = {"anyOf": [of(["k", "x"], k={"const": "a"}, x=WHOLE), of(["k", "y"], k={"const": "b"}, y=TEXT)]}
REFERRED = {**of(p={"$ref": "#/$defs/d"}), "$defs": {"d": of(a=TEXT)}}
PATTERNED = {**of(a=TEXT), "patternProperties": {"^x-": {}}, **CLOSED}

# schema, value, result, result when extras are dropped, issues
VECTORS = {
    "declared and required": (of(["a"], a=TEXT), {"a": "x"}, {"a": "x"}, {"a": "x"}, []),
    "undeclared": (of(a=TEXT), {"a": "x", "b": 1}, {"a": "x", "b": 1}, {"a": "x"}, []),
    "extras allowed": (
        {**of(a=TEXT), "additionalProperties": True},
        {"a": "x", "b": 1},
        {"a": "x", "b": 1},
        {"a": "x", "b": 1},
        [],
    ),
    "extras have a schema": (
        {**of(a=TEXT), "additionalProperties": {"type": "number"}},
        {"a": "x", "b": "q"},
        {"a": "x", "b": "q"},
        {"a": "x", "b": "q"},
        [("$.b", "type")],
    ),
    "extras forbidden": ({**of(a=TEXT), **CLOSED}, {"a": "x", "b": 1}, {"a": "x"}, {"a": "x"}, []),
    "default": (of(n={**WHOLE, "default": 5}), {}, {"n": 5}, {"n": 5}, []),
    "default of a required property": (of(["n"], n={**WHOLE, "default": 5}), {}, {"n": 5}, {"n": 5}, []),
    "missing": (of(["a"], a=TEXT), {}, {}, {}, [("$", "required")]),
    "text for a number": (of(n=WHOLE), {"n": "42"}, {"n": "42"}, {"n": "42"}, [("$.n", "type")]),
    "null for a number": (of(n=WHOLE), {"n": None}, {"n": None}, {"n": None}, [("$.n", "type")]),
    "null beside a default": (
        of(n={"type": ["integer", "null"], "default": 5}),
        {"n": None},
        {"n": None},
        {"n": None},
        [],
    ),
    "null for a number with a default": (
        of(n={**WHOLE, "default": 5}),
        {"n": None},
        {"n": None},
        {"n": None},
        [("$.n", "type")],
    ),
    "items": (
        {"type": "array", "items": {**of(a=TEXT), **CLOSED}},
        [{"a": "1", "z": 2}],
        [{"a": "1"}],
        [{"a": "1"}],
        [],
    ),
    "bare object": ({"type": "object"}, {"q": 1}, {"q": 1}, {"q": 1}, []),
    "tagged union": (
        TAGGED,
        {"k": "b", "y": "1", "z": 3},
        {"k": "b", "y": "1", "z": 3},
        {"k": "b", "y": "1"},
        [],
    ),
    "reference": (REFERRED, {"p": {"a": "x", "z": 1}}, {"p": {"a": "x", "z": 1}}, {"p": {"a": "x"}}, []),
    "patterned": (PATTERNED, {"a": "1", "x-y": 2, "q": 3}, {"a": "1", "x-y": 2}, {"a": "1", "x-y": 2}, []),
    "all of two": (
        {"allOf": [of(a=TEXT), of(b=TEXT)]},
        {"a": "1", "b": "2", "c": 3},
        {"a": "1", "b": "2", "c": 3},
        {"a": "1", "b": "2", "c": 3},
        [],
    ),
    "a list for an object": ({"type": "object"}, ["x"], ["x"], ["x"], [("$", "type")]),
    "a whole float": (WHOLE, 3.0, 3.0, 3.0, []),
    "a truth for a number": (WHOLE, True, True, True, [("$", "type")]),
    "a wrong default": (of(n={**WHOLE, "default": "x"}), {}, {"n": "x"}, {"n": "x"}, [("$.n", "type")]),
}


def places(issues):
    return [(issue.path, issue.keyword) for issue in issues]


@pytest.mark.requirement("S4-06")
@pytest.mark.parametrize("name", VECTORS)
def test_the_vectors_hold_in_both_modes(name):
    schema, value, with_extras, dropped, issues = VECTORS[name]
    for extras, expected in ((Extras.KEEP, with_extras), (Extras.DROP, dropped)):
        result, found = normalise_output(schema, value, extras=extras)
        # Spelled out, because 3.0 == 3 and True == 1 in Python.
        assert json.dumps(result) == json.dumps(expected)
        assert places(found) == issues


@pytest.mark.requirement("S4-06")
def test_a_value_that_is_changed_leaves_the_default_as_it_was():
    schema = of(deep={"default": {"list": [{"n": 1}], "object": {"n": 1}}})
    compiled, declared = compile_schema(schema), copy.deepcopy(schema)
    first, _ = normalise(compiled, {})
    first["deep"]["list"][0]["n"] = first["deep"]["object"]["n"] = 2
    first["deep"]["list"].append("more")
    assert normalise(compiled, {}) == ({"deep": declared["properties"]["deep"]["default"]}, ())
    assert schema == declared


def test_nested_defaults_are_filled_and_a_default_does_not_fill_itself():
    schema = of(a={**of(b={**WHOLE, "default": 1}), "default": {}})
    assert normalise_output(schema, {}) == ({"a": {"b": 1}}, ())
    itself = {"properties": {"x": {"$ref": "#", "default": {}}}}
    assert normalise_output(itself, {}) == ({"x": {}}, ())


def test_a_branch_is_chosen_by_the_normalised_value():
    closed = {**of(["k"], k={"const": "b"}), **CLOSED}
    schema = {"oneOf": [of(["k"], k={"const": "a"}), closed]}
    assert normalise_output(schema, {"k": "b", "z": 1}) == ({"k": "b"}, ())
    assert normalise_output(schema, {"k": "c", "z": 1})[0] == {"k": "c", "z": 1}


def test_prefix_items_are_reached_in_both_dialects():
    closed = {**of(a=TEXT), **CLOSED}
    new = {"prefixItems": [closed], "items": closed}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [closed], "additionalItems": closed}
    for schema in (new, old):
        assert normalise_output(schema, [{"z": 1}, {"a": "x", "z": 1}]) == ([{}, {"a": "x"}], ())


def test_what_is_not_json_comes_back_as_it_was_with_an_issue():
    value = {"a": {1, 2}}
    result, issues = normalise_output({"type": "object"}, value)
    assert result is value
    assert places(issues) == [("$", "json")]


def test_defaults_that_multiply_are_stopped():
    schema = {"properties": {f"p{n}": {"$ref": "#", "default": {}} for n in range(40)}}
    started = time.process_time()
    result, issues = normalise_output(schema, {"kept": 1})
    assert time.process_time() - started < 5
    assert result == {"kept": 1}
    assert places(issues) == [("$", "default")]
    compiled = compile_schema(schema)
    assert fill_defaults(compiled, {"kept": 1}) == {"kept": 1}


def test_a_large_default_in_every_item_is_stopped():
    schema = {"items": of(big={"default": [{"n": 1}] * 5_000})}
    value = [{}] * 1_000
    started = time.process_time()
    result, issues = normalise_output(schema, value)
    assert time.process_time() - started < 5
    assert result == value
    assert places(issues) == [("$", "default")]
    assert len(normalise_output(schema, [{}] * 5)[0][4]["big"]) == 5_000


def test_a_recursive_union_is_normalised_without_exploding():
    branch = {"type": "object", "properties": {"l": {"$ref": "#"}, "d": {"default": 0}}, **CLOSED}
    schema = {"anyOf": [{**branch, "required": ["k"]}, branch, {"type": "integer"}]}
    value = 1
    for _ in range(60):
        value = {"l": value, "z": 1}
    started = time.process_time()
    result, issues = normalise_output(schema, value)
    assert time.process_time() - started < 5
    assert issues == ()
    assert result["l"]["l"]["d"] == 0
    assert "z" not in result["l"]


def test_filling_defaults_drops_nothing():
    compiled = compile_schema({"anyOf": [{**of(a=TEXT), **CLOSED}, of(a=TEXT, b={"default": 1})]})
    assert fill_defaults(compiled, {"a": "x", "c": 2}) == {"a": "x", "c": 2, "b": 1}


NAMES = st.sampled_from("abcd")
SCHEMAS = st.recursive(
    st.sampled_from([True, {}, TEXT, WHOLE, {"type": "null"}, {"const": 1}, {**WHOLE, "default": 7}]),
    lambda inner: st.one_of(
        st.builds(
            lambda properties, more, required: {
                "type": "object",
                "properties": properties,
                "required": required,
                **more,
            },
            st.dictionaries(NAMES, inner, max_size=3),
            st.sampled_from([{}, CLOSED, {"additionalProperties": TEXT}]),
            st.lists(NAMES, max_size=2, unique=True),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)
VALUES = st.recursive(
    st.sampled_from([None, True, 1, 2.5, "x", "7"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=10,
)


def scalars(value):
    if isinstance(value, dict):
        return [one for inner in value.values() for one in scalars(inner)]
    if isinstance(value, list):
        return [one for inner in value for one in scalars(inner)]
    return [json.dumps(value)]


@given(SCHEMAS, VALUES, st.sampled_from(Extras))
def test_normalising_twice_changes_nothing_more(schema, value, extras):
    compiled = compile_schema(schema)
    once, issues = normalise(compiled, value, extras=extras)
    assert normalise(compiled, once, extras=extras) == (once, issues)


@given(SCHEMAS, VALUES, st.sampled_from(Extras))
def test_normalising_never_changes_its_input_and_adds_only_declared_defaults(schema, value, extras):
    before = copy.deepcopy(value)
    result, issues = normalise_output(schema, value, extras=extras)
    assert value == before
    added = set(scalars(result)) - set(scalars(value))
    assert added <= {"7"}
    assert bool(issues) is not compile_schema(schema).is_valid(result)


@given(SCHEMAS, VALUES)
def test_a_valid_value_loses_nothing_but_what_a_branch_forbids(schema, value):
    compiled = compile_schema(schema)
    if compiled.is_valid(value) and "anyOf" not in json.dumps(schema):
        result, issues = normalise(compiled, value)
        assert issues == ()
        assert set(scalars(value)) <= set(scalars(result))
