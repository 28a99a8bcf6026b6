"""The official conformance suite for authorization servers, both revisions, with the owner's browser beside it."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from tests.console.browsers import signed_in
from tests.console.clients import Client, change
from tests.in_process import LocalProgram, local_program
from tests.peers.serving import NODE, PEERS
from tests.schema.declarations import declaration

SUITE = PEERS / "conformance" / "dist" / "index.js"
SCENARIOS = ("authorization-server-metadata-endpoint", "authorization-code-grant")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


async def on_socket(program: LocalProgram) -> tuple[str, uvicorn.Server, asyncio.Task[None]]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    config = uvicorn.Config(program.app, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve(sockets=[taken]))
    return f"http://127.0.0.1:{taken.getsockname()[1]}", server, task


async def owner_approves(browser: Any, address: str, url: str, key: str) -> None:
    """Go through the page of consent, then where it sends the browser."""
    begun = await browser.get(url.removeprefix(address))
    shown = await browser.get(begun.location)
    shown = await change(browser, begun.location, shown, **{f"pick/{key}": "1"})
    decided = await change(browser, begun.location, shown, decision="approve")
    async with httpx2.AsyncClient(trust_env=False) as client:
        await client.get(decided.location)


async def run(place: Path, revision: str) -> tuple[int | None, str]:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        key = f"{await program.connect('mail', 'Home mail')}/messages"
        address, server, task = await on_socket(program)
        browser, port = await signed_in(program), free_port()
        browser.host = address.removeprefix("http://")
        client = Client(program, redirect="http://127.0.0.1/callback")
        await client.register(token_endpoint_auth_method="none")
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(SUITE), "authorization", "--url", address, "--client-id", client.id),
            *("--resource", f"{address}/mcp", "--port", str(port), "--spec-version", revision),
            *("-o", str(place / "results")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        output = ""
        async for line in process.stdout:
            output += line.decode()
            if re.match(rf"{address}/oauth/authorize\?", line.decode()):
                await owner_approves(browser, address, line.decode().strip(), key)
        await process.wait()
        server.should_exit = True
        await task
    return process.returncode, output


@pytest.mark.skipif(not SUITE.exists(), reason="the Node peers are not installed")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_every_authorization_scenario_passes(revision: str, tmp_path: Path):
    status, output = asyncio.run(run(tmp_path, revision))
    assert status == 0, output[-4000:]
    for scenario in SCENARIOS:
        assert re.search(rf"✓ {scenario}: [1-9][0-9]* passed, 0 failed", output), output[-4000:]
    print(output[output.rindex("=== SUMMARY") :])  # noqa: T201 - the figure is read in the output
