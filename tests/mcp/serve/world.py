"""A whole resource server in process: a real store with invented records, and grants on it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from headgate.audit.budget import DailyBudgets, FileCounter
from headgate.audit.journal import Disclosure
from headgate.auth.keys import KeyRing, RingSealer, SealKey
from headgate.home import open_home
from headgate.mcp.serve.call import call
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import Outcome
from headgate.model.grant import Access, AccessMode, Grant, StreamGrant, TokenKind
from headgate.model.ids import RequestId
from headgate.model.rows import Batch, OnInvalid
from headgate.policy.capability import Rules
from headgate.reading.home import ReadableHome, ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.reading.port import ResourceServer
from headgate.store.engines.sqlite import SqliteStore
from tests.stitched import StitchedAccount, fill

NOW = 1_790_000_000_000_000
SMALL = (
    StitchedAccount("mail", "Home mail", 170),
    StitchedAccount("mail", "Work mail", 40),
    StitchedAccount("chat", "Village chat", 60),
)
MAIL = ("id", "subject", "sender", "sent_at", "body", "size", "is_read", "attachment")


@dataclass
class Log:
    """A disclosure log in memory."""

    written: list[Disclosure] = field(default_factory=list)

    def write(self, disclosure: Disclosure) -> None:
        self.written.append(disclosure)


class CountedPort:
    """A port that records the names of its calls."""

    def __init__(self, inner: ResourceServer, calls: list[str]) -> None:
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        self._calls.append(name)
        return getattr(self._inner, name)


@dataclass
class World:
    """A resource server in process, with ways to grant, write and call."""

    store: SqliteStore
    read_services: ReadableHome
    connections: dict[str, str]
    log: Log
    calls: list[str] = field(default_factory=list)
    handles: HandleMaker = field(init=False)

    def __post_init__(self) -> None:
        self.handles = HandleMaker(self.read_services.sealer)

    def access(self, *grants: Grant) -> Access:
        is_package = len(grants) > 1
        kind = TokenKind.MCP_PACKAGE if is_package else TokenKind.CLIENT
        return Access(kind, "me", "agent", grants, package_id="pkg_1" if is_package else None)

    def port(self, access: Access, via: str = "test") -> ResourceServer:
        return CountedPort(
            LocalResourceServer(self.read_services, ReadContext(access, RequestId("req_1"), via)), self.calls
        )

    async def call(self, access: Access, tool: str, **arguments: Any) -> Outcome:
        self.calls.clear()
        outcome = await call(tool, arguments, self.reader(access))
        # As a client sees it: parts that are encoded already are plain values there.
        seen = msgspec.json.decode(msgspec.json.encode(outcome.structured))
        return msgspec.structs.replace(outcome, structured=seen)

    def reader(self, access: Access) -> Reader:
        return Reader(self.port(access), self.handles, "https://gate.example")

    async def add(self, connection: str, stream: str, *rows: dict[str, Any]) -> None:
        lines = [msgspec.json.encode({"data": row, "emitted_at": "2026-09-01T00:00:00Z"}) for row in rows]
        report = await self.store.ingest(
            Batch(self.connections[connection], stream, lines, NOW, on_invalid=OnInvalid.KEEP)
        )
        assert report.errors == ()

    def grant(
        self, *names: str, streams: Sequence[StreamGrant] | None = None, grant_id: str = "grt_1"
    ) -> Grant:
        """Grant whole streams of the named connections, which are of one kind."""
        kind = "chat" if names and "chat" in names[0].casefold() else "mail"
        ids = tuple(self.connections[name] for name in names)
        chat = ("id", "channel", "author", "sent_at", "text", "reactions")
        whole = {
            "mail": (
                StreamGrant("messages", ids, MAIL),
                StreamGrant("attachments", ids, ("id", "message_id", "name", "file")),
            ),
            "chat": (StreamGrant("messages", ids, chat), StreamGrant("channels", ids, ("id", "name"))),
        }
        return Grant(
            id=grant_id,
            subject_id="me",
            client_id="agent",
            source_id=f"https://demo.example/connectors/{kind}",
            source_kind="connector",
            declaration_version="1",
            purpose_code="https://pdpp.dev/purpose/agent_context",
            access_mode=AccessMode.CONTINUOUS,
            streams=tuple(streams or whole[kind]),
            issued_at=NOW,
        )


async def _nothing_logged(_grant: str, _day: int) -> int:
    return 0


@asynccontextmanager
async def world(accounts: Sequence[StitchedAccount] = SMALL) -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as directory:
        home = open_home(Path(directory) / "home")
        store = SqliteStore(home, lambda: NOW)
        log = Log()
        read_services = ReadableHome(
            store,
            sealer=RingSealer(KeyRing(SealKey(b"w" * 64))),
            discloser=log,
            budgets=DailyBudgets(FileCounter(home, _nothing_logged), clock=lambda: NOW),
            clock=lambda: NOW,
            rules=Rules(),
        )
        try:
            yield World(store, read_services, dict(await fill(store, accounts)), log)
        finally:
            await store.close()
