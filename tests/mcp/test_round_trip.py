"""Our own gateway, imported with our own ``from_mcp``: both ends meet, errors included."""

import pytest

from headgate.errors import CallError
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.gateway.server import gateway_app, to_mcp
from headgate.operations.registration import HandlerRegistration, OperationContext, expose
from headgate.operations.registry import Registry
from headgate.operations.secrets import Capabilities
from headgate.operations.spec import AccessControl, Identity, OperationSpec, OperationType, Visibility
from tests.hostile.server import tool
from tests.mcp.client.importing import importing
from tests.peers.serving import serving

pytestmark = pytest.mark.anyio

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PEOPLE = {"good-token-1": Identity("anna", frozenset({"read"}))}


async def identify(token):
    return PEOPLE.get(token)


async def double(value, context):
    return {"n": value["n"] * 2, "who": context.identity.id}


LOCAL = HandlerRegistration(
    OperationSpec(
        "double",
        "mine",
        op_type=OperationType.QUERY,
        visibility=Visibility.EXTERNAL,
        input_schema=NUMBER,
        access_control=AccessControl(required_scopes=("read",)),
    ),
    double,
)


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_registry_reached_through_both_ends_answers_as_it_does_at_home(era):
    failing = {"content": [{"type": "text", "text": "no"}], "isError": True}
    async with importing(tools=[tool("fails")], results={"fails": failing}) as (_, inner):
        home = Registry([LOCAL, *(expose(item, access_control=AccessControl()) for item in inner)])
        app = gateway_app(to_mcp(home, identify, version="1"), "/mcp", allowed_hosts=["127.0.0.1:*"])
        options = ImportOptions(era=era)
        async with (
            serving(app) as address,
            await from_mcp(f"{address}/mcp", "far", "good-token-1", options=options) as imported,
        ):
            assert [item.name for item in imported] == ["search", "schema", "call", "batch", "read"]
            assert imported.skipped == ()
            far = Registry(expose(item, access_control=AccessControl()) for item in imported)
            found = await far.call("far/search", {"query": "double"})
            assert [entry["id"] for entry in found["operations"]] == ["mine/double"]
            described = await far.call("far/schema", {"operation": "mine/double"})
            assert described["operation"]["input_schema"] == NUMBER
            answer = await far.call("far/call", {"operation": "mine/double", "input": {"n": 21}})
            assert answer == {"output": {"n": 42, "who": "anna"}}
            await _errors_come_through(far)
            await _the_bearer_of_each_call_decides(imported)


async def _errors_come_through(far):
    for wanted, code in (
        ({"operation": "mine/double", "input": {"n": "x"}}, "INVALID_INPUT"),
        ({"operation": "mine/nothing"}, "NOT_FOUND"),
        ({"operation": "ns/fails"}, "MCP_TOOL_ERROR"),
    ):
        envelope = await far.execute("far/call", wanted)
        assert envelope.is_error
        assert envelope.data["error"]["code"] == code
        with pytest.raises(CallError) as caught:
            envelope.unwrap()
        assert caught.value.code == "MCP_TOOL_ERROR"
    batch = await far.call(
        "far/batch",
        {"calls": [{"operation": "mine/double", "input": {"n": 1}}, {"operation": "no/where", "input": {}}]},
    )
    assert [entry["isError"] for entry in batch["results"]] == [False, True]


async def _the_bearer_of_each_call_decides(imported):
    call = imported[2]
    wanted = {"operation": "mine/double", "input": {"n": 1}}
    for capabilities in (Capabilities(), Capabilities().with_http_token("far", "unknown-token")):
        envelope = await call.handler(wanted, OperationContext("r", capabilities=capabilities))
        assert envelope.data["error"]["code"] == "NOT_FOUND"
