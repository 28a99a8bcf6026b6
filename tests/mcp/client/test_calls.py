"""Calling imported tools: what is sent, and what comes back in which envelope."""

import asyncio
import json

import pytest

from headgate.errors import CallError
from headgate.mcp.client.from_mcp import ImportOptions
from headgate.mcp.client.limits import Limits
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.operations.envelope import McpMeta, ResponseEnvelope
from headgate.operations.registration import (
    CompositionAuthority,
    HandlerRegistration,
    OperationContext,
    ScopedEnv,
    expose,
)
from headgate.operations.registry import Registry
from headgate.operations.secrets import Capabilities
from headgate.operations.spec import AccessControl, OperationSpec, OperationType, OutputKind, Visibility
from headgate.schema.check import check
from tests.hostile.server import (
    LEGACY,
    MODERN,
    answers,
    error_of,
    hangs,
    http,
    replies,
    result_of,
    sse,
    streams,
    text,
    tool,
)
from tests.mcp.client.importing import call, importing, until

pytestmark = pytest.mark.anyio

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "unit": {"type": "string", "default": "m"}},
    "required": ["n"],
    "additionalProperties": False,
}
FIVE = [
    {"type": "text", "text": '{"a":1}'},
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "x:1", "text": "t"}},
    {"type": "resource_link", "uri": "x:2", "name": "two"},
]


def outside(imported):
    """A registry whose operations are exposed without conditions."""
    return Registry(expose(item, access_control=AccessControl()) for item in imported)


@pytest.mark.requirement("S0-18", "S0-33")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_call_through_the_registry_sends_the_tools_name_and_arguments(era):
    async with importing(era=era) as (server, imported):
        sent = {"a": [1, None, "ü"], "nothing": None, "empty": "", "zero": 0, "no": False, "世界": {}}
        envelope = await outside(imported).execute("ns/echo", sent)
        await call(imported[0])
        first, second = server.calls("tools/call")
    assert {key: first.params[key] for key in ("name", "arguments")} == {"name": "echo", "arguments": sent}
    assert second.params["arguments"] == {}
    assert json.loads(envelope.data[0]["text"]) == sent


async def test_arguments_that_are_no_object_are_refused_here():
    async with importing() as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0], [1])
        assert caught.value.code == "INVALID_INPUT"
        assert server.calls("tools/call") == []


@pytest.mark.requirement("S0-19", "S0-30", "S4-02", "S4-03", "S4-B1", "S4-B2")
async def test_structured_content_is_the_data_and_the_blocks_stay_beside_it():
    result = {"structuredContent": {"n": 1, "unit": "km"}, "content": [{"type": "text", "text": "other"}]}
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": result}) as (_, imported):
        envelope = await call(imported[0])
    assert isinstance(envelope, ResponseEnvelope)
    assert isinstance(envelope.meta, McpMeta)
    assert envelope.data == {"n": 1, "unit": "km"}
    assert envelope.issues == ()
    assert list(envelope.meta.content) == [{"type": "text", "text": "other"}]
    assert envelope.meta.structured_content == {"n": 1, "unit": "km"}
    assert envelope.unwrap() == {"n": 1, "unit": "km"}


@pytest.mark.requirement("S4-06")
async def test_what_the_schema_forbids_is_dropped_and_what_it_defaults_is_filled_in():
    result = {"structuredContent": {"n": 1, "extra": True}}
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": result}) as (_, imported):
        direct = await call(imported[0])
        through = await outside(imported).execute("ns/t")
    assert direct.data == through.data == {"n": 1, "unit": "m"}
    assert direct.meta.structured_content == {"n": 1, "extra": True}


@pytest.mark.requirement("S0-19", "S0-28")
async def test_a_violation_is_an_issue_in_the_envelope_and_raised_by_call():
    result = {"structuredContent": {"n": "one"}}
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": result}) as (_, imported):
        registry = outside(imported)
        envelope = await registry.execute("ns/t")
        assert [(issue.path, issue.keyword) for issue in envelope.issues] == [("$.n", "type")]
        assert envelope.data == {"n": "one", "unit": "m"}
        with pytest.raises(CallError) as caught:
            await registry.call("ns/t")
    assert caught.value.code == "INVALID_OUTPUT"


@pytest.mark.requirement("S0-19")
async def test_an_empty_object_counts_as_present():
    async with importing(results={"echo": {"structuredContent": {}, "content": FIVE}}) as (_, imported):
        envelope = await call(imported[0])
    assert envelope.data == {}
    assert envelope.output_kind is OutputKind.STRUCTURED_UNDECLARED


async def test_a_structured_value_may_be_any_json():
    for value in ([1, 2], "text", 0, False):
        async with importing(era=MODERN, results={"echo": {"structuredContent": value}}) as (_, imported):
            assert (await call(imported[0])).data == value


@pytest.mark.requirement("S0-20", "S0-21", "S0-31")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_without_structured_content_the_blocks_are_the_data_and_no_text_is_parsed(era):
    async with importing(era=era, results={"echo": {"content": FIVE}}) as (_, imported):
        envelope = await outside(imported).execute("ns/echo")
    assert envelope.data == FIVE
    assert envelope.data[0]["text"] == '{"a":1}'
    assert check(MCP_CONTENT_SCHEMA, envelope.data) == ()
    assert envelope.ok


@pytest.mark.requirement("S0-B5", "S4-B1", "S4-02")
async def test_a_result_without_anything_is_an_empty_list_and_no_error():
    meta = {
        "example.com/x": {"deep": [1]},
        "io.example/x": None,
        "io.modelcontextprotocol/related-task": {"taskId": "t"},
        "plain": "é",
    }
    async with importing(results={"echo": {"content": None, "_meta": meta}}) as (_, imported):
        envelope = await call(imported[0])
    assert envelope.data == []
    assert envelope.meta.is_error is False
    assert envelope.meta.meta == meta
    assert envelope.to_dict()["meta"]["_meta"] == meta


@pytest.mark.requirement("S0-21")
@pytest.mark.parametrize("words", ['{"n":1}', ' \t{"n": 1}\r\n\n', "[1]", "null", "  spaced  ", ""])
@pytest.mark.parametrize("more", [{}, {"outputSchema": NUMBER}], ids=["undeclared", "declared"])
async def test_a_text_stays_byte_for_byte_whatever_it_looks_like(words, more):
    async with importing(tools=[tool("t", **more)], results={"t": text(words)}) as (_, imported):
        envelope = await call(imported[0])
    assert envelope.data == list(envelope.meta.content) == [{"type": "text", "text": words}]
    assert envelope.meta.structured_content is None


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_an_unknown_block_survives_the_whole_way_as_text(era):
    odd = {"type": "hologram", "z": 1, "a": "ü"}
    async with importing(era=era, results={"echo": {"content": [odd]}}) as (_, imported):
        envelope = await outside(imported).execute("ns/echo")
    assert envelope.data == [{"type": "text", "text": '{"type":"hologram","z":1,"a":"ü"}'}]


@pytest.mark.requirement("S0-22", "S0-32", "S4-02", "S4-07", "S0-B8")
async def test_a_tools_own_failure_is_an_envelope_and_a_call_error_with_all_its_content():
    failing = {"content": FIVE, "structuredContent": {"n": "odd"}, "isError": True}
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": failing}) as (_, imported):
        direct = await call(imported[0])
        registry = outside(imported)
        envelope = await registry.execute("ns/t")
        with pytest.raises(CallError) as caught:
            await registry.call("ns/t")
    for each in (direct, envelope):
        assert each.meta.is_error
        assert each.issues == ()
        # Neither defaults nor anything else was done to it.
        assert each.data == {"n": "odd"}
        assert list(each.meta.content) == FIVE
        assert each.error.code == "MCP_TOOL_ERROR"
    assert caught.value.code == "MCP_TOOL_ERROR"
    assert caught.value.details == {
        "content": FIVE,
        "structuredContent": {"n": "odd"},
        "tool": "t",
        "namespace": "ns",
    }
    assert caught.value.message == '{"a":1}'


@pytest.mark.parametrize("odd", ["true", 1, "no", {}, []])
async def test_whatever_is_not_clearly_no_error_is_an_error(odd):
    async with importing(results={"echo": {"content": [], "isError": odd}}) as (_, imported):
        assert (await call(imported[0])).error.code == "MCP_TOOL_ERROR"


@pytest.mark.requirement("S0-19")
async def test_a_declared_output_that_was_not_sent_is_reported_as_missing():
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": text("n is 1")}) as (
        _,
        imported,
    ):
        envelope = await outside(imported).execute("ns/t")
    assert envelope.data == [{"type": "text", "text": "n is 1"}]
    assert [issue.keyword for issue in envelope.issues] == ["MCP_OUTPUT_MISSING"]
    with pytest.raises(CallError) as caught:
        envelope.unwrap()
    assert caught.value.code == "MCP_OUTPUT_MISSING"


@pytest.mark.requirement("S4-B3")
async def test_each_tool_keeps_its_own_schema_when_calls_cross():
    other = {"type": "object", "properties": {"w": {"type": "string", "default": "x"}}}
    tools = [tool("a", outputSchema=NUMBER), tool("b", outputSchema=other)]
    results = {"a": {"structuredContent": {"n": 1}}, "b": {"structuredContent": {}}}
    async with importing(tools=tools, results=results) as (_, imported):
        found = await asyncio.gather(*(call(imported[n % 2]) for n in range(10)))
    assert [envelope.data for envelope in found] == [{"n": 1, "unit": "m"}, {"w": "x"}] * 5


@pytest.mark.requirement("S0-24")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_the_token_of_each_request_is_the_token_of_that_call(era):
    async with importing(era=era, token="first-token-1") as (server, imported):
        for token in ("first-token-1", "second-token", "third-token-3", "second-token"):
            capabilities = Capabilities().with_http_token("ns", token)
            await imported[0].handler({}, OperationContext("r", capabilities=capabilities))
        await imported[0].handler({}, OperationContext("r"))
        sent = [seen.headers.get("authorization") for seen in server.calls("tools/call")]
        sessions = [seen.headers.get("mcp-session-id") for seen in server.calls("tools/call")]
    assert sent == [
        "Bearer first-token-1",
        "Bearer second-token",
        "Bearer third-token-3",
        "Bearer second-token",
        None,
    ]
    if era == LEGACY:
        # A session may belong to a user, so no two tokens share one.
        assert sessions[1] == sessions[3]
        assert len(set(sessions)) == 4


@pytest.mark.requirement("S0-24")
async def test_a_general_mcp_token_is_used_only_when_none_is_for_the_namespace():
    general = Capabilities().with_http_token("mcp", "general-token")
    both = general.with_http_token("ns", "own-token-1")
    async with importing() as (server, imported):
        for capabilities in (general, both):
            await imported[0].handler({}, OperationContext("r", capabilities=capabilities))
        sent = [seen.headers["authorization"] for seen in server.calls("tools/call")]
    assert sent == ["Bearer general-token", "Bearer own-token-1"]


@pytest.mark.requirement("S0-B6")
async def test_a_local_operation_composes_the_typed_result():
    async def double(value, context):
        found = await context.env.call("ns/t", value)
        return {"twice": found["n"] * 2}

    local = HandlerRegistration(
        OperationSpec("double", "mine", op_type=OperationType.QUERY, visibility=Visibility.EXTERNAL),
        double,
        composition_authority=CompositionAuthority("mine"),
        scoped_env=ScopedEnv(frozenset({"ns/t"})),
    )
    result = {"structuredContent": {"n": 21}}
    async with importing(tools=[tool("t", outputSchema=NUMBER)], results={"t": result}) as (_, imported):
        registry = Registry([*imported, local])
        assert await registry.call("mine/double") == {"twice": 42}


@pytest.mark.requirement("S0-16")
async def test_an_imported_handler_gets_no_env():
    seen = []
    async with importing() as (_, imported):
        item = imported[0]

        async def spy(value, context):
            seen.append(context.env)
            return await item.handler(value, context)

        watched = HandlerRegistration(item.spec, spy, provenance=item.provenance)
        await outside([watched]).execute("ns/echo")
    assert seen == [None]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_an_answer_may_come_as_events_after_other_messages_and_in_any_pieces(end):
    def pieces(seen):
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}
        whole = b": hello" + end.encode() * 2 + sse(progress, result_of(seen, text("ü")), end=end)
        return [whole[n : n + 7] for n in range(0, len(whole), 7)]

    async with importing(faults={"tools/call": streams(pieces)}) as (_, imported):
        assert (await call(imported[0])).data == [{"type": "text", "text": "ü"}]


async def test_answers_in_reverse_order_reach_their_own_callers():
    waiting = []

    async def hold(seen, writer):
        waiting.append((seen, writer))
        if len(waiting) == 2:
            for held, to in reversed(waiting):
                to.write(
                    http(200, json.dumps(result_of(held, text(held.params["arguments"]["who"]))).encode())
                )

    async with importing(faults={"tools/call": hold}) as (_, imported):
        one, two = await asyncio.gather(call(imported[0], {"who": "one"}), call(imported[0], {"who": "two"}))
    assert (one.data[0]["text"], two.data[0]["text"]) == ("one", "two")


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_cancelled_call_is_cancelled_there_too_and_the_session_goes_on(era):
    async with importing(era=era, faults={"tools/call": hangs}) as (server, imported):
        task = asyncio.create_task(call(imported[0]))
        await until(lambda: server.calls("tools/call"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if era == LEGACY:
            await until(lambda: server.calls("notifications/cancelled"))
            asked = server.calls("tools/call")[0].id
            assert server.calls("notifications/cancelled")[0].params["requestId"] == asked
        # The request itself is ended too, and does not hold its connection until some deadline.
        hung = server.calls("tools/call")[0].connection
        await until(lambda: hung not in server.live_connections)
        del server.faults["tools/call"]
        assert (await call(imported[0], {"a": 1})).ok
        assert server.sessions == (1 if era == LEGACY else 0)


async def test_the_deadline_of_the_caller_reaches_the_request():
    async with importing(faults={"tools/call": hangs}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await outside(imported).execute("ns/echo", timeout_seconds=2.0)
    assert caught.value.code == "TIMEOUT"
    assert caught.value.details["reason"] == "upstream_timeout"
    assert caught.value.details["maybe_executed"] is True
    assert caught.value.retryable is False


@pytest.mark.requirement("S4-08", "S4-B6")
@pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (
            replies(lambda seen: error_of(seen, -32602, "Unknown tool")),
            "MCP_PROTOCOL_ERROR",
            "upstream_protocol_error",
        ),
        (answers(http(401)), "MCP_UNAUTHORIZED", "upstream_auth_failed"),
        (answers(http(500)), "MCP_TRANSPORT_ERROR", "upstream_refused"),
        (answers(http(418)), "MCP_TRANSPORT_ERROR", "upstream_refused"),
        (answers(http(200, b"{")), "MCP_PROTOCOL_ERROR", "upstream_protocol_error"),
        (answers(http(200, b"<p>", kind="text/html")), "MCP_PROTOCOL_ERROR", "upstream_protocol_error"),
        (answers(b"garbage\r\n\r\n"), "MCP_PROTOCOL_ERROR", "upstream_protocol_error"),
    ],
)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_what_keeps_a_tool_from_answering_is_raised_with_its_code(era, fault, code, reason):
    async with importing(era=era, token="canary-token", faults={"tools/call": fault}) as (server, imported):
        registry = outside(imported)
        with pytest.raises(CallError) as caught:
            await registry.execute("ns/echo")
        assert caught.value.code == code
        assert caught.value.details["reason"] == reason
        assert caught.value.status in {502, 503}
        assert len(server.calls("tools/call")) == 1
        del server.faults["tools/call"]
        assert (await registry.execute("ns/echo")).ok


async def test_an_unknown_tool_keeps_the_servers_code_and_message():
    fault = replies(lambda seen: error_of(seen, -32602, "Unknown tool\x1b[31m " + "x" * 1000))
    async with importing(faults={"tools/call": fault}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.details["rpcCode"] == -32602
    assert len(caught.value.details["rpcMessage"]) < 600
    assert "\x1b" not in caught.value.details["rpcMessage"]


@pytest.mark.requirement("S4-08")
async def test_a_server_that_is_gone_is_a_transport_error_that_may_be_retried():
    async with importing() as (server, imported):
        await server.stop()
        with pytest.raises(CallError) as caught:
            await outside(imported).execute("ns/echo")
    assert caught.value.code == "MCP_TRANSPORT_ERROR"
    assert caught.value.details == {"reason": "upstream_unreachable"}
    assert caught.value.retryable
    assert caught.value.status == 503


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "Sun, 15 Nov 2026 10:00:30 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, 30.0),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "9" * 12}, 86_400.0),
        ({"retry_after": "9" * 400}, None),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "1e9"}, None),
        ({"retry_after": "Sun, 15 Nov 9999 10:00:30 GMT", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, 86_400.0),
        (
            {
                "retry_after": "Sun, 15 Nov 2026 10:00:30 +9999999999999",
                "date": "Sun, 15 Nov 2026 10:00:00 GMT",
            },
            None,
        ),
        # A time without a zone, which cannot be compared with one that has a zone.
        ({"retry_after": "Sun, 15 Nov 2026 10:00:30 -0000", "date": "Sun, 15 Nov 2026 10:00:00 GMT"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_asks_for_a_later_try_names_the_time(status, headers, seconds):
    async with importing(faults={"tools/call": answers(http(status, **headers))}) as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert len(server.calls("tools/call")) == 1
    assert caught.value.code == "MCP_TRANSPORT_ERROR"
    assert caught.value.retryable
    assert caught.value.details["status"] == status
    assert caught.value.details["retry_after"] == seconds


async def test_a_question_instead_of_an_answer_is_refused_and_not_answered():
    asks = {"resultType": "input_required", "inputRequests": {}, "requestState": "s"}
    async with importing(era=MODERN, faults={"tools/call": replies(lambda s: result_of(s, asks))}) as (
        server,
        imported,
    ):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert len(server.calls("tools/call")) == 1
    assert caught.value.details["reason"] == "upstream_unsupported"


async def test_annotated_arguments_travel_as_headers_too():
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with importing(era=MODERN, tools=[tool("t", inputSchema=schema)]) as (server, imported):
        await call(imported[0], {"region": "eu"})
        assert server.calls("tools/call")[0].headers["mcp-param-region"] == "eu"


async def test_numbers_that_json_has_not_are_refused():
    body = b'{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"n":NaN}}}'

    async def fault(seen, writer):
        writer.write(http(200, body % seen.id))

    async with importing(faults={"tools/call": fault}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.code == "MCP_PROTOCOL_ERROR"


async def test_limits_can_be_set():
    big = {"content": [{"type": "text", "text": "x" * 2000}]}
    options = ImportOptions(limits=Limits(max_bytes=1500))
    async with importing(options=options, results={"echo": big}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.details["reason"] == "upstream_too_large"


@pytest.mark.requirement("S4-06")
async def test_values_are_forced_into_their_schema_only_by_an_option():
    declared = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "s": {"type": "string"}},
        "required": ["n", "s"],
    }
    how = {"tools": [tool("t", outputSchema=declared)], "results": {"t": {"structuredContent": {"n": "42"}}}}
    async with importing(**how) as (_, imported):
        envelope = await call(imported[0])
        assert envelope.data == {"n": "42"}
        assert {issue.keyword for issue in envelope.issues} == {"type", "required"}
    async with importing(**how, options=ImportOptions(cast="typebox")) as (_, imported):
        envelope = await call(imported[0])
        assert (envelope.data, envelope.issues) == ({"n": 0, "s": ""}, ())
        assert envelope.meta.structured_content == {"n": "42"}
