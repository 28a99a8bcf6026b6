"""A program whose connections to its database can be cut, and work that is done once for each statement it needs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.audit.activity import all_entries, read_event
from headgate.audit.chain import read_notes, verify
from headgate.errors import StorageUnusable
from headgate.home import Home, home_in
from headgate.model.ids import ConnectionId
from headgate.store.engines import commands
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.postgres_proxy import Cut, CuttingProxy
from tests.schema.declarations import declaration
from tests.store.copies import quiet

RECORDS = "/v1/streams/messages/records"
SENT_AT = "2026-03-01T00:00:00Z"
RECORD_COUNT = 6
_DONE = frozenset({200, 201, 204})


async def _nothing(_name: str) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """What is done under a name: what it needs first, the request, and a check that is given whether it was done."""

    act: Callable[[str], Awaitable[HttpAnswer]]
    check: Callable[[str, bool], Awaitable[None]]
    prepare: Callable[[str], Awaitable[None]] = _nothing


@dataclass
class Attempt:
    """One attempt at some work, which is cut at one statement."""

    name: str
    proxy: CuttingProxy
    statement: int
    where: Cut
    was_cut: bool = False

    @contextmanager
    def cut(self) -> Generator[None]:
        """Cut within the block."""
        self.proxy.cut_at(self.statement, self.where)
        yield
        self.was_cut = self.proxy.stop_cutting()


def attempts(proxy: CuttingProxy, stride: int) -> Iterator[Attempt]:
    """Cut at one statement after the other until the work needs no more of them.

    Both before the server gets the statement and once it has done it. A stride of 1 is every statement.
    """
    for where in (Cut.BEFORE, Cut.AFTER):
        for number in itertools.count(1, stride):
            attempt = Attempt(f"{where.name.lower()}-{number}", proxy, number, where)
            yield attempt
            if not attempt.was_cut:
                break


@dataclass
class Scene:
    """The program, a connection with records, and a client with a daily limit."""

    program: LocalProgram
    proxy: CuttingProxy
    home: Home
    connection: str
    client: str
    #: The ids of requests that were answered with records.
    answered: list[str] = field(default_factory=list)
    attempts: int = 0
    refusals: int = 0

    async def at_each_statement(self, work: Work, stride: int = 1) -> None:
        """Do some work again and again, cut at another statement each time."""
        for attempt in attempts(self.proxy, stride):
            await work.prepare(attempt.name)
            with attempt.cut():
                answer = await work.act(attempt.name)
            is_done = answer.status in _DONE
            assert is_done or (answer.status, answer.code) == (503, "storage_unusable"), answer.content
            assert is_done or attempt.was_cut
            self.attempts += 1
            self.refusals += not is_done
            await work.check(attempt.name, is_done)

    async def has(self, key: str) -> bool:
        """Say whether a record is stored."""
        answer = await self.program.get(f"{RECORDS}/{key}", self.program.owner)
        assert answer.status in {200, 404}, answer.content
        return answer.status == 200

    async def all_keys(self) -> list[str]:
        """Give the key of every change since the beginning: each record once, if none was doubled."""
        path: str | None = f"{RECORDS}?connection_id={self.connection}&limit=100&changes_since=beginning"
        found: list[str] = []
        while path is not None:
            body = (await self.program.get(path, self.client)).body
            found += [row["id"] for row in body["data"]]
            path = body["links"]["next"]
        return sorted(found)

    async def assert_whole(self) -> None:
        """Check every record, the log, and that it has each answer once."""
        await self.program.services.pump.flush()
        ledger = self.program.services.ledger
        verdict = await verify(ledger, read_notes(self.home))
        assert (verdict.problem, verdict.unchecked) == ("", "")
        logged = Counter([read_event(entry).request_id async for entry in all_entries(ledger)])
        assert {name: logged[name] for name in self.answered} == dict.fromkeys(self.answered, 1)
        assert commands.commands_of(self.home).check(quiet).damages == ()


def url_through(proxy: CuttingProxy) -> str:
    """Write the address of the tests' database through a proxy."""
    return f"postgresql://postgres@/headgate?host={proxy.folder}"


def lines(prefix: str, count: int) -> list[dict[str, Any]]:
    """Make records of mail."""
    return [
        record(f"{prefix}{n}", subject=f"roof {n}", body="gutter " * 900, size=n, sent_at=SENT_AT)
        for n in range(count)
    ]


@asynccontextmanager
async def cut_scene(place: Path, proxy: CuttingProxy) -> AsyncGenerator[Scene]:
    """Run the program over a home of the tests' database."""
    flags = {"store_url": url_through(proxy), "store_home": str(place)}
    async with local_program(place, **flags) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", lines("m", RECORD_COUNT))
        fields = ("id", "subject", "body", "size", "sent_at")
        given = grant(stream_grant("messages", *fields, connections=(ConnectionId(connection),)))
        client = await program.grant(given, daily_records=100_000)
        home = home_in(program.services.home, url_through(proxy), str(place))
        yield Scene(program, proxy, home, connection, client)


async def tolerantly(work: Awaitable[Any]) -> bool:
    """Do something that may be refused because the connection was cut; says whether it was done."""
    try:
        await work
    except StorageUnusable:
        return False
    return True
