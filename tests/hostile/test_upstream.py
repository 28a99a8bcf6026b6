"""Hostile servers: none of these cases harms an import.

The number in each docstring is the case's row in the list of hostile cases. Memory is the peak of this very
process, the server included; deadlines are short ones that the import was given.
"""

import asyncio
import io
import logging
import pickle
import socket
import sys
import traceback

import pytest

from headgate.errors import (
    AdapterError,
    AddressBlocked,
    CallError,
    DiscoveryFailed,
    SchemaParse,
    Unauthorized,
)
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.operations.network_addresses import permitted_addresses
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl
from tests.hostile.bounds import MEGABYTE, Effort, Memory
from tests.hostile.server import (
    LEGACY,
    MODERN,
    answers,
    compresses,
    drips,
    drops,
    error_of,
    faulty_server,
    hangs,
    http,
    pours,
    redirects,
    replies,
    result_of,
    sse,
    streams,
    text,
    tool,
)
from tests.mcp.client.importing import call, importing, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("little_memory")]

#: For calls that are to run out of time; every other one is allowed more than it needs.
SHORT, LONG = 0.4, 30.0
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])


async def failing(registration, value=None, *, within=LONG):
    """Call, and return the error; it must be raised within the allowed time, or soon after."""
    deadline = asyncio.get_running_loop().time() + within
    with pytest.raises(CallError) as caught:
        async with asyncio.timeout(within + 5):
            await call(registration, value, deadline=deadline)
    return caught.value


@ERAS
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/html"])
async def test_an_answer_of_300_megabytes_is_cut_off(era, declared, kind):
    """Row 95."""
    fault = pours(300 * MEGABYTE, kind=kind, declared=declared)
    async with importing(era=era, faults={"tools/call": fault}) as (server, imported):
        with Memory() as memory:
            error = await failing(imported[0])
        assert error.details["reason"] == "upstream_too_large"
        assert memory.growth_bytes < 32 * MEGABYTE
        del server.faults["tools/call"]
        assert (await call(imported[0])).ok


@ERAS
async def test_a_compressed_answer_is_refused_unread(era):
    """Row 96."""
    async with importing(era=era, faults={"tools/call": compresses(64 * MEGABYTE)}) as (server, imported):
        with Memory() as memory:
            error = await failing(imported[0])
        assert error.details["reason"] == "upstream_protocol_error"
        assert memory.growth_bytes < 32 * MEGABYTE
        assert server.calls("tools/call")[0].headers["accept-encoding"] == "identity"


@ERAS
@pytest.mark.parametrize("fault", [drips, hangs])
async def test_a_drip_and_silence_end_at_the_deadline(era, fault):
    """Row 97."""
    async with importing(era=era, faults={"tools/call": fault}) as (_, imported):
        error = await failing(imported[0], within=SHORT)
    assert error.code == "TIMEOUT"
    assert error.details["reason"] == "upstream_timeout"


async def test_a_dripping_event_stream_ends_at_the_deadline():
    """Row 97, as events."""

    async def drip(seen, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            writer.write(b": still here\n\n")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with importing(faults={"tools/call": drip}) as (_, imported):
        assert (await failing(imported[0], within=SHORT)).code == "TIMEOUT"


@ERAS
async def test_a_202_to_a_request_is_an_error_at_once(era):
    """Row 99."""
    async with importing(era=era, faults={"tools/call": answers(http(202))}) as (_, imported):
        assert (await failing(imported[0])).code == "MCP_PROTOCOL_ERROR"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["http://127.0.0.1:9/", "/other", "https://127.0.0.1/mcp"])
async def test_a_redirect_is_never_followed(status, where):
    """Row 100."""
    fault = redirects(where, status)
    async with importing(token="canary-token", faults={"tools/call": fault}) as (server, imported):
        before = len(server.seen)
        error = await failing(imported[0])
        assert error.details["reason"] == "upstream_redirect_refused"
        assert {seen.path for seen in server.seen} == {"/mcp"}
        assert len(server.calls("tools/call")) == 1
        assert len(server.seen) - before <= 2
    async with faulty_server(faults={"server/discover": fault}) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
        assert caught.value.details["reason"] == "upstream_redirect_refused"
        assert len(server.seen) == 1


CONNECTS = []
sys.addaudithook(lambda event, args: CONNECTS.append(args) if event == "socket.connect" else None)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "127.0.0.1",
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1",
        "fd00::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
    ],
)
async def test_a_name_that_leads_inside_is_not_called(address):
    """Row 101."""

    async def leads_inside(host, port):
        return [address]

    CONNECTS.clear()
    with pytest.raises(DiscoveryFailed) as caught:
        await from_mcp("https://tools.example/mcp", "ns", options=ImportOptions(resolve=leads_inside))
    assert caught.value.details["reason"] == "address_blocked"
    assert [args for args in CONNECTS if args[0].family != socket.AF_UNIX] == []


async def test_a_private_host_is_called_when_it_was_allowed_by_name():
    """Row 101, the other side."""

    async def leads_here(host, port):
        return ["127.0.0.1"]

    async with faulty_server() as server:
        address = f"http://tools.example:{server.port}/mcp"
        refused = ImportOptions(resolve=leads_here, allow_insecure=True)
        with pytest.raises(DiscoveryFailed):
            await from_mcp(address, "ns", options=refused)
        allowed = ImportOptions(
            resolve=leads_here, allow_insecure=True, allowed_hosts=frozenset({"tools.example"})
        )
        async with await from_mcp(address, "ns", options=allowed) as imported:
            assert (await call(imported[0])).ok
    # Not even an allowed host reaches the metadata address of a cloud.
    with pytest.raises(AddressBlocked):
        permitted_addresses(["169.254.169.254"], "tools.example", allowed_hosts={"tools.example"})


@ERAS
async def test_a_challenge_sends_us_nowhere(era):
    """Row 102."""
    challenge = 'Bearer resource_metadata="http://169.254.169.254/latest"'
    fault = answers(http(401, www_authenticate=challenge))
    async with importing(era=era, token="canary-token", faults={"tools/call": fault}) as (server, imported):
        await until(lambda: era == MODERN or any(seen.verb == "GET" for seen in server.seen))
        before = len(server.seen)
        CONNECTS.clear()
        error = await failing(imported[0])
        assert error.code == "MCP_UNAUTHORIZED"
        assert error.details["reason"] == "upstream_auth_failed"
        assert len(server.seen) == before + 1
        assert {args[1] for args in CONNECTS} <= {("127.0.0.1", server.port)}
    async with faulty_server(era=era, faults={"server/discover": fault}) as server:
        with pytest.raises(Unauthorized):
            await from_mcp(server.url, "ns", "canary-token")
        assert len(server.seen) == 1


BAD_SCHEMAS = {
    "a reference to the network": {"$ref": "http://169.254.169.254/schema"},
    "a reference to a file": {"$ref": "file:///etc/passwd"},
    "a circle of references": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "doubling": {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(24)},
            "d24": {"type": "string"},
        },
    },
    "depth": __import__("functools").reduce(lambda inner, _: {"not": inner}, range(100), {}),
    "size": {"enum": ["x" * 100_000]},
}


@pytest.mark.parametrize("which", list(BAD_SCHEMAS))
async def test_a_schema_bomb_is_refused_by_name_and_the_other_tools_stay(which):
    """Rows 103 and 104."""
    bad = {"type": "object", "properties": {"p": BAD_SCHEMAS[which]}}
    if "$defs" in BAD_SCHEMAS[which]:
        bad["$defs"] = BAD_SCHEMAS[which]["$defs"]
    async with faulty_server(tools=[tool("bomb", inputSchema=bad), tool("good")]) as server:
        CONNECTS.clear()
        with pytest.raises(SchemaParse) as caught, Effort() as effort:
            await from_mcp(server.url, "ns")
        assert effort.seconds < 0.2
        async with asyncio.timeout(5):
            assert caught.value.details["reason"] == "upstream_schema_rejected"
            assert caught.value.details["tool"] == "bomb"
            async with await from_mcp(
                server.url, "ns", options=ImportOptions(on_bad_tool="skip")
            ) as imported:
                assert [item.name for item in imported] == ["good"]
                assert [skipped.name for skipped in imported.skipped] == ["bomb"]
                assert (await call(imported[0])).ok
        assert {args[1] for args in CONNECTS} == {("127.0.0.1", server.port)}


async def test_a_pattern_that_explodes_costs_nothing():
    """Row 105."""
    schema = {"type": "object", "properties": {"p": {"type": "string", "pattern": "^(a+)+$"}}}
    async with importing(tools=[tool("t", inputSchema=schema)]) as (_, imported):
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        with pytest.raises(CallError) as caught, Effort() as effort:
            await registry.execute("ns/t", {"p": "a" * 50_000 + "!"})
        assert effort.seconds < 0.05
        assert caught.value.code == "INVALID_INPUT"


@pytest.mark.parametrize("header", ["A\r\nB", "", "ü", "a b", "x" * 3 + ":"])
async def test_a_tool_that_would_split_a_header_is_dropped_and_the_others_stay(header):
    """Row 108."""
    schema = {"type": "object", "properties": {"p": {"type": "string", "x-mcp-header": header}}}
    async with importing(era=MODERN, tools=[tool("bad", inputSchema=schema), tool("good")]) as (_, imported):
        assert [item.name for item in imported] == ["good"]
        assert [skipped.name for skipped in imported.skipped] == ["bad"]


async def test_an_argument_cannot_split_a_header_either():
    """Row 108, from the caller's side."""
    schema = {"type": "object", "properties": {"p": {"type": "string", "x-mcp-header": "P"}}}
    async with importing(era=MODERN, tools=[tool("t", inputSchema=schema)]) as (server, imported):
        await call(imported[0], {"p": "a\r\nauthorization: Bearer stolen"})
        seen = server.calls("tools/call")[0]
        assert "authorization" not in seen.headers
        assert seen.headers["mcp-param-p"].startswith("=?base64?")


async def test_questions_of_the_server_are_refused_in_no_round_at_all():
    """Row 109."""

    def asks(seen):
        asked = [
            {"jsonrpc": "2.0", "id": f"q{n}", "method": method, "params": {}}
            for n, method in enumerate(["sampling/createMessage", "elicitation/create", "roots/list"])
        ]
        return [sse(*asked, result_of(seen, text("done")))]

    async with importing(faults={"tools/call": streams(asks)}) as (server, imported):
        assert (await call(imported[0])).ok
        await until(lambda: sum(str(seen.id).startswith("q") for seen in server.seen) == 3)
        refused = [seen.body for seen in server.seen if str(seen.id).startswith("q")]
        assert {body["error"]["code"] for body in refused} == {-32601}


@ERAS
async def test_a_server_killed_in_the_middle_of_a_call_is_noticed_at_once(era):
    """Row 110."""
    before = asyncio.all_tasks()
    async with importing(era=era, faults={"tools/call": hangs}) as (server, imported):
        task = asyncio.create_task(failing(imported[0]))
        await until(lambda: server.calls("tools/call"))
        await server.stop()
        async with asyncio.timeout(1):
            error = await task
        assert error.details["reason"] == "upstream_unreachable"
        assert error.details["maybe_executed"] is True
    await until(lambda: asyncio.all_tasks() == before)


TOKEN = "canary-5f1d-token-e2b7"
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in TOKEN)


async def echoes_token_as_result(seen, writer):
    writer.write(http(200, _answer(seen, f'{{"content":[{{"type":"text","text":"{TOKEN}"}}]}}')))


async def echoes_token_escaped(seen, writer):
    writer.write(http(200, _answer(seen, f'{{"structuredContent":{{"{ESCAPED}":"{ESCAPED}"}}}}')))


async def echoes_token_as_tool_error(seen, writer):
    body = f'{{"isError":true,"content":[{{"type":"text","text":"bad {TOKEN}"}},{{"type":"odd","x":"{ESCAPED}"}}]}}'
    writer.write(http(200, _answer(seen, body)))


async def echoes_token_in_pieces(seen, writer):
    whole = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    whole += sse(result_of(seen, text(f"{TOKEN}{TOKEN[:9]}")))
    for byte in whole:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)
    writer.close()


def _answer(seen, result):
    return f'{{"jsonrpc":"2.0","id":{seen.id},"result":{result}}}'.encode()


ECHOES = [
    echoes_token_as_result,
    echoes_token_escaped,
    echoes_token_as_tool_error,
    echoes_token_in_pieces,
    replies(lambda seen: error_of(seen, -32000, f"bad token {TOKEN}", {"sent": TOKEN})),
    answers(http(500, f'{{"jsonrpc":"2.0","error":{{"code":1,"message":"{TOKEN}"}}}}'.encode())),
    answers(http(200, TOKEN.encode(), kind=f"text/{TOKEN}")),
    answers(http(200, f'{{"{TOKEN}'.encode())),
    answers(http(401, TOKEN.encode(), www_authenticate=f'Bearer error="{TOKEN}"')),
    answers(http(307, location=f"http://127.0.0.1:9/{TOKEN}")),
    answers(f"HTTP/1.1 {TOKEN}\r\n\r\n".encode()),
    drops,
    hangs,
]


@ERAS
@pytest.mark.parametrize("echo", ECHOES)
async def test_an_echoed_token_is_redacted_everywhere(era, echo, caplog, capfd):
    """Row 111: no byte of the token in a log, a traceback with its locals, a pickle, an envelope or a report."""
    caplog.set_level(logging.DEBUG)
    out = io.StringIO()
    async with importing(era=era, token=TOKEN, faults={"tools/call": echo}) as (_, imported):
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        try:
            envelope = await registry.execute(
                "ns/echo", {"a": 1}, timeout_seconds=SHORT if echo is hangs else LONG
            )
        except CallError as error:
            shown = traceback.TracebackException.from_exception(error, capture_locals=True)
            print("".join(shown.format()), error.details, repr(error), file=out)
            print(pickle.dumps([error.args, error.details]), file=out)
        else:
            print(envelope, envelope.to_dict(), envelope.error, file=out)
            print(pickle.dumps(envelope.to_dict()), file=out)
        print(imported, imported.report(), imported.client, registry, list(registry), file=out)
        for thing in (imported, imported.client, imported[0], imported.client.first):
            print({name: repr(value) for name, value in _inside(thing).items()}, file=out)
    everything = out.getvalue() + caplog.text + "".join(capfd.readouterr())
    assert TOKEN not in everything
    assert TOKEN[5:] not in everything


def _inside(thing):
    return {name: getattr(thing, name, None) for name in dir(thing) if not name.startswith("__")}


async def test_a_token_is_not_echoed_out_of_a_failed_import(caplog):
    """Row 111, at import."""
    caplog.set_level(logging.DEBUG)
    fault = replies(lambda seen: error_of(seen, -32000, f"bad {TOKEN}"))
    async with faulty_server(faults={"tools/list": fault}) as server:
        with pytest.raises(AdapterError) as caught:
            await from_mcp(server.url, "ns", TOKEN)
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert TOKEN not in "".join(shown.format()) + caplog.text


@ERAS
async def test_a_result_that_breaks_its_own_schema_is_never_data_without_a_mark(era):
    """Row 112."""
    declared = tool("t", outputSchema={"type": "object", "required": ["n"]})
    async with importing(era=era, tools=[declared], results={"t": {"structuredContent": {"m": 1}}}) as (
        _,
        imported,
    ):
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        with pytest.raises(CallError) as caught:
            await registry.call("ns/t")
    assert caught.value.code == "INVALID_OUTPUT"


@ERAS
@pytest.mark.parametrize("cursor", ["same", "page-{}"])
async def test_a_tool_list_without_end_ends(era, cursor):
    """Row 113."""
    pages = []

    def page(seen):
        pages.append(seen)
        tools = [tool(f"t{len(pages)}")]
        return result_of(
            seen, {"tools": tools, "nextCursor": cursor.format(len(pages)), "resultType": "complete"}
        )

    async with faulty_server(era=era, faults={"tools/list": replies(page)}) as server:
        async with asyncio.timeout(10):
            with pytest.raises(DiscoveryFailed) as caught:
                await from_mcp(server.url, "ns")
    assert caught.value.details["reason"] in {"upstream_too_large", "upstream_protocol_error"}
    assert len(pages) <= 100


@ERAS
async def test_a_tool_list_of_a_hundred_pages_is_read_to_its_end(era):
    """Row 113, the harmless side."""
    async with faulty_server(era=era, tools=[tool(f"t{n}") for n in range(100)], page_size=1) as server:
        async with await from_mcp(server.url, "ns") as imported:
            assert len(imported) == len(server.calls("tools/list")) == 100
        server.tools.append(tool("one-more"))
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.details["reason"] == "upstream_too_large"


async def test_more_tools_than_the_limit_are_refused():
    """Row 113, in one page."""
    many = [tool(f"t{n}") for n in range(1001)]
    async with faulty_server(tools=many) as server:
        with pytest.raises(DiscoveryFailed) as caught:
            await from_mcp(server.url, "ns")
    assert caught.value.details["reason"] == "upstream_too_large"


async def test_an_event_stream_without_end_ends():
    """U2: more events than one answer may have."""
    flood = streams(
        lambda _: [sse({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}) * 1500]
    )
    async with importing(faults={"tools/call": flood}) as (_, imported):
        assert (await failing(imported[0])).details["reason"] == "upstream_too_large"


@ERAS
async def test_a_hung_server_is_left_alone_and_harms_no_other(era):
    """Row 114."""
    hung = importing(era=era, faults={"tools/call": hangs})
    async with hung as (server, imported), importing(era=era) as (_, healthy):
        storm = asyncio.gather(*(failing(imported[0], within=2.0) for _ in range(100)))
        await until(lambda: len(server.calls("tools/call")) == 8)
        found = await asyncio.gather(*(call(healthy[0], {"n": n}) for n in range(8)))
        assert all(envelope.ok for envelope in found)
        assert not storm.done()
        errors = await storm
        reasons = [error.details["reason"] for error in errors]
        assert reasons.count("upstream_busy") == 100 - 8 - 64
        assert reasons.count("upstream_timeout") + reasons.count("upstream_suspended") == 72
        assert len(server.calls("tools/call")) <= 16
        suspended = await failing(imported[0])
        assert suspended.details["reason"] == "upstream_suspended"
        assert suspended.details["retry_after"] > 0
        assert suspended.retryable
        assert (await call(healthy[0])).ok


async def test_a_link_in_a_result_is_data_and_never_opened(monkeypatch):
    """Row 115."""
    link = {"type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd"}
    opened = []
    async with importing(results={"echo": {"content": [link]}}) as (_, imported):
        monkeypatch.setattr("builtins.open", lambda *args, **_: opened.append(args))
        envelope = await call(imported[0])
        monkeypatch.undo()
    assert envelope.data == [link]
    assert opened == []


@ERAS
async def test_garbage_of_every_kind_is_a_typed_error_and_the_next_call_works(era):
    """Bytes that are no answer."""
    pieces = [
        b"\x00\x01\x02\x03" * 100,
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000,
        http(200, b"[]"),
        http(200, b"null"),
        http(200, b'{"jsonrpc":"2.0"}'),
        http(200, b'{"jsonrpc":"2.0","id":1,"result":3}'),
        http(200, b"[" * 100_000),
        http(200, b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}'),
    ]
    async with importing(era=era) as (server, imported):
        for piece in pieces:
            server.faults["tools/call"] = answers(piece)
            error = await failing(imported[0], within=SHORT)
            assert error.code in {"MCP_PROTOCOL_ERROR", "TIMEOUT", "MCP_TRANSPORT_ERROR"}
            del server.faults["tools/call"]
            assert (await call(imported[0])).ok
