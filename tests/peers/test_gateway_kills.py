"""The gateway is killed while calls run: each call is answered or in the log as one that may have run, and none runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import Figure
from tests.hostile.server import FaultyServer, faulty_server, tool
from tests.on_socket import ServedProgram, headgate, served_program

pytestmark = pytest.mark.anyio

_AT_ONCE = 20
_CREATE = ("--home", "home", "clients", "create", "script", "--gateway")
_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _ask(
    http: httpx2.AsyncClient, url: str, name: str, arguments: dict[str, Any]
) -> dict[str, Any] | None:
    """Call a tool of the gateway; None if no answer came."""
    params = {"name": name, "arguments": arguments}
    try:
        reply = await http.post(
            url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        )
        data = next(line for line in reply.text.splitlines() if line.startswith("data: {"))
        return json.loads(data[6:])["result"]
    except (httpx2.HTTPError, StopIteration):
        return None


async def _until_offered(http: httpx2.AsyncClient, url: str) -> None:
    async with asyncio.timeout(30):
        while True:
            answer = await _ask(http, url, "search", {})
            if answer is not None and answer["structuredContent"]["total"]:
                return
            await asyncio.sleep(0.02)


async def _round(
    program: ServedProgram, token: str, remote: FaultyServer, first: int, kill_after: int
) -> set[int]:
    """Call with numbers that are used once, kill the gateway meanwhile, and return the numbers that were answered."""
    url = f"{program.address}/gateway"
    limits = httpx2.Limits(max_connections=_AT_ONCE)
    async with httpx2.AsyncClient(
        headers={**_HEADERS, "Authorization": f"Bearer {token}"}, trust_env=False, limits=limits, timeout=30
    ) as http:
        await _until_offered(http, url)
        numbers = range(first, first + _AT_ONCE)
        calls = [
            asyncio.create_task(_ask(http, url, "call", {"operation": "city/echo", "input": {"n": number}}))
            for number in numbers
        ]
        before = len(remote.calls("tools/call"))
        async with asyncio.timeout(30):
            while len(remote.calls("tools/call")) < before + kill_after and not all(c.done() for c in calls):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.001)
        os.kill(program.pid, signal.SIGKILL)
        answers = await asyncio.gather(*calls)
    return {number for number, answer in zip(numbers, answers, strict=True) if answer is not None}


def _digest(number: int) -> str:
    return sha256(json.dumps({"n": number}, separators=(",", ":")).encode()).hexdigest()


@pytest.mark.parametrize("kills", [2, pytest.param(50, marks=pytest.mark.soak)])
async def test_no_call_is_lost_from_the_log_or_run_twice_when_the_gateway_is_killed(
    tmp_path: Path, kills: int, figure: Figure
):
    chance = random.Random(7)
    answered: set[int] = set()
    async with faulty_server(tools=[tool("echo")]) as remote:
        servers = tmp_path / "servers.json"
        servers.write_text(json.dumps({"mcpServers": {"city": {"type": "http", "url": remote.url}}}))
        setting = str(servers)
        made = await asyncio.to_thread(headgate, tmp_path, *_CREATE, HEADGATE_GATEWAY_SERVERS=setting)
        assert made.code == 0, made.err
        for kill in range(kills):
            served = served_program(tmp_path, HEADGATE_GATEWAY_SERVERS=setting)
            program = await asyncio.to_thread(served.__enter__)
            try:
                kill_after = chance.randrange(1, _AT_ONCE)
                answered |= await _round(program, made.out.strip(), remote, kill * _AT_ONCE, kill_after)
            finally:
                await asyncio.to_thread(served.__exit__, None, None, None)
        executed = [seen.params["arguments"]["n"] for seen in remote.calls("tools/call")]
    exported = await asyncio.to_thread(headgate, tmp_path, "--home", "home", "audit", "export")
    entries = [json.loads(line) for line in exported.out.splitlines()]
    logged: dict[str, set[str]] = {}
    for entry in entries:
        if "called" in entry:
            logged.setdefault(entry["called"]["arguments_digest"], set()).add(entry["outcome"])
    ended = {number for number in range(kills * _AT_ONCE) if "answered" in logged.get(_digest(number), ())}
    figure(
        "gateway",
        f"{kills} kills: {len(executed)} calls ran, {len(answered)} answers came, "
        f"{len(set(executed) - ended)} are in the log as sent and no more",
    )
    assert len(executed) == len(set(executed)), "a call ran twice"
    assert all("sent" in logged.get(_digest(number), ()) for number in executed), "a call is not in the log"
    assert answered <= ended
    verdict = await asyncio.to_thread(headgate, tmp_path, "--home", "home", "audit", "verify")
    assert verdict.code == 0, verdict
