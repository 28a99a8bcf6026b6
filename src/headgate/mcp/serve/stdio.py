"""MCP on standard input and output: one client, one token, the same surface as hosted."""

from __future__ import annotations

import hashlib

import anyio
from mcp.server.stdio import stdio_server

from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import Identity
from headgate.mcp.serve.server import ReaderOf, build_server
from headgate.mcp.serve.tools import WHOLE, WITHOUT_WINDOWS, Surface
from headgate.model.sealed import KeyRing, Sealer, SealKey
from headgate.reading.remote import RemoteResourceServer, http_client
from headgate.text.ladder import Windows


def handles_of_token(token: str) -> HandleMaker:
    """Make handles whose key comes from the token, so that they are the same in its every process."""
    return HandleMaker(
        Sealer(KeyRing(SealKey(hashlib.sha512(b"headgate handles\0" + token.encode()).digest())))
    )


async def serve_stdio(reader_of: ReaderOf, identity: Identity, surface: Surface = WHOLE) -> None:
    """Speak until the client closes the input; nothing but the protocol goes to the output."""
    server = build_server(reader_of, identity, surface)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def run_remote(provider_url: str, token: str, identity: Identity) -> None:
    """Serve another resource server's records to the client on standard input."""

    async def run() -> None:
        async with http_client(token) as client:
            port = RemoteResourceServer(provider_url, client)
            # Asked before the first tool is listed: what the server cannot serve is never offered.
            windows, surface = (
                (Windows.TEXT, WHOLE) if await port.has_windows() else (Windows.NONE, WITHOUT_WINDOWS)
            )
            reader = Reader(port, handles_of_token(token), provider_url, windows=windows)
            await serve_stdio(lambda _context, _via: reader, identity, surface)

    anyio.run(run)
