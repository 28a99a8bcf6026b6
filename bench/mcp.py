"""What a tool call over ``/mcp`` costs, beside the same read over REST, the SDK alone, and a bare echo.

One worker, real grants and checks, loopback. `python -m bench mcp` prints one table; ratios of a run can be trusted,
single figures of a shared machine cannot.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import subprocess  # noqa: TID251 - the servers that are measured are separate programs
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
import uvloop
from mcp import Client, StdioServerParameters

from bench.load import Figure, Server, Slice, better, by_turns, measure, times_the_cpu, times_the_rate
from headgate import hosting, wiring
from headgate.auth.credentials import home_credential_path, write_token
from headgate.auth.grants import Choice, Conditions, issue
from headgate.mcp.serve.tools import TOOLS
from headgate.model.ids import ClientId, ConnectorKey, StreamName
from headgate.model.rows import Batch
from headgate.settings import Settings, resolve
from tests.stitched import StitchedAccount, fill

RECORDS = int(os.environ.get("HEADGATE_BENCH_RECORDS", "100000"))
SECONDS = 0.6
WAYS = ("echo", "rest", "sdk", "mcp")
TURNS = 3
RATIO_TURNS = 7
RATIO_SECONDS = 0.6
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Prepared:
    """A home to measure, and what to ask of it."""

    home: Path
    token: str
    connection: str


def main() -> None:
    """Measure everything once, and print it."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory:
        prepared = asyncio.run(_prepare(Path(directory) / "home"))
        figures: dict[tuple[str, str], Figure] = {}
        with ExitStack() as servers:
            running = {way: servers.enter_context(_server(way, prepared)) for way in WAYS}
            asked = {way: _requests(way, prepared, server.port) for way, server in running.items()}
            # By turns, and the best of each: a host that is slow for a while is slow for all that are compared.
            for _ in range(TURNS):
                for name in (*asked["echo"], *asked["mcp"]):
                    for way in (way for way in WAYS if name in asked[way]):
                        figure = uvloop.run(measure(running[way], [asked[way][name]], SECONDS))
                        figures[way, name] = better(figures.get((way, name)), figure)
            sides = {
                f"{way} {name}": (running[way], [asked[way][name]])
                for name in ("fetch", "query 25", "aggregate count")
                for way in ("rest", "mcp", *(["sdk"] if name == "fetch" else []))
            }
            turns = uvloop.run(by_turns(sides, RATIO_TURNS, RATIO_SECONDS))
        _print(figures)
        _print_promises(figures, turns)
        _print_bytes(figures)
        _print_start(prepared)


async def _prepare(home: Path) -> Prepared:
    settings = _settings(home)
    async with wiring.open_stores(settings) as stores:
        accounts = [StitchedAccount(ConnectorKey("mail"), "Home mail", RECORDS)]
        connection = (await fill(stores.store, accounts))["Home mail"]
        long = [
            {"id": name, "subject": name, "sent_at": "2020-01-01T00:00:00Z", "body": "words " * (size // 6)}
            for name, size in (("5kB", 5_000), ("5MB", 5_000_000))
        ]
        lines = [msgspec.json.encode({"data": row, "emitted_at": "2020-01-01T00:00:00Z"}) for row in long]
        await stores.store.ingest(Batch(connection, StreamName("messages"), lines, wiring.now()))
        issued = await issue(
            stores.ledger,
            Choice(),
            Conditions(ClientId("bench")),
            catalog=await stores.catalog(),
            now=wiring.now(),
        )
    return Prepared(home, issued.access_token, connection)


def _settings(home: Path) -> Settings:
    given = {"home": str(home), "log_level": "error", "rate_limit": "0", "port": "0", "semantic_model": "off"}
    return resolve(given, {}, {}, Path("none")).settings


@contextmanager
def _server(way: str, prepared: Prepared) -> Iterator[Server]:
    command = [sys.executable, "-m", "bench.mcp", way, str(prepared.home)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    try:
        assert process.stdout is not None
        found = re.search(r":(\d+)$", process.stdout.readline().strip())
        assert found is not None
        yield Server(process.pid, int(found[1]))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _serve(way: str, home: Path) -> None:
    """Be the server that is measured."""
    if way == "echo":
        _serve_echo()
        return
    settings = replace(_settings(home), mcp_fast_path=way != "sdk")
    hosting.run_server(settings, lambda address, _home, _link: print(address, flush=True))


def _serve_echo() -> None:
    async def echo(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"{}"})

    taken = hosting.listen("127.0.0.1", 0)
    taken.listen(128)
    print(f"http://127.0.0.1:{taken.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(echo, access_log=False, log_level="critical", lifespan="off")).run(
        sockets=[taken]
    )


def _requests(way: str, prepared: Prepared, port: int) -> dict[str, bytes]:
    if way == "echo":
        return {"echo": _http(port, prepared.token, "POST", "/mcp", b"{}")}
    reads = _reads(prepared.connection)
    if way == "rest":
        return {name: _http(port, prepared.token, "GET", path, b"") for name, (_, _, path) in reads.items()}
    return {name: _tool(port, prepared.token, tool, given) for name, (tool, given, _) in reads.items()}


def _reads(connection: str) -> dict[str, tuple[str, dict[str, Any], str]]:
    place = f"?connection_id={connection}"
    base = "/v1/streams/messages"
    middle = f"m{RECORDS // 2:05}"
    found = {
        "fetch": ("fetch", {"id": f"{connection}/messages:{middle}"}, f"{base}/records/{middle}{place}"),
        "query 25": ("query_records", {"stream": "messages"}, f"{base}/records"),
        "aggregate count": (
            "aggregate",
            {"stream": "messages", "metric": "count"},
            f"{base}/aggregate?metric=count",
        ),
        "search 25": ("search", {"q": "bridge"}, "/v1/search?q=bridge"),
        "schema": ("schema", {"stream": "messages"}, "/v1/schema?view=compact&stream=messages"),
    }
    for name in ("5kB", "5MB"):
        window = {"id": f"{connection}/messages:{name}", "field_path": "body", "offset_chars": 2000}
        path = f"{base}/records/{name}/field-window{place}&field=body&offset_chars=2000"
        found[f"window of {name}"] = ("read_record_field", window, path)
    return found


def _tool(port: int, token: str, tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": _META}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    more = f"MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    return _http(port, token, "POST", "/mcp", body, more)


def _http(port: int, token: str, method: str, path: str, body: bytes, more: str = "") -> bytes:
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: application/json, text/event-stream\r\n{length}{more}\r\n"
    )
    return head.encode() + body


def _print(figures: dict[tuple[str, str], Figure]) -> None:
    print(f"\n/mcp over {RECORDS} records, one worker, real grant, loopback")
    heads = f"{'req/s':>7} {'p50 ms':>7} {'p95 ms':>7}"
    print(f"{'':26} {heads} | c=8: {heads} {'CPU us':>7} {'bytes':>8}")
    for (way, name), one in sorted(figures.items(), key=lambda item: WAYS.index(item[0][0])):
        alone = f"{one.per_second:7.0f} {one.p50_ms:7.2f} {one.p95_ms:7.2f}"
        eight = f"{one.per_second_of_eight:7.0f} {one.p50_of_eight_ms:7.2f} {one.p95_of_eight_ms:7.2f}"
        print(f"{way + ' ' + name:26} {alone} |      {eight} {one.cpu_us:7.0f} {one.size_bytes:8}")


def _print_promises(figures: dict[tuple[str, str], Figure], turns: dict[str, list[Slice]]) -> None:
    print("\nwhat was promised")
    for name in ("fetch", "query 25", "aggregate count"):
        ratio = times_the_cpu(turns, f"mcp {name}", f"rest {name}")
        print(f"  {name}: {ratio:.2f} x the CPU of the REST read (at most 1.8)")
    gain = times_the_rate(turns, "mcp fetch", "sdk fetch")
    print(f"  fetch: {gain:.1f} x the throughput of the SDK alone (at least 3)")
    windows = figures["mcp", "window of 5MB"].p50_ms / figures["mcp", "window of 5kB"].p50_ms
    print(f"  window of 5 MB: {windows:.2f} x the time of one of 5 kB (at most 2)")


def _print_bytes(figures: dict[tuple[str, str], Figure]) -> None:
    """Print what answers weigh on the wire, headers left out; tests assert it on fixed records."""
    print("\nbytes")
    print(f"  tools/list: {len(msgspec.json.encode({'tools': TOOLS}))} (at most 14 000)")
    for name in ("fetch", "query 25", "search 25", "schema"):
        print(f"  {name}: {figures['mcp', name].size_bytes}, over REST {figures['rest', name].size_bytes}")


def _print_start(prepared: Prepared) -> None:
    """Print how long `headgate mcp` takes from nothing to its first answer, for a real client."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory:
        path = home_credential_path(Path(directory), prepared.home)
        credential = {"access_token": prepared.token}
        write_token(path, "http://127.0.0.1", credential, created_at="2026-01-01T00:00:00Z")
        program = ["-m", "headgate", "--home", str(prepared.home), "mcp", "--cache-root", directory]
        server = StdioServerParameters(command=sys.executable, args=program)
        runs = [asyncio.run(_start(server)) for _ in range(5)]
    seconds, cpu = min(runs)[0], min(used for _, used in runs)
    print(
        f"\nheadgate mcp: first answer after {seconds:.2f} s (at most 1.5), {cpu:.2f} s of processor in all"
    )


async def _start(server: StdioServerParameters) -> tuple[float, float]:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    async with Client(server) as client:
        await client.call_tool("schema", {})
        seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
