"""Another resource server's records on standard input and output."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace

from headgate.auth.credentials import refuse_owner_bearer
from headgate.auth.keys import KeyRing, RingSealer, SealKey
from headgate.mcp.serve.reader import HandleMaker, KnownKeys, Reader
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.stdio import StdioSession
from headgate.mcp.serve.tools import WHOLE, WITHOUT_WINDOWS
from headgate.reading.remote import RemoteResourceServer, http_client
from headgate.text.ladder import Windows


def handles_of_token(token: str) -> HandleMaker:
    """Make handles with a key derived from the token, so that all processes with it read each other's.

    The exception are handles of long ids: another resource server finds no record by the digest of its key.
    """
    secret = hashlib.sha512(b"headgate handles\0" + token.encode()).digest()
    return HandleMaker(RingSealer(KeyRing(SealKey(secret))), KnownKeys())


def run_remote(provider_url: str, token: str, identity: ServerIdentity) -> None:
    """Serve another resource server's records to the client on standard input."""
    asyncio.run(_serve(provider_url, token, identity))


async def _serve(provider_url: str, token: str, identity: ServerIdentity) -> None:
    async with http_client(token) as client:
        port = RemoteResourceServer(provider_url, client)
        # Before the client is answered: an agent never reads with an owner's token.
        refuse_owner_bearer(await port.bearer())
        # Asked before the first tool is listed: what the server cannot serve is never offered.
        windows = await port.windows()
        port = replace(port, as_json=windows is Windows.JSON)
        reader = Reader(port, handles_of_token(token), provider_url, windows=windows)
        surface = (WHOLE if windows else WITHOUT_WINDOWS).with_modes(await port.search_modes())
        surface = surface.naming(await port.source_ids())

        async def reader_of(_via: str) -> Reader:
            return reader

        session = StdioSession(identity, surface)
        if session.begin():
            await session.serve(reader_of)
