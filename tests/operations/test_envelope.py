"""An envelope is data first; its error waits until somebody unwraps it."""

import json

import pytest
from hypothesis import given, strategies as st

from headgate.errors import CallError
from headgate.operations.envelope import (
    LocalMeta,
    McpMeta,
    ResponseEnvelope,
    is_envelope_dict,
    local_envelope,
    mcp_envelope,
    tool_error,
    unwrap,
)
from headgate.schema.value import Issue
from tests.schema.test_value import JSON

BLOCKS = [
    {"type": "text", "text": "not found"},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
    {"type": "text", "text": "try again"},
]
ISSUE = Issue("$.n", "type", "is not of type integer")


def test_each_factory_makes_its_own_kind_of_meta():
    local = local_envelope(1, "ns/op", timestamp=5, request_id="r")
    mcp = mcp_envelope(3, content=BLOCKS, structured_content={"x": 1}, meta={"k": 1})
    assert local.meta == LocalMeta("ns/op", 5)
    assert mcp.meta == McpMeta(is_error=False, content=BLOCKS, structured_content={"x": 1}, meta={"k": 1})
    assert [one.meta.source for one in (local, mcp)] == ["local", "mcp"]
    assert [unwrap(one) for one in (local, mcp)] == [1, 3]
    assert local.request_id == "r"


@pytest.mark.requirement("S4-B1")
def test_the_wire_form_leaves_out_what_is_absent():
    assert mcp_envelope([]).to_dict() == {
        "data": [],
        "meta": {"source": "mcp", "isError": False, "content": []},
    }
    full = mcp_envelope({"a": 1}, structured_content={"a": 1}, meta={"k": 1}, issues=[ISSUE], request_id="r")
    assert full.to_dict() == {
        "data": {"a": 1},
        "meta": {
            "source": "mcp",
            "isError": False,
            "content": [],
            "structuredContent": {"a": 1},
            "_meta": {"k": 1},
        },
        "requestId": "r",
        "issues": [{"path": "$.n", "keyword": "type", "message": "is not of type integer"}],
        "error": {
            "code": "INVALID_OUTPUT",
            "message": "The output breaks its schema at $.n (type).",
            "retryable": False,
            "details": {"issues": [ISSUE.to_dict()]},
        },
    }
    assert local_envelope(None, "a/b", timestamp=1).to_dict() == {
        "data": None,
        "meta": {"source": "local", "operationId": "a/b", "timestamp": 1},
    }


ENVELOPES = st.one_of(
    st.builds(lambda data, when: local_envelope(data, "a/b", timestamp=when), JSON, st.integers()),
    st.builds(
        lambda data, failed, structured, issues: mcp_envelope(
            data, is_error=failed, content=BLOCKS, structured_content=structured, issues=issues
        ),
        JSON,
        st.booleans(),
        JSON,
        st.lists(st.builds(Issue, st.text(), st.text(), st.text()), max_size=2),
    ),
)


@given(ENVELOPES)
def test_an_envelope_is_the_same_after_a_trip_over_the_wire(envelope):
    again = ResponseEnvelope.from_dict(json.loads(json.dumps(envelope.to_dict())))
    assert again == envelope
    assert again.to_dict() == envelope.to_dict()
    assert (again.ok, again.is_error) == (envelope.ok, envelope.is_error)


LOCAL = {"source": "local", "operationId": "a/b", "timestamp": 1}
MCP = {"source": "mcp", "isError": False, "content": []}


@pytest.mark.parametrize(
    ("value", "is_envelope"),
    [
        (None, False),
        (1, False),
        ("x", False),
        ([], False),
        ({}, False),
        ({"data": 1}, False),
        ({"meta": LOCAL}, False),
        ({"data": 1, "meta": None}, False),
        ({"data": 1, "meta": []}, False),
        ({"data": 1, "meta": {}}, False),
        ({"data": 1, "meta": {"source": "other"}}, False),
        ({"data": 1, "meta": {"source": ["mcp"]}}, False),
        ({"data": 1, "meta": {**LOCAL, "operationId": 1}}, False),
        ({"data": 1, "meta": {**LOCAL, "timestamp": "1"}}, False),
        ({"data": 1, "meta": {**LOCAL, "timestamp": True}}, False),
        ({"data": 1, "meta": {"source": "local", "timestamp": 1}}, False),
        ({"data": 1, "meta": {"source": "http", "statusCode": 200}}, False),
        ({"data": 1, "meta": {"source": "http"}}, False),
        ({"data": 1, "meta": {**MCP, "isError": 0}}, False),
        ({"data": 1, "meta": {**MCP, "content": {}}}, False),
        ({"data": 1, "meta": {"source": "mcp", "isError": False}}, False),
        ({"data": [1], "meta": {"page": 1, "source": "orders"}}, False),
        ({"data": 1, "meta": LOCAL}, True),
        ({"data": 1, "meta": {**LOCAL, "timestamp": 1.5}}, True),
        ({"data": 0, "meta": {**MCP, "more": 1}, "more": 2}, True),
    ],
)
def test_only_a_whole_envelope_on_a_wire_is_taken_for_one(value, is_envelope):
    assert is_envelope_dict(value) is is_envelope
    if not is_envelope:
        with pytest.raises(CallError) as refused:
            ResponseEnvelope.from_dict(value)
        assert refused.value.code == "INVALID_OUTPUT"


@pytest.mark.requirement("S0-22")
@pytest.mark.requirement("S4-07")
def test_a_tool_error_is_data_until_it_is_unwrapped_and_keeps_all_its_content():
    envelope = mcp_envelope(BLOCKS, is_error=True, content=BLOCKS, structured_content={"why": 1})
    assert envelope.data == BLOCKS
    assert (envelope.ok, envelope.is_error) == (False, True)
    assert envelope.unwrap_or_none() is None
    for _ in range(2):
        with pytest.raises(CallError) as raised:
            envelope.unwrap()
        assert raised.value is envelope.error
    assert envelope.error.code == "MCP_TOOL_ERROR"
    assert envelope.error.message == "not found; try again"
    assert envelope.error.details == {"content": BLOCKS, "structuredContent": {"why": 1}}
    with pytest.raises(CallError):
        envelope.unwrap(allow_issues=True)


def test_a_tool_error_says_which_tool_and_is_cut():
    error = tool_error([{"type": "text", "text": "x" * 2_000}], tool="t", namespace="n")
    assert len(error.message) == 500
    assert (error.details["tool"], error.details["namespace"]) == ("t", "n")
    assert "without saying" in tool_error([]).message
    assert (error.status, error.retryable) == (502, False)


def test_issues_raise_when_unwrapped_unless_they_are_allowed():
    envelope = mcp_envelope({"n": "x"}, issues=[ISSUE])
    assert envelope.unwrap(allow_issues=True) == {"n": "x"}
    assert envelope.unwrap_or_none() == {"n": "x"}
    with pytest.raises(CallError) as raised:
        envelope.unwrap()
    assert raised.value.code == "INVALID_OUTPUT"


def test_a_missing_output_has_its_own_code():
    envelope = mcp_envelope(BLOCKS, content=BLOCKS, issues=[Issue("$", "MCP_OUTPUT_MISSING", "is missing")])
    assert envelope.error.code == "MCP_OUTPUT_MISSING"
    assert envelope.unwrap(allow_issues=True) == BLOCKS


def test_an_envelope_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"\.ok"):
        bool(mcp_envelope([]))


def test_an_unknown_code_is_not_retryable_and_internal():
    wire = {**mcp_envelope([], issues=[ISSUE]).to_dict(), "error": {"code": "SOMETHING_NEW"}}
    error = ResponseEnvelope.from_dict(wire).error
    assert (error.code, error.status, error.retryable) == ("SOMETHING_NEW", 500, False)
