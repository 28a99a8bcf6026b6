"""A foreign schema is refused before a validator sees it when it is too large, reaches out, or explodes."""

import copy
import time
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from headgate.errors import SchemaParse
from headgate.schema.check import check, compile_schema
from headgate.schema.guard import FOREIGN, OWN, SchemaLimits, guard_schema, is_linear, matches
from headgate.schema.normalise import normalise


def refused_rule(schema, limits=FOREIGN):
    with pytest.raises(SchemaParse) as refused:
        guard_schema(schema, limits)
    return refused.value.details["rule"]


def doubling(levels):
    steps = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{levels}": {"type": "string"}}}


def doubling_by_parts(levels):
    steps = {
        f"d{n}": {"allOf": [{"properties": {"x": {"$ref": f"#/$defs/d{n + 1}"}}}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{levels}": {"type": "string"}}}


def chain(length):
    steps = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{length}": {}}}


def nested(levels):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (3, "schema"),
        (None, "schema"),
        (["object"], "schema"),
        ({"description": "x" * 70_000}, "size"),
        (nested(33), "depth"),
        (nested(5_000), "depth"),
        ({"default": [[[[]]]] * 30_000}, "size"),
        ({"properties": {f"p{n}": {} for n in range(2_100)}}, "subschemas"),
        ({"anyOf": [{}] * 257}, "branches"),
        ({"$ref": "http://127.0.0.1:9/schema"}, "reference"),
        ({"$ref": "//evil.example/schema"}, "reference"),
        ({"$ref": "file:///etc/passwd"}, "reference"),
        ({"$ref": "other.json"}, "reference"),
        ({"$ref": 3}, "reference"),
        ({"$dynamicRef": "http://127.0.0.1:9/schema"}, "reference"),
        ({"properties": {"a": {"items": {"$ref": "https://evil.example/x"}}}}, "reference"),
        ({"$defs": {"unused": {"$ref": "https://evil.example/x"}}}, "reference"),
        ({"$ref": "#/$defs/missing"}, "reference"),
        ({"$ref": "#missing"}, "reference"),
        ({"properties": {"a": {"$id": "https://evil.example/x"}}}, "id"),
        ({"$ref": "#"}, "cycle"),
        ({"allOf": [{"$ref": "#"}]}, "cycle"),
        ({"not": {"$ref": "#"}}, "cycle"),
        ({"if": {"$ref": "#/$defs/a"}, "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}, "cycle"),
        ({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, "cycle"),
        (doubling(18), "expansion"),
        (doubling_by_parts(18), "expansion"),
        (chain(300), "chain"),
        ({"properties": {"\ud800": {}}}, "json"),
    ],
)
def test_hostile_schemas_are_refused_with_the_rule_they_break(schema, rule):
    assert refused_rule(schema) == rule


def test_refusing_takes_time_in_proportion_to_the_schema():
    started = time.process_time()
    for schema in (doubling(400), doubling_by_parts(300), chain(1_500), nested(5_000)):
        refused_rule(schema)
    # Processor time of this process, far above what it takes and far below what exploding would.
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (
            {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False},
            {"next": {"next": {}}},
            {"next": {"next": 1}},
        ),
        ({"$defs": {"n": {"$anchor": "node", "type": "integer"}}, "items": {"$ref": "#node"}}, [1, 2], ["x"]),
        (
            {"$dynamicAnchor": "n", "type": ["object"], "properties": {"c": {"$dynamicRef": "#n"}}},
            {"c": {}},
            1,
        ),
        (
            {"properties": {"a/b~c": {"type": "string"}, "d": {"$ref": "#/properties/a~1b~0c"}}},
            {"d": "x"},
            {"d": 1},
        ),
        (
            {"properties": {"a b": {"type": "string"}, "d": {"$ref": "#/properties/a%20b"}}},
            {"d": "x"},
            {"d": 1},
        ),
        ({"$id": "https://example.com/x", "$defs": {"a": {"const": 1}}, "$ref": "#/$defs/a"}, 1, 2),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
            ["x", 1],
            [1],
        ),
        (
            {"enum": [{"$ref": "https://data.example/not-a-reference"}]},
            {"$ref": "https://data.example/not-a-reference"},
            1,
        ),
    ],
)
def test_honest_schemas_pass_and_are_checked(schema, good, bad):
    assert check(schema, good) == ()
    assert check(schema, bad)


def test_patterns_run_in_linear_time_or_not_at_all():
    compiled = compile_schema({"type": "string", "pattern": "^(a+)+$"})
    started = time.process_time()
    assert not compiled.is_valid("a" * 100_000 + "!")
    assert compiled.is_valid("a" * 100_000)
    assert time.process_time() - started < 1
    assert is_linear(r"^\p{L}+\d{2,3}$")
    assert not is_linear("^(?!x)")
    assert not is_linear(r"(a)\1")
    assert not is_linear("(a{1000}){1000}")
    assert matches("b", "abc")
    assert not matches("(?!x)", "abc")


def test_a_pattern_that_cannot_run_is_left_out_of_the_check_and_noted():
    schema = {"properties": {"mail": {"type": "string", "pattern": "^(?!\\.)x"}}, "required": ["mail"]}
    before = copy.deepcopy(schema)
    guarded = guard_schema(schema)
    assert guarded.notes == ("A pattern at '#/properties/mail' is not checked.",)
    assert schema == before
    compiled = compile_schema(schema)
    assert compiled.notes == guarded.notes
    assert compiled.is_valid({"mail": "anything"})
    assert not compiled.is_valid({"mail": 1})


def test_only_so_many_patterns_are_tried():
    schema = {"properties": {f"p{n}": {"pattern": f"(a{{100}}){{{n + 1}}}"} for n in range(1_000)}}
    started = time.process_time()
    compiled = compile_schema(schema)
    assert time.process_time() - started < 2
    assert len(compiled.notes) == 984
    assert not compiled.is_valid({"p0": "b"})
    assert compiled.is_valid({"p999": "b"})


def test_without_its_patterns_a_node_forbids_no_properties():
    schema = {"patternProperties": {"^(?!y)": {"type": "string"}, "^z": {}}, "additionalProperties": False}
    compiled = compile_schema(schema)
    assert compiled.notes
    assert compiled.is_valid({"x": "1"})


def test_our_own_patterns_are_always_applied_and_bounded():
    schema = {
        "properties": {"mail": {"pattern": "^(?!\\.)x"}},
        "patternProperties": {"^(?!mail)": {"type": "integer"}},
        "additionalProperties": False,
    }
    compiled = compile_schema(schema, OWN)
    assert compiled.notes == ()
    assert compiled.issues({"mail": "x", "n": 1}) == ()
    assert normalise(compiled, {"mail": "x", "n": 1})[0] == {"mail": "x", "n": 1}
    assert [one.path for one in compiled.issues({"mail": ".x", "n": "1"})] == ["$.mail", "$.n"]
    with pytest.raises(SchemaParse):
        compile_schema({"pattern": "("}, OWN)
    started = time.process_time()
    assert not compile_schema({"pattern": "(?=(a+)+b)x"}, OWN).is_valid("a" * 4_000)
    assert time.process_time() - started < 2


def test_limits_can_be_set():
    assert refused_rule({"properties": {"a": {}, "b": {}}}, SchemaLimits(subschemas=2)) == "subschemas"
    assert guard_schema({"properties": {"a": {}, "b": {}}}, SchemaLimits(subschemas=3)).notes == ()


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["#", "#/$defs/a", "#/x", "http://x/", "object", "^a", "("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "$ref",
                    "$defs",
                    "a",
                    "allOf",
                    "anyOf",
                    "not",
                    "items",
                    "properties",
                    "type",
                    "pattern",
                    "required",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(ODD, ODD)
def test_any_json_is_compiled_or_refused_and_never_anything_else(schema, value):
    with suppress(SchemaParse):
        compiled = compile_schema(schema)
        assert bool(compiled.issues(value)) is not compiled.is_valid(value)
