"""What a call of an imported tool costs the client, against the SDK's client and against a bare POST.

All three call one server in another process, in turn, so that a busy machine slows all of them alike. Processor
time of this process is measured; each figure is the median of all rounds, and so is the ratio within a round.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from headgate.mcp.client import ImportOptions, from_mcp
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl

#: Of the processor time that the SDK's ``Client.call_tool`` takes.
LIMIT_RATIO = 1.3
_CALLS = 240
_ROUNDS = 9
_MODERN = "2026-07-28"

Call = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Processor time of one call, in microseconds, by client and round."""

    era: str
    in_flight: int
    rounds: dict[str, list[float]]

    @property
    def medians(self) -> dict[str, float]:
        """The median of all rounds, by client."""
        return {name: statistics.median(costs) for name, costs in self.rounds.items()}

    @property
    def ratio(self) -> float:
        """The cost of an imported tool, as a part of what the SDK's client costs in the same round."""
        pairs = zip(self.rounds["from_mcp"], self.rounds["sdk"], strict=True)
        return statistics.median(imported / sdk for imported, sdk in pairs)


def measure() -> list[Comparison]:
    """Measure both eras, one call after the other and eight at once."""
    return asyncio.run(_measure())


async def _measure() -> list[Comparison]:
    found: list[Comparison] = []
    async with _server() as url:
        for era in ("modern", "legacy"):
            async with AsyncExitStack() as stack:
                calls = {
                    "post": await _post(stack, url, era),
                    "sdk": await _sdk(stack, url, era),
                    "from_mcp": await _imported(stack, url, era),
                }
                found += [Comparison(era, n, await _rounds(calls, n)) for n in (1, 8)]
    return found


async def _rounds(calls: dict[str, Call], in_flight: int) -> dict[str, list[float]]:
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            rounds[name].append(await _round(call, in_flight))
    return rounds


async def _round(call: Call, in_flight: int) -> float:
    async def worker() -> None:
        for _ in range(_CALLS // in_flight):
            await call()

    started = time.process_time()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return (time.process_time() - started) / _CALLS * 1e6


async def _post(stack: AsyncExitStack, url: str, era: str) -> Call:
    http = await stack.enter_async_context(httpx2.AsyncClient())
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    params: dict[str, Any] = {"name": "echo", "arguments": {"a": 1}}
    if era == "modern":
        headers |= {"mcp-protocol-version": _MODERN, "mcp-method": "tools/call", "mcp-name": "echo"}
        keys = {"protocolVersion": _MODERN, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{key}": value for key, value in keys.items()}
    else:
        headers["mcp-protocol-version"] = "2025-11-25"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    async def call() -> None:
        answer = await http.post(url, content=body, headers=headers)
        assert answer.json()["result"]["structuredContent"] == {"ok": True}

    return call


async def _sdk(stack: AsyncExitStack, url: str, era: str) -> Call:
    http = await stack.enter_async_context(httpx2.AsyncClient())
    mode = "auto" if era == "modern" else "legacy"
    client = await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), mode=mode))

    async def call() -> None:
        answer = await client.call_tool("echo", {"a": 1})
        assert answer.structured_content == {"ok": True}

    return call


async def _imported(stack: AsyncExitStack, url: str, era: str) -> Call:
    options = ImportOptions(era="modern" if era == "modern" else "legacy")
    imported = await stack.enter_async_context(await from_mcp(url, "bench", options=options))
    registry = Registry(expose(item, access_control=AccessControl()) for item in imported)

    async def call() -> None:
        assert await registry.call("bench/echo", {"a": 1}) == {"ok": True}

    return call


@asynccontextmanager
async def _server() -> AsyncGenerator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.operations.remote", str(port))
    try:
        while not await _answers(port):  # noqa: ASYNC110 - another process has no event for it
            await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def main() -> int:
    """Print the figures; return 1 when one is over its limit."""
    found = measure()
    for one in found:
        figures = "  ".join(f"{name} {cost:6.0f} us" for name, cost in one.medians.items())
        print(
            f"{one.era:6} {one.in_flight} in flight  {figures}  ratio {one.ratio:.2f} (limit {LIMIT_RATIO})"
        )
    return 0 if all(one.ratio <= LIMIT_RATIO for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
