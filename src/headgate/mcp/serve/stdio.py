"""MCP on standard input and output: one client, one token, the same surface as hosted.

A session begins in `headgate.mcp.serve.handshake`, which is quick to import; the SDK serves the rest of it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import msgspec

from headgate.mcp.serve.handshake import Handshake
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.tools import Surface

if TYPE_CHECKING:
    from anyio import Event

    from headgate.mcp.serve.call import ReaderOfCall


#: How long calls under way are waited for after the client has closed the input.
_LAST_ANSWERS_SECONDS = 10.0


class _MessageHead(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None


_read_head = msgspec.json.Decoder(_MessageHead).decode


@dataclass(slots=True)
class StdioSession:
    """The one session of a process, read and written a line at a time; other prints go to standard error."""

    identity: ServerIdentity
    surface: Surface
    incoming: BinaryIO = field(init=False)
    outgoing: BinaryIO = field(init=False)
    _waiting: list[bytes] = field(default_factory=list[bytes], init=False)
    _answered: int | str | None = field(default=None, init=False)
    #: The calls that wait for an answer: the SDK ends them when the input ends, and a pipe ends at once.
    _calls: set[int | str] = field(default_factory=set[int | str], init=False)
    _has_answered: Event | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.incoming, self.outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def begin(self) -> bool:
        """Answer what a session begins with; False if the client closed the input before anything else came."""
        handshake = Handshake(self.identity, self.surface)
        for line in self.incoming:
            answer = handshake.answer(line)
            if answer is None:
                self._waiting, self._answered = [*handshake.shown, line], handshake.answered
                return True
            self._write(answer)
        return False

    async def serve(self, reader_of: ReaderOfCall) -> None:
        """Let the SDK go on until the client closes the input."""
        from mcp.server.stdio import stdio_server  # noqa: PLC0415 - importing it takes longer than hosts wait

        from headgate.mcp.serve.server import build_server  # noqa: PLC0415 - it imports the SDK

        # All that is imported stays.
        gc.freeze()
        gc.enable()
        server = build_server(lambda _context, via: reader_of(via), self.identity, self.surface)
        # The SDK reads and writes files; this has all that it uses of one.
        async with stdio_server(cast("Any", self), cast("Any", self)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    async def __aiter__(self) -> AsyncGenerator[str]:
        """Yield to the SDK the messages that began the session, and then the rest."""
        from anyio import Event, move_on_after  # noqa: PLC0415 - as above
        from anyio.to_thread import run_sync  # noqa: PLC0415 - as above

        for line in self._waiting:
            yield self._noted(line)
        while line := await run_sync(self.incoming.readline, abandon_on_cancel=True):
            yield self._noted(line)
        with move_on_after(_LAST_ANSWERS_SECONDS):
            while self._calls:
                self._has_answered = Event()
                await self._has_answered.wait()

    def _noted(self, line: bytes) -> str:
        with suppress(msgspec.DecodeError):
            head = _read_head(line)
            if head.id is not None and head.method == "tools/call":
                self._calls.add(head.id)
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        """Write a line of the SDK, unless it is an answer that the client already has."""
        from anyio.to_thread import run_sync  # noqa: PLC0415 - as above

        head = _read_head(text)
        if self._answered is not None and head.id == self._answered:
            self._answered = None
            return
        await run_sync(self._write, text.encode())
        if head.id is not None and head.method is None:
            self._calls.discard(head.id)
            if self._has_answered is not None:
                self._has_answered.set()

    async def flush(self) -> None:
        """Do nothing: every line is flushed as it is written."""

    def _write(self, line: bytes) -> None:
        self.outgoing.write(line)
        self.outgoing.flush()
