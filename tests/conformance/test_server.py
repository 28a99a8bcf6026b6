"""The official conformance suite for servers, both revisions, against the whole product.

The suite cannot send a token, so a shim in front of the product adds one to every request.
"""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.mcp.serve.hosting import serving
from tests.mcp.serve.product import product_app
from tests.peers.serving import NODE, PEERS

HERE = Path(__file__).parent
SUITE = PEERS / "conformance" / "dist" / "index.js"


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    async def shim(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]}
        await app(scope, receive, send)

    return shim


@pytest.mark.skipif(not SUITE.exists(), reason="the Node peers are not installed")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_server_suite_fails_where_it_is_expected_to_and_nowhere_else(revision: str, tmp_path: Path):
    async def run(address: str) -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(SUITE), "server", "--url", f"{address}/mcp", "--suite", "all"),
            *("--spec-version", revision, "--expected-failures", str(HERE / f"server-{revision}.yml")),
            *("-o", str(tmp_path / "results")),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode, output.decode()

    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    with product_app(rate_limit="0") as (app, prepared), serving(with_token(app, prepared["package"]), taken):
        status, output = asyncio.run(run(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert status == 0, output[-4000:]
    assert "Total: " in output
