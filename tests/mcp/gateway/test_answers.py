"""The four tools over a registry, as values: what they show, run, refuse and pass on."""

import json

import pytest

from headgate.errors import CallError
from headgate.mcp.gateway.answers import MAX_ANSWER_BYTES, TOOLS, answer
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registration import expose
from headgate.operations.spec import AccessControl, ErrorDefinition, Identity
from headgate.schema.check import check
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio

READER = Identity("reader", frozenset({"read"}))
OPEN = AccessControl()
RESTRICTED = AccessControl(required_scopes=("read",))
OUTPUTS = {tool["name"]: tool["outputSchema"] for tool in TOOLS}
BLOCKS = [
    {"type": "text", "text": "no such repository"},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def remote_error(_value, _context):
    return mcp_envelope(BLOCKS, is_error=True, content=BLOCKS)


async def not_json(_value, _context):
    return {1, 2}


async def huge(_value, _context):
    return "x" * MAX_ANSWER_BYTES


async def declared(_value, _context):
    raise CallError("EMPTY", "nothing there", details={"where": "here"}, retryable=True)


HELD = registry(
    operation(
        name="echo",
        title="Echo",
        description="Gives back",
        input_schema={"type": "object", "required": ["a"]},
    ),
    operation(name="secret", access_control=RESTRICTED),
    operation(not_json, "odd"),
    operation(huge, "huge"),
    operation(declared, "declared", error_schemas=(ErrorDefinition("EMPTY"),)),
    leaf(name="hidden"),
    expose(leaf(remote_error, "remote"), access_control=OPEN),
)


async def ask(tool, identity=None, **arguments):
    given = await answer(HELD, tool, arguments, identity=identity)
    assert check(OUTPUTS[tool], given.structured) == ()
    if not (given.is_error and given.content == BLOCKS):
        assert [json.loads(block["text"]) for block in given.content] == [given.structured]
    assert given.is_error is ("error" in given.structured)
    return given


async def error_of(tool, identity=None, **arguments):
    return (await ask(tool, identity, **arguments)).structured["error"]


def test_there_are_exactly_four_tools_in_a_fixed_order_with_honest_hints():
    assert [tool["name"] for tool in TOOLS] == ["search", "schema", "call", "batch"]
    assert [tool["annotations"]["readOnlyHint"] for tool in TOOLS] == [True, True, False, False]
    assert all(tool["outputSchema"]["type"] == "object" for tool in TOOLS)
    assert "ns/" not in json.dumps(TOOLS)


async def test_search_shows_what_this_caller_may_call():
    shown = (await ask("search")).structured["operations"]
    assert [one["id"] for one in shown] == ["ns/declared", "ns/echo", "ns/huge", "ns/odd", "ns/remote"]
    assert "ns/secret" in json.dumps((await ask("search", READER)).structured)
    found = (await ask("search", query="gives ECHO")).structured
    assert found == {
        "operations": [
            {
                "id": "ns/echo",
                "namespace": "ns",
                "name": "echo",
                "op_type": "query",
                "title": "Echo",
                "description": "Gives back",
            }
        ]
    }


async def test_search_has_pages():
    first = (await ask("search", limit=2)).structured
    assert first["nextCursor"] == "2"
    second = (await ask("search", limit=3, cursor=first["nextCursor"])).structured
    assert "nextCursor" not in second
    assert len(first["operations"]) + len(second["operations"]) == 5
    for cursor in ("x", "-1", "1" * 30, ""):
        assert (await error_of("search", cursor=cursor))["code"] == "INVALID_INPUT"


async def test_schema_says_how_to_call_what_this_caller_may_call():
    shown = (await ask("schema", name="/ns/echo")).structured["operation"]
    assert shown["input_schema"] == {"type": "object", "required": ["a"]}
    assert not {"access_control", "visibility", "_meta", "meta"} & shown.keys()
    errors = [await error_of("schema", name=name) for name in ("ns/hidden", "ns/secret", "ns/none")]
    assert {error["code"] for error in errors} == {"NOT_FOUND"}
    assert (await ask("schema", READER, name="ns.secret")).structured["operation"]["id"] == "ns/secret"


async def test_call_runs_an_operation_for_this_caller():
    assert (await ask("call", operation="ns/echo", input={"a": [1, None]})).structured == {
        "output": {"a": [1, None]}
    }
    assert (await ask("call", READER, operation="ns/secret")).structured == {"output": {}}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"operation": "ns/none"}, "NOT_FOUND"),
        ({"operation": "ns/hidden"}, "NOT_FOUND"),
        ({"operation": "ns/secret"}, "NOT_FOUND"),
        ({"operation": "ns/echo", "input": {}}, "INVALID_INPUT"),
        ({"operation": "ns/echo", "input": [1]}, "INVALID_INPUT"),
        ({"operation": "ns/echo", "input": {"a": 1}, "internal": True}, "INVALID_INPUT"),
        ({}, "INVALID_INPUT"),
        ({"operation": "ns/odd"}, "INVALID_OUTPUT"),
        ({"operation": "ns/huge"}, "RESOURCE_LIMIT"),
    ],
)
async def test_what_cannot_be_called_is_an_error_that_a_model_can_read(arguments, code):
    assert (await error_of("call", **arguments))["code"] == code


async def test_a_declared_error_passes_through():
    assert await error_of("call", operation="ns/declared") == {
        "code": "EMPTY",
        "message": "nothing there",
        "retryable": True,
        "details": {"where": "here"},
        "hint": "Look at the log for the request id.",
    }


async def test_the_blocks_of_a_remote_error_are_passed_on_as_they_came():
    given = await ask("call", operation="ns/remote")
    assert given.is_error
    assert given.content == BLOCKS
    assert given.structured["error"]["code"] == "MCP_TOOL_ERROR"
    assert given.structured["error"]["details"]["content"] == BLOCKS


async def test_a_batch_keeps_order_and_mixes_outcomes():
    names = ["ns/echo", "ns/none", "ns/remote", "ns/odd", "ns/echo"]
    calls = [{"operation": name, "input": {"a": n}} for n, name in enumerate(names)]
    results = (await ask("batch", calls=calls)).structured["results"]
    assert [one["isError"] for one in results] == [False, True, True, True, False]
    assert [one["output"] if "output" in one else one["error"]["code"] for one in results] == [
        {"a": 0},
        "NOT_FOUND",
        "MCP_TOOL_ERROR",
        "INVALID_OUTPUT",
        {"a": 4},
    ]
    assert (await ask("batch", calls=[])).structured == {"results": []}
    for wrong in ([{"input": {}}], [1], [{"operation": "ns/echo"}] * 101):
        assert (await error_of("batch", calls=wrong))["code"] == "INVALID_INPUT"


async def test_an_operation_that_is_not_for_the_caller_is_refused_like_one_that_is_not_there():
    calls = [{"operation": name, "input": {}} for name in ("ns/secret", "ns/absent")]
    for identity in (None, Identity("weak", frozenset({"other"}))):
        results = (await ask("batch", identity, calls=calls)).structured["results"]
        single = [await error_of("call", identity, **call) for call in calls]
        for hidden, absent in (results, single):
            shown = json.dumps(hidden).replace("ns/secret", "ns/absent")
            assert shown == json.dumps(absent)
            assert "NOT_FOUND" in shown


async def test_an_unknown_tool_is_none_of_the_four():
    assert await answer(HELD, "ns/echo", {}, identity=None) is None


async def test_missing_arguments_are_an_empty_object():
    assert not (await answer(HELD, "search", None, identity=None)).is_error
