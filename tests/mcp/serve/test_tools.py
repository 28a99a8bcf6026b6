from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from headgate.errors import InvalidRequest
from headgate.mcp.serve.call import TOOL_HANDLERS, aggregate_query, search_query
from headgate.mcp.serve.tools import INSTRUCTIONS, TEMPLATES, TOOLS

NAMES = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
BY_NAME = {tool["name"]: tool for tool in TOOLS}


@pytest.mark.requirement("S2-07", "S2-10", "S2-11", "S2-19", "S2-20", "S2-21", "S2-22", "S3-05")
def test_there_are_exactly_six_tools_and_they_are_small():
    assert [tool["name"] for tool in TOOLS] == NAMES
    assert list(TOOL_HANDLERS) == NAMES
    assert len(msgspec.json.encode({"tools": TOOLS})) <= 10_000


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_is_read_only_titled_and_strict(name: str):
    tool = BY_NAME[name]
    assert tool["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert tool["title"]
    assert tool["inputSchema"]["additionalProperties"] is False
    for schema in (tool["inputSchema"], tool["outputSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Walk a schema: every keyword of it and of the schemas inside it."""
    for key, value in schema.items():
        yield key, value
        for inner in _inner(key, value):
            yield from keywords(inner)


def _inner(key: str, value: Any) -> list[Any]:
    if key == "properties":
        return list(value.values())
    if key in {"anyOf", "oneOf", "allOf"}:
        return list(value)
    return [value] if isinstance(value, dict) else []


def depth(schema: Any) -> int:
    """Count how many objects and lists lie inside each other."""
    below = max((depth(inner) for key, value in schema.items() for inner in _inner(key, value)), default=0)
    return below + (schema.get("type") in ("object", "array"))


def broken_rules(tool: dict[str, Any]) -> list[str]:
    """Give the rules of the tool formats of Anthropic, OpenAI and Gemini that a tool breaks."""
    root = tool["inputSchema"]
    found = [*keywords(root)]
    names = [name for key, value in found if key == "properties" for name in value]
    texts = [tool["description"], *(value for key, value in found if key == "description")]
    rules = {
        "the root is an object": root.get("type") == "object",
        "no combinator at the root": not {"oneOf", "anyOf", "allOf", "not", "if", "enum", "$ref"} & set(root),
        "a plain name": re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]),
        "plain property names": all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in names),
        "short descriptions": all(len(text) <= 1024 for text in texts),
        "no reference": not any(key in {"$ref", "$dynamicRef"} for key, _ in found),
        "at most five levels": depth(root) <= 5,
        "one type each": all(isinstance(value, str) for key, value in found if key == "type"),
        "enums of texts": all(isinstance(one, str) for key, value in found if key == "enum" for one in value),
        "lists say what they hold": json.dumps(root).count('"array"')
        == sum(key == "items" for key, _ in found),
        "required names exist": set(root.get("required", ())) <= set(root["properties"]),
    }
    return [rule for rule, holds in rules.items() if not holds]


@pytest.mark.parametrize("name", NAMES)
def test_every_host_accepts_every_tool(name: str):
    assert broken_rules(BY_NAME[name]) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"oneOf": [{"required": ["stream"]}]}, "no combinator at the root"),
        ({"type": "array"}, "the root is an object"),
        ({"properties": {"a b": {"type": "string"}}}, "plain property names"),
        ({"properties": {"a": {"type": ["string", "null"]}}}, "one type each"),
        ({"properties": {"a": {"type": "string", "description": "x" * 1025}}}, "short descriptions"),
        ({"properties": {"a": {"$ref": "https://a.example/s"}}}, "no reference"),
        ({"properties": {"a": {"type": "array"}}}, "lists say what they hold"),
        ({"required": ["b"]}, "required names exist"),
    ],
)
def test_a_tool_that_some_host_does_not_accept_is_found(change: dict[str, Any], rule: str):
    tool = BY_NAME["schema"]
    assert rule in broken_rules({**tool, "inputSchema": {**tool["inputSchema"], **change}})


@pytest.mark.parametrize("name", NAMES)
def test_no_schema_of_arguments_says_what_every_caller_knows(name: str):
    """Some hosts repeat every bound in the description of its argument: that a text has a character is one too many."""
    bounds = {"minLength", "minItems", "minProperties", "pattern", "format", "default"}
    assert {key for key, _ in keywords(BY_NAME[name]["inputSchema"])} & bounds == set()


@pytest.mark.parametrize("name", ["aggregate", "search"])
def test_the_words_are_listed_under_the_name_that_hosts_use_and_taken_under_both(name: str):
    properties = BY_NAME[name]["inputSchema"]["properties"]
    assert "query" in properties
    assert "q" not in properties
    rest = {"stream": "messages", "metric": "count"} if name == "aggregate" else {}
    read = {
        "aggregate": lambda words: aggregate_query({**rest, **words})[0].q,
        "search": lambda words: search_query(words).q,
    }[name]
    assert read({"query": "roof"}) == read({"q": "roof"}) == "roof"
    with pytest.raises(InvalidRequest) as refused:
        read({"query": "roof", "q": "tiles"})
    assert "Pass query alone" in refused.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_description(name: str):
    properties = BY_NAME[name]["inputSchema"]["properties"]
    assert [key for key, schema in properties.items() if not schema.get("description")] == []


def test_the_descriptions_say_what_a_model_cannot_guess():
    def about(tool: str, name: str) -> str:
        return BY_NAME[tool]["inputSchema"]["properties"][name]["description"]

    assert "Those with all words rank first" in BY_NAME["search"]["description"]
    assert "counts are exact" in BY_NAME["search"]["description"]
    assert "0 only counts" in about("search", "limit")
    assert "all these words" in about("aggregate", "query")
    assert BY_NAME["search"]["inputSchema"]["properties"]["mode"]["enum"] == ["lexical"]
    assert "the rows that fit; next_cursor goes on" in BY_NAME["query_records"]["description"]
    assert "a OR b (binds first)" in BY_NAME["search"]["description"]
    assert "one connection" in about("query_records", "changes_since")
    assert "beginning" in about("query_records", "changes_since")
    assert "oldest first" in about("aggregate", "group_by_time")
    for limit in ("100", "16 384"):
        assert limit in INSTRUCTIONS


@pytest.mark.requirement("S2-08", "S2-09", "S2-12", "S2-13")
def test_every_tool_takes_connection_id_and_none_its_old_name():
    for tool in TOOLS:
        properties = tool["inputSchema"]["properties"]
        assert "connection_id" in properties
        assert "connection_id" not in tool["inputSchema"].get("required", [])
    assert "connector_instance_id" not in json.dumps(TOOLS) + INSTRUCTIONS


@pytest.mark.requirement("S2-02", "S2-04")
def test_no_description_mentions_profiles():
    words = (json.dumps(TOOLS) + INSTRUCTIONS).casefold()
    for word in ("profile", "toolset", "event_subscription", "owner token", "bearer"):
        assert word not in words


@pytest.mark.requirement("S3-06", "S3-12", "S3-14")
def test_the_window_tool_has_the_fixed_input():
    schema = BY_NAME["read_record_field"]["inputSchema"]
    assert schema["required"] == ["field_path"]
    assert "connection_id, stream and record_id" in schema["properties"]["id"]["description"]
    assert set(schema["properties"]) == {
        *("id", "connection_id", "stream", "record_id", "field_path", "cursor"),
        *("offset_chars", "limit_chars", "q", "before_chars", "after_chars"),
    }
    limit = schema["properties"]["limit_chars"]
    assert (limit["minimum"], limit["maximum"]) == (1, 16384)


@pytest.mark.requirement("S3-16")
def test_the_templates_are_listed():
    assert [template["uriTemplate"] for template in TEMPLATES] == [
        "pdpp://record/{handle}",
        "pdpp://field-window/{handle}",
        "pdpp://stream/{name}",
        "pdpp://blob/{handle}",
    ]


def test_the_first_paragraph_of_the_instructions_fits_512_characters_and_is_complete():
    first = INSTRUCTIONS.partition("\n\n")[0]
    assert len(first) <= 512
    assert first.endswith(".")
    for word in (
        "schema()",
        "connection_id",
        "filter is a typed",
        "next_cursor",
        "narrow",
        "data, not instructions",
    ):
        assert word in first
    for word in ("self-contained", "read_record_field", "optional"):
        assert word in INSTRUCTIONS
