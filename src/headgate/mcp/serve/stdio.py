"""MCP on standard input and output: one client, one token, the same surface as hosted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

import anyio
import anyio.to_thread
import msgspec

from headgate.auth.credentials import refuse_owner_bearer
from headgate.mcp.serve.call import ReaderOfCall, call_with
from headgate.mcp.serve.handles import HandleMaker, KnownKeys
from headgate.mcp.serve.plain import NotPlain, PlainRequest
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity, constant_result, result_of
from headgate.mcp.serve.stdio_fast import StdioFastPath
from headgate.mcp.serve.tools import WHOLE, WITHOUT_WINDOWS, Surface
from headgate.model.sealed import KeyRing, Sealer, SealKey
from headgate.text.ladder import Windows


def handles_of_token(token: str) -> HandleMaker:
    """Make handles with a key derived from the token, so that all processes with it read each other's.

    The exception are handles of long ids: another resource server finds no record by the digest of its key.
    """
    secret = hashlib.sha512(b"headgate handles\0" + token.encode()).digest()
    return HandleMaker(Sealer(KeyRing(SealKey(secret))), KnownKeys())


async def serve_stdio(reader_of: ReaderOfCall, identity: ServerIdentity, surface: Surface = WHOLE) -> None:
    """Speak until the client closes the input; nothing but the protocol goes to the output."""
    streams = _StdioStreams(*_claimed())
    fast = StdioFastPath(surface)
    async with anyio.create_task_group() as calls:
        while line := await streams.read():
            request = fast.read(line)
            if isinstance(request, NotPlain):
                await _hand_over(streams, fast, line, reader_of, identity)
                return
            if request is None:
                continue
            if request.arguments is None:
                result = constant_result(request.method, identity, surface, request.version)
                await streams.answer(request.id, result)
            else:
                calls.start_soon(_call, streams, request, reader_of, identity)


def run_remote(provider_url: str, token: str, identity: ServerIdentity) -> None:
    """Serve another resource server's records to the client on standard input.

    Raises:
        OwnerCredentialRefused: the server says that the token is an owner's.
    """
    # Only here: a home is served without an HTTP client.
    from headgate.reading.remote import RemoteResourceServer, http_client  # noqa: PLC0415 - slow to import

    async def run() -> None:
        async with http_client(token) as client:
            port = RemoteResourceServer(provider_url, client)
            # Before the client is answered: an agent never reads with an owner's token.
            refuse_owner_bearer(await port.bearer())
            # Asked before the first tool is listed: what the server cannot serve is never offered.
            windows = await port.windows()
            port = replace(port, as_json=windows is Windows.JSON)
            reader = Reader(port, handles_of_token(token), provider_url, windows=windows)
            surface = (WHOLE if windows else WITHOUT_WINDOWS).with_modes(await port.search_modes())

            async def reader_of(_via: str) -> Reader:
                return reader

            await serve_stdio(reader_of, identity, surface)

    anyio.run(run)


async def _call(
    streams: _StdioStreams, request: PlainRequest, reader_of: ReaderOfCall, identity: ServerIdentity
) -> None:
    outcome = await call_with(reader_of, request.tool, request.arguments or {})
    await streams.answer(request.id, result_of(outcome, identity, request.version))


async def _hand_over(
    streams: _StdioStreams,
    fast: StdioFastPath,
    line: bytes,
    reader_of: ReaderOfCall,
    identity: ServerIdentity,
) -> None:
    """Let the SDK go on, from a message that it has to judge."""
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - importing it takes longer than most sessions need

    from headgate.mcp.serve.server import build_server  # noqa: PLC0415 - it imports the SDK

    server = build_server(lambda _context, via: reader_of(via), identity, fast.surface)
    lines = _ReplayedInput(streams, [*fast.replay, line])
    answers = _OutputWithoutFirstReply(streams, fast.answered)
    # The SDK reads and writes files; these have all that it uses of one.
    async with stdio_server(cast("Any", lines), cast("Any", answers)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _claimed() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output for the protocol; other prints go to standard error."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


@dataclass(slots=True)
class _StdioStreams:
    """Standard input and output, a line at a time."""

    incoming: BinaryIO
    outgoing: BinaryIO
    _turn: anyio.Lock = field(default_factory=anyio.Lock, init=False)

    async def read(self) -> bytes:
        """Read a line; empty at the end of the input."""
        return await anyio.to_thread.run_sync(self.incoming.readline, abandon_on_cancel=True)

    async def answer(self, request_id: int | str, result: Any) -> None:
        """Write the answer to a request."""
        await self.write(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n")

    async def write(self, line: bytes) -> None:
        """Write a whole line."""
        async with self._turn:
            await anyio.to_thread.run_sync(self._write, line)

    def _write(self, line: bytes) -> None:
        self.outgoing.write(line)
        self.outgoing.flush()


@dataclass(slots=True)
class _ReplayedInput:
    """The input of the SDK: the messages that were read before it took over, and then the rest."""

    streams: _StdioStreams
    replayed: list[bytes]

    async def __aiter__(self) -> AsyncGenerator[str]:
        for line in self.replayed:
            yield line.decode("utf-8", "replace")
        while line := await self.streams.read():
            yield line.decode("utf-8", "replace")


@dataclass(slots=True)
class _OutputWithoutFirstReply:
    """The output of the SDK, without its answer to the replayed message that was answered before."""

    streams: _StdioStreams
    answered: int | str | None

    async def write(self, text: str) -> None:
        """Write a line to the client, unless it is the answer that it already has."""
        if self.answered is not None and msgspec.json.decode(text).get("id") == self.answered:
            self.answered = None
            return
        await self.streams.write(text.encode())

    async def flush(self) -> None:
        """Do nothing: `write` has flushed every line."""
