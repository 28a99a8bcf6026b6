"""Memory that strangers fill: whatever a client sends may become a key of a cache, and no cache grows with it."""

from __future__ import annotations

import asyncio
import functools
import gc
import itertools
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.auth import limits
from headgate.model.ids import ConnectionId
from tests.conftest import Figure
from tests.in_process import LocalProgram, local_program, record
from tests.on_socket import MAIL, ServedProgram, line, served_program_alone
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.web.test_wire import Line

REQUESTS = 2_000
#: Less than what the keys alone would take if they were held.
MOST_MIB = 8
MANY_REQUESTS = 10_000
MOST_MIB_OF_MANY = 16
LONG = "k" * 6_000
PREFIX = "io.modelcontextprotocol"


def head(first: str, *headers: str, body: bytes = b"") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([first, *headers, *length, "", ""]).encode() + body


def tools_list(number: int, token: str) -> bytes:
    """List the tools as a client that calls itself otherwise each time."""
    meta = {
        f"{PREFIX}/protocolVersion": "2026-07-28",
        f"{PREFIX}/clientCapabilities": {},
        f"{PREFIX}/clientInfo": {"name": f"{number}{LONG}", "version": f"{number}"},
        f"own{number}/x": LONG,
    }
    body = {"jsonrpc": "2.0", "id": f"{number}", "method": "tools/list", "params": {"_meta": meta}}
    headers = ("Host: localhost", f"Authorization: Bearer {token}", "Content-Type: application/json")
    more = (
        f"Accept: application/json, text/event-stream, x/{number}{LONG}",
        "MCP-Protocol-Version: 2026-07-28",
    )
    return head(
        "POST /mcp HTTP/1.1", *headers, *more, "Mcp-Method: tools/list", body=json.dumps(body).encode()
    )


def choice(number: int) -> str:
    """Choose fields, in another order each time."""
    order = next(itertools.islice(itertools.permutations(FIELDS), number % 5040, None))
    return f"fields={','.join(order)}"


OWN = "Host: localhost"
FIELDS = ("id", "subject", "body", "sender", "sent_at", "size", "is_read")
KINDS: dict[str, Callable[[int, str], bytes]] = {
    "hosts": lambda n, _: head("GET /v1/schema HTTP/1.1", f"Host: {n}.{LONG}.example"),
    "short hosts": lambda n, _: head("GET /v1/schema HTTP/1.1", f"Host: h{n}.example"),
    "tokens": lambda n, _: head("GET /v1/schema HTTP/1.1", OWN, f"Authorization: Bearer {n}{LONG}"),
    "paths": lambda n, _: head(f"GET /{n}/{LONG} HTTP/1.1", OWN),
    "origins": lambda n, _: head("GET /v1/schema HTTP/1.1", OWN, f"Origin: http://{n}{LONG}"),
    "request ids": lambda n, _: head("GET /v1/schema HTTP/1.1", OWN, f"Request-Id: {n}{LONG}"),
    "forwarded": lambda n, _: head(
        "GET /v1/schema HTTP/1.1", OWN, f"X-Forwarded-For: {n}{LONG}", "Authorization: Bearer x"
    ),
    "streams": lambda n, token: head(
        f"GET /v1/streams/{n}{LONG}/records HTTP/1.1", OWN, f"Authorization: Bearer {token}"
    ),
    "records": lambda n, token: head(
        f"GET {MAIL}/{n}{LONG[:900]} HTTP/1.1", OWN, f"Authorization: Bearer {token}"
    ),
    "filters": lambda n, token: head(
        f"GET {MAIL}?filter[subject]={n}{LONG} HTTP/1.1", OWN, f"Authorization: Bearer {token}"
    ),
    "choices": lambda n, token: head(
        f"GET {MAIL}?{choice(n)} HTTP/1.1", OWN, f"Authorization: Bearer {token}"
    ),
    "choices of a record": lambda n, token: head(
        f"GET {MAIL}/m1?{choice(n)} HTTP/1.1", OWN, f"Authorization: Bearer {token}"
    ),
    "words": lambda n, token: head(f"GET /v1/search?q={n}x HTTP/1.1", OWN, f"Authorization: Bearer {token}"),
    "tools/list": tools_list,
}
#: One before and one after admission, and one over MCP; `make soak` sends the others too.
USUAL = ("tokens", "choices", "tools/list")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    place: Path = tmp_path_factory.mktemp("keys")
    with served_program_alone(place, HEADGATE_LOG_LEVEL="error") as program:
        program.ingest(program.connect(), [line(f"m{n}") for n in range(10)])
        yield program, program.grant()


def grown_mib(served: tuple[ServedProgram, str], kind: str, requests: int) -> float:
    """Send requests each with another key; gives how much memory they took."""
    program, token = served
    made = KINDS[kind]
    port = int(program.address.rpartition(":")[2])
    ask(port, [made(number, token) for number in range(200)])
    before = program.memory_mib()
    for start in range(1_000, 1_000 + requests, 500):
        ask(port, [made(number, token) for number in range(start, start + 500)])
    return program.memory_mib() - before


@pytest.mark.parametrize(
    "kind", [kind if kind in USUAL else pytest.param(kind, marks=pytest.mark.soak) for kind in KINDS]
)
def test_no_cache_grows_with_what_clients_send(served: tuple[ServedProgram, str], figure: Figure, kind: str):
    grown = grown_mib(served, kind, REQUESTS)
    figure("memory", f"{REQUESTS} requests with other {kind}: {grown:.1f} MiB")
    assert grown < MOST_MIB


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_cache_grows_with_what_clients_send_for_long(
    served: tuple[ServedProgram, str], figure: Figure, kind: str
):
    grown = grown_mib(served, kind, MANY_REQUESTS)
    figure("memory", f"{MANY_REQUESTS} requests with other {kind}: {grown:.1f} MiB")
    assert grown < MOST_MIB_OF_MANY


#: More keys than any cache may hold, so that one which holds them all is found however short they are.
KEYS = 1_500
MOST_HELD = 1_200


async def sent(program: LocalProgram, request: bytes) -> None:
    """Send a request, as it would go over a socket, to the program in this process."""
    first, *lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    headers = [(name.lower(), value) for name, _, value in (one.partition(": ") for one in lines)]
    method, path, _ = first.split(" ")
    await program.ask(method, path, body=request.partition(b"\r\n\r\n")[2], headers=headers)
    # As between two requests on a socket: the loop drops the timers that were stopped.
    await asyncio.sleep(0)


def held() -> Iterator[tuple[int, str, int]]:
    """Give every collection in the process with many members: which it is, what it looks like, and how many."""
    kinds = (dict, OrderedDict, set, list, deque)
    for one in gc.get_objects():
        # Collections of plain values are not listed themselves, but those that hold them are.
        for found in (one, *gc.get_referents(one)):
            if issubclass(type(found), kinds) and len(found) > MOST_HELD:
                yield id(found), repr(list(found)[-1])[:200], len(found)


def unbounded_caches() -> list[str]:
    """Name the functions of the product that remember every argument, unless there is none or it is a class."""
    caches: list[Any] = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    return [
        one.__qualname__
        for one in caches
        if one.__module__.startswith("headgate.")
        and one.cache_info().maxsize is None
        and one.cache_info().currsize > MOST_HELD
    ]


@pytest.mark.anyio
async def test_no_collection_holds_every_key_that_clients_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "_MAX_BUCKETS", MOST_HELD // 2)
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", [record("m1", subject="plan")])
        scope = stream_grant("messages", *FIELDS, connections=(ConnectionId(connection),))
        token = await program.grant(grant(scope))
        before = {which: size for which, _, size in held()}
        for made in KINDS.values():
            for number in range(KEYS):
                await sent(program, made(number, token))
        grown = [shown for which, shown, size in held() if size - before.get(which, 0) > MOST_HELD // 2]
    assert grown == []
    assert unbounded_caches() == []


def ask(port: int, requests: list[bytes]) -> None:
    line = Line(port)
    for request in requests:
        line.send(request)
        try:
            line.answer()
        except (TimeoutError, AssertionError, OSError):
            # Some of what is refused ends the connection.
            line.close()
            line = Line(port)
    line.close()
