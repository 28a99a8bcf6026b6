"""The block union has five members, allows what servers add, and refuses what is no block."""

import pytest

from headgate.operations.content import MCP_CONTENT_SCHEMA, blocks_text
from headgate.schema.check import check

GOOD = [
    {"type": "text", "text": "x", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {}},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
    {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "more": 1},
    {"type": "resource", "resource": {"uri": "a:b", "text": "x"}},
    {"type": "resource_link", "uri": "a:b", "name": "n", "title": "t", "size": 3},
]


@pytest.mark.requirement("S0-13")
@pytest.mark.requirement("S0-20")
def test_the_five_kinds_fit_in_one_list():
    assert check(MCP_CONTENT_SCHEMA, GOOD) == ()
    assert check(MCP_CONTENT_SCHEMA, []) == ()
    assert len(MCP_CONTENT_SCHEMA["items"]["anyOf"]) == 5


@pytest.mark.parametrize(
    "block",
    [
        {},
        {"type": "text"},
        {"type": "video", "data": ""},
        {"type": "image", "data": "AA=="},
        {"type": "resource", "resource": {}},
        {"type": "resource_link", "uri": "a:b"},
        {"type": "text", "text": "x", "annotations": {"priority": 2}},
        "text",
    ],
)
def test_what_is_no_block_does_not_fit(block):
    assert check(MCP_CONTENT_SCHEMA, [block])


@pytest.mark.requirement("S0-21")
def test_texts_are_joined_and_never_parsed():
    blocks = [{"type": "text", "text": '{"a":1}'}, GOOD[1], {"type": "text", "text": "b"}]
    assert blocks_text(blocks) == '{"a":1}\nb'
