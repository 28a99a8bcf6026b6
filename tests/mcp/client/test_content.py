"""The block mapper: one block in, one block out, even when it is malformed."""

import json

import pytest
from hypothesis import given, strategies as st

from headgate.mcp.client.forward import map_mcp_content_blocks
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.schema.check import compile_schema

UNION = compile_schema(MCP_CONTENT_SCHEMA)
HINTS = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}


@pytest.mark.requirement("S4-04", "S0-20")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "words", "annotations": HINTS, "_meta": {"k": 1}, "future": True},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x:1", "mimeType": "text/plain", "text": "t"}},
        {"type": "resource", "resource": {"uri": "x:1", "blob": "aGk=", "_meta": {}}},
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "n", "title": "t", "size": 3},
    ],
)
def test_a_well_formed_block_of_a_known_kind_stays_whole(block):
    assert map_mcp_content_blocks([block]) == [block]


@pytest.mark.requirement("S4-04")
@pytest.mark.parametrize(
    ("block", "mapped"),
    [
        ({"type": "text", "text": None}, {"type": "text", "text": ""}),
        ({"type": "text"}, {"type": "text", "text": ""}),
        ({"type": "text", "text": 7}, {"type": "text", "text": "7"}),
        (
            {"type": "image", "data": "a"},
            {"type": "image", "data": "a", "mimeType": "application/octet-stream"},
        ),
        ({"type": "audio", "data": "a"}, {"type": "audio", "data": "a", "mimeType": "audio/octet-stream"}),
        (
            {"type": "resource", "resource": {"text": "t"}},
            {"type": "resource", "resource": {"text": "t", "uri": ""}},
        ),
        ({"type": "text", "text": "t", "annotations": 3, "_meta": []}, {"type": "text", "text": "t"}),
    ],
)
def test_a_known_kind_that_lacks_something_is_completed(block, mapped):
    assert map_mcp_content_blocks([block]) == [mapped]


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "hologram", "b": 1, "a": "ü"}, '{"type":"hologram","b":1,"a":"ü"}'),
        ({"no": "type"}, '{"no":"type"}'),
        ({"type": ["text"]}, '{"type":["text"]}'),
        ({"type": "resource", "resource": "x"}, '{"type":"resource","resource":"x"}'),
        (None, "null"),
        ("hello", '"hello"'),
        ([1, 2], "[1,2]"),
    ],
)
def test_an_unknown_block_becomes_text_that_holds_its_json(block, words):
    assert map_mcp_content_blocks([block]) == [{"type": "text", "text": words}]


@pytest.mark.requirement("S0-B5")
@pytest.mark.parametrize("nothing", [None, [], {}, "text", 3])
def test_no_list_is_no_blocks(nothing):
    assert map_mcp_content_blocks(nothing) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(["text", "image", "audio", "resource", "resource_link", "odd"])
KEYS = ["text", "data", "mimeType", "uri", "name", "resource", "annotations", "_meta", "size", "title"]
HINTED = st.dictionaries(st.sampled_from(["audience", "priority", "lastModified", "x"]), JSON)
BLOCKS = st.builds(
    lambda kind, fields, hints: {"annotations": hints, **fields, "type": kind},
    KINDS,
    st.dictionaries(st.sampled_from(KEYS), JSON),
    HINTED,
)


@given(st.lists(BLOCKS | JSON, max_size=6))
def test_any_json_maps_to_as_many_blocks_that_all_fit_the_union(blocks):
    before = json.dumps(blocks)
    mapped = map_mcp_content_blocks(blocks)
    assert len(mapped) == len(blocks)
    assert UNION.issues(mapped) == ()
    assert json.dumps(blocks) == before
    assert map_mcp_content_blocks(mapped) == mapped
