"""Issues name a place and a rule, never a value, and there are never too many of them."""

import time

import pytest

from headgate.errors import SchemaParse
from headgate.schema.check import check, compile_schema
from headgate.schema.explain import MAX_ISSUES

CANARY = "canary-5f1c"


def places(schema, value):
    return [(issue.path, issue.keyword) for issue in check(schema, value)]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "object"}, ["x"], [("$", "type")]),
        ({"type": ["string", "null"]}, 1, [("$", "type")]),
        ({"required": ["a", "b"]}, {}, [("$", "required"), ("$", "required")]),
        ({"properties": {"n": {"minimum": 3}}}, {"n": 1}, [("$.n", "minimum")]),
        ({"additionalProperties": {"type": "number"}}, {"b": "q"}, [("$.b", "type")]),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, [("$", "additionalProperties")]),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"xy": 1, "y": 1}, [("$.xy", "type")]),
        ({"items": {"type": "string"}}, ["a", 1], [("$[1]", "type")]),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], [("$", "items")]),
        ({"prefixItems": [{"type": "string"}]}, [1], [("$[0]", "type")]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, [("$", "anyOf")]),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 1, [("$", "oneOf")]),
        ({"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, [("$", "required")] * 2),
        ({"not": {"type": "string"}}, "x", [("$", "not")]),
        ({"if": {"type": "string"}, "then": {"minLength": 2}}, "x", [("$", "minLength")]),
        ({"if": {"type": "string"}, "else": {"minimum": 2}}, 1, [("$", "minimum")]),
        ({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1}, [("$", "required")]),
        ({"contains": {"type": "string"}}, [1], [("$", "contains")]),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, [("$", "propertyNames")]),
        (
            {"properties": {"a": {}}, "unevaluatedProperties": False},
            {"b": 1},
            [("$", "unevaluatedProperties")],
        ),
        ({"enum": [1, 2]}, 3, [("$", "enum")]),
        ({"const": 1}, 3, [("$", "const")]),
        ({"pattern": "^a"}, "b", [("$", "pattern")]),
        ({"uniqueItems": True}, [1, 1], [("$", "uniqueItems")]),
        ({"properties": {"a": False}}, {"a": 1}, [("$.a", "false")]),
        (False, 1, [("$", "false")]),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"b": {"type": "null"}}}}},
            {"b": 1},
            [("$.b", "type")],
        ),
        ({"type": "integer"}, True, [("$", "type")]),
        ({"type": "integer"}, 3.0, []),
        ({"type": "integer"}, 10**40, []),
        (True, {"anything": [1]}, []),
        ({"type": "number"}, float("nan"), [("$", "json")]),
    ],
)
def test_each_broken_rule_is_named_at_its_place(schema, value, expected):
    assert places(schema, value) == expected


def test_no_issue_quotes_a_value():
    schema = {
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x"]},
            "c": {"maxLength": 1},
            "d": {"const": 1},
        },
        "anyOf": [{"required": ["z"]}],
    }
    value = dict.fromkeys("abcd", CANARY)
    issues = check(schema, value)
    assert len(issues) == 5
    assert CANARY not in repr(issues)


def test_a_million_wrong_items_give_a_few_issues_quickly():
    compiled = compile_schema({"items": {"type": "string"}})
    started = time.process_time()
    assert len(compiled.issues([1] * 1_000_000)) == MAX_ISSUES
    assert time.process_time() - started < 5


@pytest.mark.parametrize("combine", ["anyOf", "allOf", "oneOf"])
def test_a_recursive_union_is_explained_without_exploding(combine):
    branch = {"type": "object", "properties": {"l": {"$ref": "#"}}}
    leaf = [] if combine == "allOf" else [{"type": "integer"}]
    compiled = compile_schema({combine: [branch, {**branch, "required": []}, *leaf]})
    value = "x"
    for _ in range(100):
        value = {"l": value}
    started = time.process_time()
    assert compiled.issues(value)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "schema",
    [{"type": "strin"}, {"properties": []}, {"$schema": "https://evil.example/dialect"}, {"minimum": "x"}],
)
def test_what_is_no_schema_is_refused_without_quoting_it(schema):
    with pytest.raises(SchemaParse) as refused:
        compile_schema(schema)
    assert "evil" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_dialect_follows_the_schema():
    old = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    assert check(old, 1)
    assert not check(old, 2)
