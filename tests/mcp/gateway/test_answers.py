"""The five tools over a registry, as values: what they show, run, refuse and pass on."""

import json

import pytest

from headgate.errors import CallError
from headgate.mcp.gateway.answers import Gateway
from headgate.mcp.gateway.results import ANSWER_BYTES
from headgate.mcp.gateway.tools import TOOLS
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registration import expose
from headgate.operations.spec import AccessControl, ErrorDefinition, Identity
from headgate.schema.check import check
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio

READER = Identity("reader", frozenset({"read"}))
OPEN = AccessControl()
RESTRICTED = AccessControl(required_scopes=("read",))
OUTPUTS = {tool["name"]: tool["outputSchema"] for tool in TOOLS if "outputSchema" in tool}
BLOCKS = [
    {"type": "text", "text": "no such repository"},
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def remote_answer(_value, _context):
    return mcp_envelope(BLOCKS, content=BLOCKS)


async def remote_error(_value, _context):
    return mcp_envelope(BLOCKS, is_error=True, content=BLOCKS)


async def not_json(_value, _context):
    return {1, 2}


async def huge(_value, _context):
    return "x" * (ANSWER_BYTES + 1)


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
    expose(leaf(remote_answer, "picture"), access_control=OPEN),
)


OFFERED = Gateway(HELD)


async def ask(tool, identity=None, **arguments):
    given = await OFFERED.answer(tool, arguments, identity=identity)
    if tool in OUTPUTS:
        assert check(OUTPUTS[tool], given.structured) == ()
    assert given.is_error is ("error" in (given.structured or {}))
    return given


async def error_of(tool, identity=None, **arguments):
    return (await ask(tool, identity, **arguments)).structured["error"]


def test_there_are_exactly_five_tools_in_a_fixed_order_with_honest_hints():
    assert [tool["name"] for tool in TOOLS] == ["search", "schema", "call", "batch", "read"]
    assert [tool["annotations"]["readOnlyHint"] for tool in TOOLS] == [True, True, False, False, True]
    assert "ns/" not in json.dumps(TOOLS)
    assert len(json.dumps(TOOLS)) < 4300


async def test_search_shows_what_this_caller_may_call():
    shown = (await ask("search")).structured["operations"]
    assert [operation["id"] for operation in shown] == [
        "ns/declared",
        "ns/echo",
        "ns/huge",
        "ns/odd",
        "ns/picture",
        "ns/remote",
    ]
    assert "ns/secret" in json.dumps((await ask("search", READER)).structured)
    answer = await ask("search", query="gives ECHO")
    assert answer.structured == {
        "operations": [{"id": "ns/echo", "parameters": "", "description": "Gives back"}],
        "total": 1,
    }
    assert answer.content == [{"type": "text", "text": "ns/echo() — Gives back"}]


async def test_search_has_pages():
    first = (await ask("search", limit=2)).structured
    assert first["nextCursor"] == "2"
    second = (await ask("search", limit=3, cursor=first["nextCursor"])).structured
    assert second["nextCursor"] == "5"
    assert len(first["operations"]) + len(second["operations"]) == 5
    assert first["total"] == 6
    for cursor in ("x", "-1", "1" * 30, ""):
        assert (await error_of("search", cursor=cursor))["code"] == "INVALID_INPUT"


async def test_schema_says_how_to_call_what_this_caller_may_call():
    shown = (await ask("schema", name="/ns/echo")).structured["operation"]
    assert shown["input_schema"] == {"type": "object", "required": ["a"]}
    assert not {"access_control", "visibility", "_meta", "meta", "output_schema"} & shown.keys()
    whole = (await ask("schema", operation="ns/echo", outputs=True)).structured["operation"]
    assert "output_schema" in whole
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
    ],
)
async def test_what_cannot_be_called_is_an_error_that_a_model_can_read(arguments, code):
    assert (await error_of("call", **arguments))["code"] == code


async def test_a_wrong_argument_is_answered_with_how_to_call_it():
    error = await error_of("call", operation="ns/echo", input={})
    assert (error["call"], error["input_schema"]) == ("ns/echo()", {"type": "object", "required": ["a"]})


async def test_a_declared_error_passes_through():
    assert await error_of("call", operation="ns/declared") == {
        "code": "EMPTY",
        "message": "nothing there",
        "retryable": True,
        "details": {"where": "here"},
        "hint": "Look at the log for the request id.",
    }


async def test_the_blocks_of_an_answer_without_structure_are_passed_on_as_they_came():
    answer = await ask("call", operation="ns/picture")
    assert (answer.structured, answer.content) == (None, BLOCKS)


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
    without = Gateway(registry(*(item for item in HELD if item.spec.id != "ns/secret")))
    for identity in (None, Identity("weak", frozenset({"other"}))):
        for tool, arguments in (
            ("call", {"operation": "ns/secret", "input": {}}),
            ("schema", {"operation": "ns/secret"}),
            ("batch", {"calls": [{"operation": "ns/secret", "input": {}}]}),
        ):
            hidden = await OFFERED.answer(tool, arguments, identity=identity)
            absent = await without.answer(tool, arguments, identity=identity)
            assert hidden == absent
            assert "NOT_FOUND" in json.dumps(hidden.structured)


async def test_a_misspelt_operation_is_answered_with_the_nearest():
    error = await error_of("call", operation="ns/ecko")
    assert "ns/echo" in error["message"]
    assert "ns/secret" not in (await error_of("call", operation="ns/secre"))["message"]
    assert "ns/secret" in (await error_of("call", READER, operation="ns/secre"))["message"]


async def test_an_unknown_tool_is_none_of_the_five():
    assert await OFFERED.answer("ns/echo", {}, identity=None) is None


async def test_missing_arguments_are_an_empty_object():
    assert not (await OFFERED.answer("search", None, identity=None)).is_error
