"""Servers behind the gateway are tried again after any failure, and the page says why one is away."""

from __future__ import annotations

import asyncio

import pytest

from headgate.mcp.client.from_mcp import ImportedOperations
from headgate.mcp.client.servers import ServerEntry, read_servers
from headgate.mcp.gateway.hosted import HostedGateway
from headgate.tasks import Supervisor

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_server_whose_secret_cannot_be_read_is_tried_again_and_its_problem_is_shown():
    entries, _ = read_servers({"mcpServers": {"city": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}})
    attempts, enough = 0, asyncio.Event()

    async def fail(_entry: ServerEntry) -> ImportedOperations:
        nonlocal attempts
        attempts += 1
        if attempts == 3:
            enough.set()
        raise RuntimeError("No recommended backend was available.")

    async def sleep(_seconds: float) -> None:
        await asyncio.sleep(0)

    gateway = HostedGateway(entries, fail, "1", supervisor=Supervisor(sleep))
    async with gateway.running():
        await asyncio.wait_for(enough.wait(), 10)
        (server,) = await gateway.servers()
    assert "RuntimeError" in server.problem
    assert "backend" not in server.problem
