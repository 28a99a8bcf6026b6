"""The life of a session: reused, lost, opened once more, closed without leftovers."""

import asyncio

import pytest

from headgate.errors import CallError
from headgate.mcp.client import session as session_module
from headgate.mcp.client.from_mcp import from_mcp
from headgate.operations.registration import OperationContext
from headgate.operations.secrets import Capabilities
from tests.hostile.server import (
    LEGACY,
    MODERN,
    SSE_HEAD,
    answers,
    drops,
    faulty_server,
    hangs,
    http,
    result_of,
    rpc,
    sse,
    streams,
    text,
    tool,
)
from tests.mcp.client.importing import call, importing, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """Sessions live on either loop: the program's server runs on the faster one."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.mark.requirement("S0-23")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_one_session_serves_every_call_and_closing_leaves_nothing(era):
    before = asyncio.all_tasks()
    async with faulty_server(era=era) as server:
        async with await from_mcp(server.url, "ns") as imported:
            await asyncio.gather(*(call(imported[n % 2]) for n in range(20)))
        await until(lambda: server.open_connections == 0)
        verbs = [seen.verb for seen in server.seen]
        assert len(server.calls("initialize")) == (1 if era == LEGACY else 0)
        assert verbs.count("DELETE") == (1 if era == LEGACY else 0)
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert caught.value.code == "MCP_TRANSPORT_ERROR"
        assert caught.value.details["reason"] == "closed"
        assert caught.value.retryable is False
        await imported.aclose()
    assert asyncio.all_tasks() == before


@pytest.mark.requirement("S0-23")
async def test_a_lost_session_is_opened_once_more_and_the_call_repeated():
    async with importing() as (server, imported):
        server.live_sessions.clear()
        found = await asyncio.gather(*(call(imported[0], {"n": n}) for n in range(6)))
        assert all(envelope.ok for envelope in found)
        assert server.sessions == 2
        answered = [
            seen for seen in server.calls("tools/call") if seen.headers["mcp-session-id"] == "session-2"
        ]
        assert sorted(seen.params["arguments"]["n"] for seen in answered) == list(range(6))


async def test_a_session_that_is_lost_again_at_once_is_an_error():
    async with importing(faults={"tools/call": answers(http(404))}) as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert len(server.calls("tools/call")) == 2
        assert caught.value.code == "MCP_TRANSPORT_ERROR"
        assert caught.value.details["status"] == 404


async def test_a_modern_404_is_no_lost_session():
    async with importing(era=MODERN, faults={"tools/call": answers(http(404))}) as (server, imported):
        with pytest.raises(CallError):
            await call(imported[0])
        assert len(server.calls("tools/call")) == 1


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_call_lost_after_it_was_sent_is_not_repeated_and_marked_as_maybe_executed(era):
    async with importing(era=era, faults={"tools/call": drops}) as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert len(server.calls("tools/call")) == 1
        assert caught.value.code == "MCP_TRANSPORT_ERROR"
        assert caught.value.details["maybe_executed"] is True
        assert caught.value.retryable is False


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_server_that_comes_back_is_used_again_by_the_same_import(era):
    async with importing(era=era) as (server, imported):
        await server.stop()
        with pytest.raises(CallError):
            await call(imported[0])
        await server.start_again()
        assert (await call(imported[0], {"a": 1})).ok


async def test_connections_are_reused():
    async with importing(era=MODERN) as (server, imported):
        for _ in range(5):
            await call(imported[0])
        assert server.connections == 1


async def test_a_stream_that_breaks_is_resumed_where_the_server_gave_event_ids():
    resumed = []

    def half(seen):
        resumed.append(seen)
        return [b"id: 7\nretry: 1\ndata: \n\n"]

    async def resume(seen, writer):
        if "last-event-id" not in seen.headers:
            writer.write(http(405))
            return
        writer.write(SSE_HEAD + sse(result_of(resumed[0], text("at last"))))
        writer.close()

    async with importing(faults={"tools/call": streams(half), "GET": resume}) as (server, imported):
        envelope = await call(imported[0])
        assert envelope.data == [{"type": "text", "text": "at last"}]
        assert [s.headers["last-event-id"] for s in server.seen if "last-event-id" in s.headers] == ["7"]


async def test_a_stream_that_breaks_without_ids_is_a_lost_call():
    async with importing(faults={"tools/call": streams(lambda _: [b": nothing\n\n"])}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.details["reason"] == "upstream_unreachable"
    assert caught.value.details["maybe_executed"] is True


async def test_the_notification_of_a_change_sets_stale_calls_back_and_swaps_nothing():
    async with importing(list_changed=True) as (server, imported):
        await until(lambda: server.streams)
        await until(lambda: imported.report()["watching"])
        before = imported.tools
        server.tools.append(tool("new"))
        await server.announce()
        await until(lambda: imported.stale)
        assert imported.tools is before
        assert (await call(imported[0])).ok
        assert imported.stale
        refreshed = await imported.refresh()
        assert (refreshed.added, refreshed.removed, refreshed.changed) == (("new",), (), ())
        assert not imported.stale


async def test_a_modern_server_is_listened_to_for_changes():
    writers = []

    async def listen(seen, writer):
        meta = {"io.modelcontextprotocol/subscriptionId": seen.id}
        ack = {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": meta, "notifications": {"toolsListChanged": True}},
        }
        writers.append((writer, meta))
        writer.write(SSE_HEAD + sse(ack))
        await writer.drain()
        await seen.reader.read()

    async with importing(era=MODERN, list_changed=True, faults={"subscriptions/listen": listen}) as (
        _,
        imported,
    ):
        await until(lambda: writers)
        writer, meta = writers[0]
        changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
        writer.write(sse(changed))
        await until(lambda: imported.stale)


async def test_a_servers_own_requests_are_refused_and_only_a_ping_is_answered():
    def pieces(seen):
        asks = [
            {"jsonrpc": "2.0", "id": 900 + n, "method": method, "params": {}}
            for n, method in enumerate(["sampling/createMessage", "elicitation/create", "roots/list", "ping"])
        ]
        return [sse(*asks, result_of(seen, text("done")))]

    async with importing(faults={"tools/call": streams(pieces)}) as (server, imported):
        assert (await call(imported[0])).ok
        await until(lambda: len([s for s in server.seen if s.id and s.id >= 900]) == 4)
        replies = {s.id: s.body for s in server.seen if s.id and s.id >= 900}
        assert [replies[900 + n]["error"]["code"] for n in range(3)] == [-32601] * 3
        assert replies[903]["result"] == {}
        assert server.calls("initialize")[0].params["capabilities"] == {}


async def test_sessions_of_many_tokens_stay_few():
    async with importing(token="token-number-0") as (server, imported):
        for number in range(12):
            capabilities = Capabilities().with_http_token("ns", f"token-number-{number}")
            await imported[0].handler({}, OperationContext("r", capabilities=capabilities))
        assert server.sessions == 12
        assert len(server.live_sessions) <= 8


async def test_two_answers_to_one_request_are_none():
    async def twice(seen, writer):
        answer = rpc(result_of(seen, text("first"))) + rpc(result_of(seen, text("second")))
        writer.write(answer)

    async with importing(faults={"tools/call": twice}) as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert caught.value.code == "MCP_PROTOCOL_ERROR"
        del server.faults["tools/call"]
        assert (await call(imported[0], {"who": "me"})).data[0]["text"] == '{"who": "me"}'


async def test_a_call_behind_a_slow_opening_keeps_its_own_deadline_and_closing_does_not_wait():
    async with importing() as (server, imported):
        server.live_sessions.clear()
        server.faults["initialize"] = hangs
        first = asyncio.create_task(call(imported[0]))
        await until(lambda: len(server.calls("initialize")) == 2)
        with pytest.raises(CallError) as caught:
            await call(imported[1], deadline=asyncio.get_running_loop().time() + 0.3)
        assert caught.value.code == "TIMEOUT"
        await imported.aclose()
        assert not first.done()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await until(lambda: server.open_connections == 0)


async def test_changes_are_announced_however_often_a_proxy_has_cut_the_stream(monkeypatch):
    """Starts are limited in a time, not in the life of a session: here to three, and one more each millisecond."""
    monkeypatch.setattr(session_module, "_MAX_STREAM_STARTS", 3)
    monkeypatch.setattr(session_module, "_STREAM_START_SECONDS", 0.001, raising=False)
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
    async with importing(list_changed=True) as (server, imported):
        for cut in range(6):
            await until(lambda number=cut: len(server.streams) > number)
            # The server names the pause before the stream is opened again.
            server.streams[cut].write(b"retry: 1\n" + sse(note))
            await server.streams[cut].drain()
            server.streams[cut].close()
        await until(lambda: len(server.streams) > 6)
        del server.streams[:6]
        await server.announce()
        await until(lambda: imported.stale)
