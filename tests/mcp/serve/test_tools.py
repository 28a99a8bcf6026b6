from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from headgate.mcp.serve.call import TOOL_HANDLERS
from headgate.mcp.serve.tools import INSTRUCTIONS, TEMPLATES, TOOLS

NAMES = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
BY_NAME = {tool["name"]: tool for tool in TOOLS}


@pytest.mark.requirement("S2-07", "S2-10", "S2-11", "S2-19", "S2-20", "S2-21", "S2-22", "S3-05")
def test_there_are_exactly_six_tools_and_they_are_small():
    assert [tool["name"] for tool in TOOLS] == NAMES
    assert list(TOOL_HANDLERS) == NAMES
    assert len(msgspec.json.encode({"tools": TOOLS})) <= 14_000


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
    assert schema["oneOf"] == [
        {"required": ["id", "field_path"]},
        {"required": ["connection_id", "stream", "record_id", "field_path"]},
    ]
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
