"""Connections to a server: which address is dialled, when a request counts as sent, and what ends a connection."""

import asyncio
import json

import httpx2
import pytest

from headgate.errors import AdapterError, CallError
from headgate.mcp.client import pool
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.network import DialOptions, parse_endpoint
from headgate.mcp.client.pool import PooledTransport
from headgate.mcp.client.request_state import RequestState
from tests.hostile.server import LEGACY, MODERN, SSE_HEAD, drops, faulty_server, hangs, http, result_of, text
from tests.mcp.client.importing import call, importing, until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    return "asyncio", {"use_uvloop": request.param}


def body_of(seen, words):
    return json.dumps(result_of(seen, text(words))).encode()


def chunked(body):
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def resolving(*answers):
    """Resolve every name to these addresses, one list after the other."""
    left = list(answers)

    async def resolve(host, port):
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


async def test_the_address_that_was_checked_is_the_one_that_is_dialled():
    resolve = resolving(["127.0.0.1"], ["10.0.0.1"])
    options = ImportOptions(
        resolve=resolve, allow_insecure=True, allowed_hosts=frozenset({"tools.example"}), era="modern"
    )
    async with faulty_server(era=MODERN) as server:
        address = f"http://tools.example:{server.port}/mcp"
        async with await from_mcp(address, "ns", options=options) as imported:
            assert (await call(imported[0])).ok
        assert server.calls("tools/call")[0].headers["host"] == f"tools.example:{server.port}"


async def test_an_address_that_does_not_accept_leaves_the_call_to_the_next_one():
    async with faulty_server(era=MODERN) as server:
        options = ImportOptions(
            resolve=resolving(["127.0.0.2", "10.9.9.9", "127.0.0.1"]), allow_insecure=True, era="modern"
        )
        url = f"http://tools.localhost:{server.port}/mcp"
        async with await from_mcp(url, "ns", options=options) as imported:
            assert (await call(imported[0])).ok


async def test_a_chunked_answer_with_another_behind_it_is_refused_and_its_connection_closed():
    async def twice(seen, writer):
        writer.write(chunked(body_of(seen, "first")) + chunked(body_of(seen, "second")))

    async with importing(era=MODERN, faults={"tools/call": twice}) as (server, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
        assert caught.value.code == "MCP_PROTOCOL_ERROR"
        del server.faults["tools/call"]
        assert (await call(imported[0], {"who": "me"})).data[0]["text"] == '{"who": "me"}'
        first, second = server.calls("tools/call")
        assert first.connection != second.connection


async def test_a_connection_that_the_server_closed_while_idle_is_not_used_again():
    async def closes(seen, writer):
        writer.write(http(200, body_of(seen, "bye")))
        writer.close()

    async with importing(era=MODERN, faults={"tools/call": closes}) as (server, imported):
        for _ in range(3):
            assert (await call(imported[0])).ok
            await until(lambda: server.open_connections == 0)


async def test_interim_answers_without_end_are_refused():
    async def interim(seen, writer):
        while True:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            await writer.drain()

    async with importing(era=MODERN, faults={"tools/call": interim}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.code == "MCP_PROTOCOL_ERROR"
    assert "too large" in caught.value.message


async def test_a_body_that_is_cut_short_is_a_lost_connection_and_may_have_run():
    async def half(seen, writer):
        whole = http(200, body_of(seen, "half"))
        writer.write(whole[:-5])
        await drops(seen, writer)

    async with importing(era=MODERN, faults={"tools/call": half}) as (_, imported):
        with pytest.raises(CallError) as caught:
            await call(imported[0])
    assert caught.value.details == {"reason": "upstream_unreachable", "maybe_executed": True}


async def test_a_body_without_a_length_ends_with_its_connection():
    async def unbounded(seen, writer):
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
        writer.write(head + body_of(seen, "to the end"))
        await writer.drain()
        writer.close()

    async with importing(era=MODERN, faults={"tools/call": unbounded}) as (_, imported):
        assert (await call(imported[0])).data[0]["text"] == "to the end"


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("begun", [b"", SSE_HEAD, SSE_HEAD + b": working\n\n", http(200, b"{}")[:-1]])
async def test_the_connection_of_a_cancelled_call_is_closed_however_far_its_answer_had_come(era, begun):
    async def begins(seen, writer):
        writer.write(begun)
        await hangs(seen, writer)

    async with importing(era=era, faults={"tools/call": begins}) as (server, imported):
        task = asyncio.create_task(call(imported[0]))
        await until(lambda: server.calls("tools/call"))
        connection = server.calls("tools/call")[0].connection
        assert connection in server.live_connections
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: connection not in server.live_connections)
        del server.faults["tools/call"]
        assert (await call(imported[0])).ok


async def test_time_that_ran_out_before_a_byte_was_written_leaves_no_doubt():
    is_resolver_down = False

    async def resolve(_host, _port):
        if is_resolver_down:
            await asyncio.Event().wait()
        return ["127.0.0.1"]

    options = ImportOptions(resolve=resolve, limits=Limits(connect_seconds=30), era="modern")
    async with faulty_server(era=MODERN) as server:
        url = f"http://localhost:{server.port}/mcp"
        async with await from_mcp(url, "ns", options=options) as imported:
            is_resolver_down = True
            # Ends the connections, so that the next call needs a new one.
            await server.stop()
            with pytest.raises(CallError) as caught:
                await call(imported[0], deadline=asyncio.get_running_loop().time() + 0.3)
    assert caught.value.code == "TIMEOUT"
    assert caught.value.details == {"reason": "upstream_timeout"}


async def send(transport, state):
    return await pool.send(transport, httpx2.Request("POST", "http://localhost/mcp", content=b"{}"), state)


async def test_a_request_counts_as_sent_from_its_first_byte_and_not_before():
    seen_at_dial = []
    state = RequestState(float("inf"))

    async def resolve(host, port):
        seen_at_dial.append(state.sent)
        return ["127.0.0.1"]

    async with faulty_server() as server:
        endpoint = parse_endpoint(f"http://localhost:{server.port}/mcp")
        transport = PooledTransport(endpoint, DialOptions(resolve=resolve))
        response = await send(transport, state)
        assert (seen_at_dial, state.sent) == ([False], True)
        await response.aclose()
        await transport.aclose()


async def test_a_request_whose_connection_fails_was_not_sent():
    state = RequestState(float("inf"))
    async with faulty_server() as server:
        port = server.port
    transport = PooledTransport(parse_endpoint(f"http://localhost:{port}/mcp"), DialOptions())
    with pytest.raises(Exception, match="does not accept"):
        await send(transport, state)
    assert not state.sent
    blocked = PooledTransport(
        parse_endpoint("https://tools.example/mcp"), DialOptions(resolve=resolving(["10.0.0.1"]))
    )
    with pytest.raises(AdapterError):
        await send(blocked, state)
    assert not state.sent


@pytest.mark.parametrize("step", [1_000, 100_000])
@pytest.mark.parametrize(("size", "is_accepted"), [(50_000, True), (80_000, False)])
async def test_a_large_head_is_judged_alike_however_it_is_split(step, size, is_accepted):
    async def splits(seen, writer):
        answer = http(200, body_of(seen, "hello"), x="y" * size)
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)

    async with importing(era=MODERN, faults={"tools/call": splits}) as (_, imported):
        if is_accepted:
            assert (await call(imported[0])).ok
        else:
            with pytest.raises(CallError) as caught:
                await call(imported[0])
            assert caught.value.code == "MCP_PROTOCOL_ERROR"
