"""Importing a server: which requests are sent, and which operation each tool becomes."""

import asyncio
import inspect
import json
import os

import httpx2
import pytest

from headgate.errors import (
    AdapterConfigInvalid,
    AdapterError,
    CallError,
    DiscoveryFailed,
    NameCollision,
    SchemaParse,
    Unauthorized,
    UpstreamAuthFailed,
)
from headgate.mcp.client.from_mcp import FromMCP, ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.mapping import ERRORS_META_KEY
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.operations.registration import HandlerRegistration, OperationAdapter, Provenance, expose
from headgate.operations.registry import Registry
from headgate.operations.secrets import Secret
from headgate.operations.spec import AccessControl, OperationType, OutputKind, Visibility
from headgate.schema.check import check
from tests.hostile.server import (
    LEGACY,
    MODERN,
    answers,
    error_of,
    faulty_server,
    hangs,
    http,
    replies,
    result_of,
    tool,
)
from tests.mcp.client.importing import context, importing, until

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])
SHORT = ImportOptions(limits=Limits(total_seconds=0.3, idle_seconds=0.3))
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.requirement("S0-01")
def test_an_adapter_has_an_endpoint_a_namespace_and_perhaps_a_token():
    bare = FromMCP("https://example.com/mcp", "example")
    signed = FromMCP("https://example.com/mcp?key=hidden", "example", "canary-token")

    assert (bare.endpoint, bare.namespace, bare.auth_token) == ("https://example.com/mcp", "example", None)
    assert signed.auth_token == Secret("canary-token")
    assert "canary" not in repr(signed)
    assert "hidden" not in repr(signed)


@pytest.mark.requirement("S0-02", "S0-07", "S0-27")
async def test_an_import_gives_one_registration_for_each_tool():
    async with faulty_server(tools=[tool("one"), tool("two"), tool("three")]) as server:
        adapter = FromMCP(server.url, "ns")
        assert isinstance(adapter, OperationAdapter)
        assert inspect.iscoroutinefunction(adapter.import_operations)
        async with await adapter.import_operations() as imported:
            assert all(isinstance(item, HandlerRegistration) for item in imported)
            assert [item.name for item in imported] == ["one", "two", "three"]
            assert len(imported) == 3


@pytest.mark.requirement("S0-03")
async def test_the_first_message_is_a_handshake_posted_to_exactly_that_path():
    async with faulty_server() as server:
        address = f"{server.url}/deep?tenant=7"
        async with await from_mcp(address, "ns", options=ImportOptions(era="legacy")):
            first = server.seen[0]
    assert (first.verb, first.path, first.method) == ("POST", "/mcp/deep?tenant=7", "initialize")
    assert first.headers["accept"] == "application/json, text/event-stream"
    assert first.headers["content-type"] == "application/json"
    assert first.params["capabilities"] == {}


@pytest.mark.requirement("S0-03")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_both_eras_are_detected_without_configuration(era):
    async with faulty_server(era=era) as server, await from_mcp(server.url, "ns") as imported:
        assert imported.report()["protocolVersion"] == era
        assert imported.report()["serverInfo"] == {"name": "faulty", "version": "1"}
        assert server.calls("initialize") == [] if era == MODERN else server.calls("initialize")


async def test_a_modern_request_introduces_itself_in_headers_and_body():
    async with faulty_server(era=MODERN) as server, await from_mcp(server.url, "ns") as imported:
        await imported[0].handler({}, context(imported[0]))
        seen = server.calls("tools/call")[0]
    assert seen.headers["mcp-method"] == "tools/call"
    assert seen.headers["mcp-name"] == "echo"
    assert seen.headers["mcp-protocol-version"] == MODERN
    assert seen.params["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN
    assert seen.params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}


@pytest.mark.requirement("S0-04")
async def test_a_closed_port_an_unknown_host_and_silence_are_failed_discoveries():
    async with faulty_server() as server:
        closed = server.url
    async with faulty_server(faults={"server/discover": hangs}) as silent:
        nowhere = ImportOptions(resolve=_no_such_host)
        for address, options in (
            (closed, None),
            ("https://no-such-host.example/mcp", nowhere),
            (silent.url, SHORT),
        ):
            with pytest.raises(DiscoveryFailed) as caught:
                await from_mcp(address, "ns", options=options)
            assert isinstance(caught.value.__cause__, AdapterError)
            assert caught.value.__cause__.code in {"upstream_unreachable", "upstream_timeout"}


async def _no_such_host(host, port):
    raise OSError("no such host")


@pytest.mark.requirement("S0-04")
async def test_a_web_page_is_no_server():
    page = answers(http(200, b"<html>401 Unauthorized</html>", kind="text/html"))
    async with faulty_server(faults={"server/discover": page, "initialize": page}) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.__cause__ is not None


@pytest.mark.requirement("S0-05")
@pytest.mark.parametrize("method", ["server/discover", "initialize", "tools/list"])
async def test_a_401_on_any_request_of_the_import_is_unauthorized(method):
    refusal = answers(http(401, www_authenticate='Bearer realm="here"'))
    async with faulty_server(faults={method: refusal}) as server:
        with pytest.raises(Unauthorized) as caught:
            await from_mcp(server.url, "ns", "canary-token")
        assert server.calls(method)
    assert isinstance(caught.value.__cause__, UpstreamAuthFailed)
    assert "canary" not in repr(caught.value.details)


@pytest.mark.requirement("S0-05")
async def test_the_number_401_in_the_text_of_another_failure_does_not_count():
    failure = answers(http(500, b'{"error": "401 Unauthorized"}'))
    async with faulty_server(faults={"server/discover": failure, "initialize": failure}) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.details["status"] == 500


async def test_a_403_is_a_failed_discovery_that_names_its_status():
    async with faulty_server(faults={"server/discover": answers(http(403))}) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.details["status"] == 403


async def test_a_tool_list_of_100_pages_is_followed_and_one_of_101_is_not():
    async with faulty_server(tools=[tool(f"t{n}") for n in range(100)], page_size=1) as server:
        async with await from_mcp(server.url, "ns") as imported:
            assert len(imported) == 100
        server.tools.append(tool("one-more"))
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.details["reason"] == "upstream_too_large"


@pytest.mark.requirement("S0-06")
async def test_all_pages_are_read_in_order_and_every_field_arrives():
    tools = [tool(f"t{n}", description=f"Words {n}.", outputSchema=NUMBER) for n in range(5)]
    async with (
        faulty_server(tools=tools, page_size=2) as server,
        await from_mcp(server.url, "ns") as imported,
    ):
        assert len(server.calls("tools/list")) == 3
        assert [(i.name, i.description, i.input_schema, i.output_schema) for i in imported] == [
            (t["name"], t["description"], t["inputSchema"], t["outputSchema"]) for t in tools
        ]


@pytest.mark.requirement("S0-06")
@pytest.mark.parametrize("circle", [("a",), ("a", "b"), ("a", "b", "c")])
async def test_a_list_that_goes_in_a_circle_is_refused_when_it_comes_round(circle):
    following = dict(zip((None, *circle), (*circle, circle[0]), strict=True))

    def page(seen):
        cursor = seen.params.get("cursor")
        return result_of(seen, {"tools": [tool(f"t_{cursor}")], "nextCursor": following[cursor]})

    async with faulty_server(faults={"tools/list": replies(page)}) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
        assert len(server.calls("tools/list")) == len(circle) + 1
    assert "circle" in caught.value.message


@pytest.mark.requirement("S0-08")
@pytest.mark.parametrize("prefix", [False, True])
async def test_the_prefix_changes_the_name_and_neither_the_look_up_nor_the_wire(prefix):
    async with (
        faulty_server() as server,
        await from_mcp(server.url, "ns", namespace_prefix=prefix) as imported,
    ):
        registry = Registry(imported)
        assert imported[0].name == ("ns/echo" if prefix else "echo")
        for spelling in ("ns/echo", "/ns/echo", "ns.echo"):
            found = registry.get(spelling)
            assert found is not None
            await found.handler({}, context(found))
        assert {seen.params["name"] for seen in server.calls("tools/call")} == {"echo"}


@pytest.mark.requirement("S0-09", "S0-10", "S0-11", "S0-15", "S0-16")
async def test_an_imported_tool_is_an_internal_leaf_that_may_change_things():
    hinted = tool("reads", annotations={"readOnlyHint": True, "title": "Reads"})
    async with faulty_server(tools=[hinted]) as server, await from_mcp(server.url, "ns") as imported:
        (item,) = imported
        assert item.namespace == "ns"
        assert imported.report()["serverInfo"]["name"] != item.namespace
        assert item.op_type is OperationType.MUTATION
        assert item.visibility is Visibility.INTERNAL
        assert item.title == "Reads"
        assert item.access_control == AccessControl()
        assert item.provenance is Provenance.FROM_MCP
        assert item.composition_authority is None
        assert item.scoped_env is None
        assert item.meta["mcp"]["annotations"] == {"readOnlyHint": True, "title": "Reads"}
        registry = Registry(imported)
        with pytest.raises(CallError) as hidden:
            await registry.execute("ns/reads")
        with pytest.raises(CallError) as missing:
            await registry.execute("ns/other")
        assert hidden.value.code == missing.value.code == "NOT_FOUND"


@pytest.mark.requirement("S0-12")
async def test_the_input_schema_is_a_copy_of_what_the_server_sent():
    schema = {"type": "object", "properties": {"q": {"type": "string", "default": "x"}}, "x-odd": [1]}
    async with importing(tools=[tool("t", inputSchema=schema)]) as (_, imported):
        assert imported[0].input_schema == schema
        schema["properties"]["q"]["type"] = "integer"
        assert imported[0].input_schema["properties"]["q"]["type"] == "string"


@pytest.mark.requirement("S0-13", "S0-28", "S0-29", "S4-01")
async def test_a_declared_output_stays_and_an_undeclared_one_is_the_union_of_blocks():
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Kept.",
        "title": "A number",
        "x-odd": [1],
        "$defs": {"é": {"type": "integer"}},
        **NUMBER,
    }
    async with faulty_server(tools=[tool("declared", outputSchema=whole), tool("silent")]) as server:
        async with await from_mcp(server.url, "ns") as imported:
            declared, silent = imported
            assert (declared.output_schema, declared.output_kind) == (whole, OutputKind.DECLARED)
            assert (silent.output_schema, silent.output_kind) == (
                MCP_CONTENT_SCHEMA,
                OutputKind.CONTENT_BLOCKS,
            )
        options = ImportOptions(undeclared_output="unknown")
        async with await from_mcp(server.url, "ns", options=options) as imported:
            assert imported[1].output_schema == {}
            assert imported[1].output_kind is OutputKind.UNKNOWN


@pytest.mark.requirement("S4-B4")
@pytest.mark.parametrize("empty", [{}, None])
async def test_an_empty_output_schema_declares_nothing(empty):
    async with (
        faulty_server(
            tools=[tool("t", outputSchema=empty)], results={"t": {"structuredContent": {"any": 1}}}
        ) as server,
        await from_mcp(server.url, "ns") as imported,
    ):
        assert imported[0].output_kind is not OutputKind.DECLARED
        envelope = await imported[0].handler({}, context(imported[0]))
        assert envelope.data == {"any": 1}
        assert envelope.issues == ()


@pytest.mark.requirement("S0-14")
async def test_every_tool_declares_how_it_can_fail_and_real_failures_fit_the_declaration():
    own = {"code": "QUOTA", "description": "Used up.", "schema": {"type": "object", "required": ["left"]}}
    tools = [tool("t", _meta={ERRORS_META_KEY: [own, {"code": "TIMEOUT"}, {"code": 7}, "x"]})]
    failing = {"content": [{"type": "text", "text": "No."}], "isError": True}
    async with importing(tools=tools, results={"t": failing}) as (server, imported):
        declared = {error.code: error for error in imported[0].error_schemas}
        assert {"MCP_TOOL_ERROR", "MCP_TRANSPORT_ERROR", "MCP_UNAUTHORIZED"} <= declared.keys()
        assert {"MCP_PROTOCOL_ERROR", "MCP_OUTPUT_MISSING", "QUOTA"} <= declared.keys()
        assert declared["QUOTA"].schema == own["schema"]
        assert "TIMEOUT" not in declared
        envelope = await imported[0].handler({}, context(imported[0]))
        assert check(declared["MCP_TOOL_ERROR"].schema, envelope.error.details) == ()
        await server.stop()
        with pytest.raises(CallError) as caught:
            await imported[0].handler({}, context(imported[0]))
        assert check(declared["MCP_TRANSPORT_ERROR"].schema, caught.value.details) == ()


QUOTA = {
    "code": "QUOTA",
    "description": "Used up.",
    "schema": {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]},
}


def failing_with(error, words="QUOTA: used up"):
    return {
        "content": [{"type": "text", "text": words}],
        "structuredContent": {"error": error},
        "isError": True,
    }


@pytest.mark.requirement("S0-14", "S0-B8")
async def test_an_error_that_the_tool_declared_comes_under_its_own_code_from_every_door():
    declared = tool("t", outputSchema=NUMBER, _meta={ERRORS_META_KEY: [QUOTA]})
    declared_error = {
        "code": "QUOTA",
        "message": "Come\x1b tomorrow.",
        "details": {"left": 0},
        "retryable": True,
    }
    async with importing(tools=[declared], results={"t": failing_with(declared_error)}) as (_, imported):
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        envelope = await registry.execute("ns/t")
        assert envelope.is_error
        assert (envelope.error.code, envelope.error.details) == ("QUOTA", {"left": 0})
        assert envelope.error.message == "Come\\x1b tomorrow."
        assert not envelope.error.retryable
        assert envelope.data == {"error": declared_error}
        assert envelope.meta.content[0]["text"] == "QUOTA: used up"
        assert envelope.issues == ()
        with pytest.raises(CallError) as caught:
            await registry.call("ns/t")
        assert caught.value.code == "QUOTA"


@pytest.mark.parametrize(
    "error",
    [
        {"code": "QUOTA", "details": {"left": "none"}},
        {"code": "QUOTA"},
        {"code": "OTHER", "details": {"left": 0}},
        {"code": "MCP_UNAUTHORIZED", "details": {"reason": "x"}},
        {"code": "NOT_FOUND"},
        {"code": "tool_definition_changed", "details": {"tool": "t", "grade": "new"}},
        {"code": ["QUOTA"], "details": {"left": 0}},
        {"message": "QUOTA"},
        "QUOTA",
        None,
    ],
)
async def test_any_other_error_of_a_tool_is_the_general_one_with_all_its_content(error):
    own = [QUOTA, {"code": "NOT_FOUND"}, {"code": "MCP_UNAUTHORIZED"}, {"code": "tool_definition_changed"}]
    declared = tool("t", _meta={ERRORS_META_KEY: own})
    async with importing(tools=[declared], results={"t": failing_with(error)}) as (_, imported):
        envelope = await imported[0].handler({}, context(imported[0]))
    assert envelope.error.code == "MCP_TOOL_ERROR"
    assert envelope.error.details["structuredContent"] == {"error": error}
    assert envelope.error.details["content"][0]["text"] == "QUOTA: used up"


@pytest.mark.requirement("S0-17")
async def test_the_bearer_is_in_the_capabilities_and_nowhere_in_the_spec():
    async with faulty_server() as server:
        async with await from_mcp(server.url, "ns", "canary-token") as imported:
            assert imported[0].capabilities.get("ns").expose() == "canary-token"
            assert "canary" not in json.dumps(imported[0].spec.to_dict())
            assert "canary" not in json.dumps(imported.report())
        async with await from_mcp(server.url, "ns") as imported:
            assert len(imported[0].capabilities) == 0


@pytest.mark.requirement("S0-B3", "S4-09")
async def test_the_wrapper_has_specs_with_handlers_and_registers_nothing_itself():
    async with importing(tools=[tool("t", outputSchema=NUMBER)]) as (server, imported):
        assert "registry" not in inspect.signature(FromMCP).parameters
        registry = Registry()
        assert len(registry) == 0
        (item,) = imported.tools
        for attribute in ("name", "namespace", "version", "op_type", "input_schema", "output_schema"):
            assert getattr(item, attribute) == getattr(item.spec, attribute)
        assert inspect.iscoroutinefunction(item.handler)
        registry.register_all(imported.tools)
        assert [found.id for found in registry] == ["ns/t"]
        assert imported.name == "ns"
        assert imported.client.endpoint.public == server.url


@pytest.mark.requirement("S0-B2")
async def test_no_tool_becomes_a_subscription():
    async with importing(tools=[tool("t", annotations={"streamingHint": True})]) as (_, imported):
        assert [item.op_type for item in imported] == [OperationType.MUTATION]


@pytest.mark.requirement("S0-B7")
async def test_an_injected_transport_is_used_and_left_open():
    closed = []

    class Recorder(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request):
            asked.append(request.method)
            return await super().handle_async_request(request)

        async def aclose(self):
            closed.append(True)
            await super().aclose()

    asked = []
    async with faulty_server() as server:
        transport = Recorder(trust_env=False, verify=False)
        async with await from_mcp(server.url, "ns", http=transport) as imported:
            await imported[0].handler({}, context(imported[0]))
        assert asked.count("POST") >= 3
        assert closed == []
        await transport.aclose()


@pytest.mark.requirement("S4-B5")
@pytest.mark.parametrize(
    ("endpoint", "namespace"),
    [
        ("ftp://example.com/mcp", "ns"),
        ("python server.py", "ns"),
        ("https://user:pass@example.com/mcp", "ns"),
        ("http://example.com/mcp", "ns"),
        ("https://example.com/mcp#part", "ns"),
        ("https:///mcp", "ns"),
        ("https://example.com/mcp", "a.b"),
        ("https://example.com/mcp", "a/b"),
        ("https://example.com/mcp", ""),
    ],
)
def test_a_wrong_address_or_namespace_is_refused_before_anything_is_sent(endpoint, namespace):
    with pytest.raises(AdapterConfigInvalid) as caught:
        FromMCP(endpoint, namespace)
    assert isinstance(caught.value, CallError)
    assert "pass" not in str(caught.value).replace("password", "")


async def test_a_server_without_tools_gives_an_empty_import():
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    fault = replies(lambda seen: result_of(seen, hello))
    async with importing(faults={"initialize": fault}) as (server, imported):
        assert list(imported) == []
        assert server.calls("tools/list") == []


async def test_an_unknown_protocol_version_is_a_failed_discovery():
    hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    fault = replies(lambda seen: result_of(seen, hello))
    async with faulty_server(faults={"initialize": fault}) as server:
        with pytest.raises(DiscoveryFailed):
            await from_mcp(server.url, "ns")


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "t"},
        {"name": "t", "inputSchema": []},
        {"name": "t", "inputSchema": {"type": "string"}},
        {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": 3},
        {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"type": "odd"}}}},
        {"name": "t", "inputSchema": {"type": "object"}, "description": 3},
        {"name": "a tool", "inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"inputSchema": {"type": "object"}},
        "nonsense",
        None,
    ],
)
async def test_an_unusable_tool_fails_the_import_or_is_skipped_on_request(bad):
    async with faulty_server(tools=[tool("good"), bad]) as server:
        with pytest.raises(SchemaParse):
            await from_mcp(server.url, "ns")
        async with await from_mcp(server.url, "ns", options=ImportOptions(on_bad_tool="skip")) as imported:
            assert [item.name for item in imported] == ["good"]
            assert len(imported.skipped) == 1
            assert imported.skipped[0].reason


@pytest.mark.parametrize("names", [("same", "same"), ("Send", "send")])
async def test_tools_that_could_be_taken_for_one_another_are_refused_together(names):
    async with faulty_server(tools=[*(tool(name) for name in names), tool("good")]) as server:
        with pytest.raises(NameCollision):
            await from_mcp(server.url, "ns")
        async with await from_mcp(server.url, "ns", options=ImportOptions(on_bad_tool="skip")) as imported:
            assert [item.name for item in imported] == ["good"]
            assert [skipped.name for skipped in imported.skipped] == list(names)


async def test_a_long_description_is_cut_and_reported():
    async with importing(tools=[tool("t", description="x" * 10_000)]) as (_, imported):
        assert len(imported[0].description) == 4096
        assert imported.report()["tools"][0]["notes"]


async def test_a_failed_or_cancelled_import_leaves_nothing_open():
    before = asyncio.all_tasks()
    refuse = replies(lambda seen: error_of(seen, -32000, "no"))
    async with faulty_server(faults={"tools/list": refuse}) as server:
        with pytest.raises(DiscoveryFailed):
            await from_mcp(server.url, "ns")
        server.faults["tools/list"] = hangs
        task = asyncio.ensure_future(from_mcp(server.url, "ns"))
        await until(lambda: len(server.calls("tools/list")) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.open_connections == 0)
    assert asyncio.all_tasks() == before


@pytest.mark.requirement("S0-24", "S0-34")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_nothing_is_read_from_the_environment(era, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NS_TOKEN", "canary-environment")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")

    class Forbidden(dict):
        def __getitem__(self, key):
            raise AssertionError(f"read {key}")

        def get(self, key, *_default):
            raise AssertionError(f"read {key}")

    async with faulty_server(era=era) as server:
        monkeypatch.setattr(os, "environ", Forbidden())
        monkeypatch.setattr(os, "getenv", Forbidden().get)
        async with await from_mcp(server.url, "ns", "real-token-1") as imported:
            await imported[0].handler({}, context(imported[0]))
        monkeypatch.undo()
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer real-token-1"}


@pytest.mark.parametrize("hidden", ["\u200b", "\u202e", "\U000e0041", "\x1b"])
async def test_invisible_characters_are_reported(hidden):
    async with importing(tools=[tool("t", description=f"Reads{hidden}\na file.")]) as (_, imported):
        (note,) = imported.report()["tools"][0]["notes"]
        assert note == f"It holds characters that cannot be seen, such as U+{ord(hidden):04X}."
