"""What a tool call over ``/mcp`` costs, beside the same read over REST, a bare tool of the SDK, and a bare echo.

One worker, real grants and checks, loopback. `python -m bench mcp` prints one table; ratios of a run can be trusted,
single figures of a shared machine cannot.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess  # noqa: TID251 - the servers that are measured are separate programs
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import uvicorn
import uvloop
from mcp.server.lowlevel.server import Server as SdkServer

from bench.load import Figure, Server, Slice, better, by_turns, measure, times_the_cpu
from headgate import hosting, wiring
from headgate.auth.clock import now
from headgate.auth.credentials import home_credential_path, write_token
from headgate.auth.grants import Choice, Conditions, issue
from headgate.mcp.serve import server as mcp_server
from headgate.mcp.serve.tools import TOOLS
from headgate.model.ids import ClientId, ConnectorKey, StreamName
from headgate.model.rows import Batch
from headgate.settings import Settings, resolve
from tests.stitched import StitchedAccount, fill

RECORDS = int(os.environ.get("HEADGATE_BENCH_RECORDS", "100000"))
SECONDS = 0.6
WAYS = ("echo", "rest", "bare", "mcp")
TURNS = 3
RATIO_TURNS = 7
RATIO_SECONDS = 0.6
_FETCHED = "fetched.json"
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
            running = {"mcp": servers.enter_context(_server("mcp", prepared))}
            _keep_fetched(prepared, running["mcp"].port)
            running |= {way: servers.enter_context(_server(way, prepared)) for way in WAYS if way != "mcp"}
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
                for way in ("rest", "mcp", *(["bare"] if name == "fetch" else []))
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
        await stores.store.ingest(Batch(connection, StreamName("messages"), lines, now()))
        issued = await issue(
            stores.ledger, Choice(), Conditions(ClientId("bench")), catalog=await stores.catalog(), now=now()
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
    if way == "bare":
        constant = msgspec.json.decode((home / _FETCHED).read_bytes())["result"]
        mcp_server.build_server = lambda *_: _bare_server(constant)
    hosting.run_server(_settings(home), lambda address, _home, _link: print(address, flush=True))


def _bare_server(constant: dict[str, Any]) -> SdkServer[Any]:
    """Build a server of the SDK whose one tool returns a constant."""

    async def call(_context: object, _params: object) -> Any:
        return constant

    return SdkServer("bare", on_call_tool=call)


def _keep_fetched(prepared: Prepared, port: int) -> None:
    """Keep the answer to a fetch, for the bare tool to return."""
    head, _, body = _requests("mcp", prepared, port)["fetch"].partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    answer = httpx2.post(f"http://127.0.0.1:{port}/mcp", content=body, headers=headers, trust_env=False)
    (prepared.home / _FETCHED).write_bytes(answer.content)


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
    calls = {name: _tool(port, prepared.token, tool, given) for name, (tool, given, _) in reads.items()}
    return {"fetch": calls["fetch"]} if way == "bare" else calls


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
        print(
            f"  {name}: {times_the_cpu(turns, f'mcp {name}', f'rest {name}'):.2f} x the CPU of the REST read"
        )
    ratio = times_the_cpu(turns, "mcp fetch", "bare fetch")
    print(f"  fetch: {ratio:.2f} x the CPU of a bare tool of the SDK with the same answer (at most 1.5)")
    windows = figures["mcp", "window of 5MB"].p50_ms / figures["mcp", "window of 5kB"].p50_ms
    print(f"  window of 5 MB: {windows:.2f} x the time of one of 5 kB (at most 2)")


def _print_bytes(figures: dict[tuple[str, str], Figure]) -> None:
    """Print what answers weigh on the wire, headers left out; tests assert it on fixed records."""
    print("\nbytes")
    print(f"  tools/list: {len(msgspec.json.encode({'tools': TOOLS}))} (at most 10 000)")
    for name in ("fetch", "query 25", "search 25", "schema"):
        print(f"  {name}: {figures['mcp', name].size_bytes}, over REST {figures['rest', name].size_bytes}")


_OPENING = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)
_FIRST_CALL = {"id": 3, "method": "tools/call", "params": {"name": "schema", "arguments": {}}}


def _print_start(prepared: Prepared) -> None:
    """Print what `headgate mcp` needs from nothing to its lists, and to its first answer."""
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as directory:
        path = home_credential_path(Path(directory), prepared.home)
        credential = {"access_token": prepared.token}
        write_token(path, "http://127.0.0.1", credential, created_at="2026-01-01T00:00:00Z")
        program = ["-m", "headgate", "--home", str(prepared.home), "mcp", "--cache-root", directory]
        lists = min(_start(program, _OPENING) for _ in range(5))
        call = min(_start(program, (*_OPENING, _FIRST_CALL)) for _ in range(5))
    print(f"\nheadgate mcp: lists after {lists[0]:.2f} s of processor (at most 0.3)")
    print(f"  first call after {call[0]:.2f} s of processor (at most 0.9), {call[1]} MB (at most 90)")
    command = min(
        _seconds(["-m", "headgate", "--home", str(prepared.home), "grants", "list"]) for _ in range(5)
    )
    print(f"headgate grants list: {command:.2f} s of processor (at most 0.5)")


def _seconds(program: list[str]) -> float:
    """Run a command to its end; return the seconds that it took of the processor."""
    process = subprocess.Popen([sys.executable, *program], stdout=subprocess.DEVNULL)  # noqa: S603 - our own
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def _start(program: list[str], messages: Sequence[dict[str, Any]]) -> tuple[float, int]:
    """Begin a session; return the processor's seconds and the most memory until its last answer."""
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in messages:
            process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
            process.stdin.flush()
            if "id" in message:
                process.stdout.readline()
        ticks = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").split()[13:15]
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        process.stdin.close()
    peak = re.search(r"VmHWM:\s+(\d+)", status)
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak[1]) // 1024 if peak else 0


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
