"""F3 with records in PostgreSQL: the disk of its tables is full to the last byte, or that of its write-ahead log."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest

from headgate.audit.activity import all_entries, read_event
from headgate.auth.grants import OWNER
from headgate.auth.keys import digest_of
from headgate.home import home_in, open_home
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.engines import commands
from headgate.store.engines.postgres import PostgresLedger
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.hostile.store.small_disks import fill_disk, free_disk, small_disk
from tests.http_clients import HttpAnswer, ask_once
from tests.on_socket import MAIL, ServedProgram, headgate, line, served_program
from tests.policy.worlds import grant, stream_grant
from tests.store.copies import quiet

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
GRANTS = 40
#: The operating system goes on: what was written is there after the server ended.
_DURABLE = ("fsync=off", "shared_buffers=16MB", "max_connections=40", "autovacuum=off")
_T = TypeVar("_T")


@dataclass
class Crowded:
    """A served home whose database lies on a small disk, with a connection and clients that hold a grant each."""

    program: ServedProgram
    server: postgres.Server
    disk: Path
    url: str
    connection: str
    #: By the id of their grant.
    tokens: dict[str, str] = field(default_factory=dict)
    stored: int = 0
    #: The ids of requests that were answered with records.
    answered: list[str] = field(default_factory=list)
    _names: Iterator[int] = field(default_factory=count)

    def read(self, token: str, path: str = f"{MAIL}?limit=2") -> HttpAnswer:
        name = f"read-{next(self._names)}"
        answer = ask_once(self.program.address, "GET", path, token, headers={"Request-Id": name})
        if answer.status == 200:
            self.answered.append(name)
        return answer

    def store(self, size: int = 100) -> HttpAnswer:
        """Send a batch; what is acknowledged is counted."""
        number = next(self._names)
        lines = [line(f"k{number}-{n}", body=f"{number} {n} " + "x" * 500) for n in range(size)]
        path = f"/v1/ingest/messages?connection_id={self.connection}&on_invalid=keep"
        answer = self.program.ask("POST", path, self.program.owner, b"\n".join(lines))
        self.stored += size if answer.status == 200 else 0
        return answer

    def store_until_refused(self) -> HttpAnswer:
        return next(answer for _ in count() if (answer := self.store()).status != 200)

    def revoke(self, grant_id: str) -> HttpAnswer:
        return self.program.ask("POST", f"/grants/{grant_id}/revoke", self.program.owner)

    def readiness(self) -> str:
        return self.program.ask("GET", "/readyz").body["status"]

    def count(self) -> int:
        path = "/v1/streams/messages/aggregate?metric=count"
        return self.program.ask("GET", path, self.program.owner).body["value"]


def with_ledger(url: str, work: Callable[[PostgresLedger], Awaitable[_T]]) -> _T:
    async def run() -> _T:
        ledger = PostgresLedger(open_place(url, "main"), connections=1)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(run())


def issue_grants(url: str, connection: str) -> dict[str, str]:
    """Give so many clients a grant that their rows fill more than a page."""
    tokens = {f"grt_{n}": f"hg_client_{n}" for n in range(GRANTS)}

    async def issue(ledger: PostgresLedger) -> None:
        for grant_id, token in tokens.items():
            given = grant(
                stream_grant("messages", "id", "body", connections=(ConnectionId(connection),)), id_=grant_id
            )
            await ledger.issue(
                [IssuedGrant(given, daily_records=1_000)],
                IssuedToken(digest_of(token), TokenKind.CLIENT, OWNER, 0, given.client_id, given.id),
            )

    with_ledger(url, issue)
    return tokens


@contextmanager
def crowded(server: postgres.Server, disk: Path, place: Path, make: str) -> Generator[Crowded]:
    """Serve a home whose database is made by a statement."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in make.split(";"):
            connection.execute(statement)
    url = server.url_of("headgate")
    settings = place / "etc" / "headgate" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'store_url = "{url}"\n', encoding="utf-8")
    with served_program(place) as program:
        made = Crowded(program, server, disk, url, program.connect())
        assert made.store(30).status == 200
        made.tokens = issue_grants(url, made.connection)
        yield made
    assert_nothing_is_lost(made)


def assert_nothing_is_lost(made: Crowded) -> None:
    """Check every record, and that the log is whole and has each answer once; the next command takes over journals."""
    verified = headgate(made.program.place, "--home", "home", "audit", "verify")
    assert verified.out.startswith("The log is whole"), verified

    async def logged(ledger: PostgresLedger) -> Counter[Any]:
        return Counter([read_event(entry).request_id async for entry in all_entries(ledger)])

    times = with_ledger(made.url, logged)
    assert {name: times[name] for name in made.answered} == dict.fromkeys(made.answered, 1)
    home = home_in(open_home(made.program.place / "home"), made.url, "main")
    assert commands.commands_of(home).check(quiet).damages == ()
    assert commands.commands_of(home).stats().record_count == made.stored


@contextmanager
def running(disk: Path, *settings: str, options: tuple[str, ...] = ()) -> Generator[postgres.Server]:
    postgres.give_to_server(disk)
    server = postgres.Server(disk.parent / "server", (*_DURABLE, *settings))
    server.folder.mkdir()
    server.make(*options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def place() -> Generator[Path]:
    """A directory that the server's account can reach."""
    made = Path(tempfile.mkdtemp(prefix="headgate-full-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_without_room_for_tables_records_are_read_and_grants_end_and_it_goes_on_once_there_is_room(
    place: Path,
):
    with small_disk(place / "disk", 20) as disk, running(disk) as server:
        (disk / "space").mkdir()
        postgres.give_to_server(disk / "space")
        make = f"CREATE TABLESPACE small LOCATION '{disk}/space'; CREATE DATABASE headgate TABLESPACE small"
        with crowded(server, disk, place / "program", make) as at:
            first = [at.read(token).status for token in at.tokens.values()]
            assert set(first) == {200}
            fill_disk(disk)
            refused = at.store_until_refused()
            assert (refused.status, refused.code) == (507, "storage_full")
            assert at.readiness() == "degraded"
            assert {at.read(token).status for token in at.tokens.values()} == {200}
            assert at.count() == at.stored
            assert at.read(at.tokens["grt_0"], "/v1/search?q=x").status == 200
            assert {at.revoke(grant_id).status for grant_id in at.tokens} == {200}
            assert {at.read(token).code for token in at.tokens.values()} == {"grant_revoked"}
            assert at.readiness() == "degraded"
            free_disk(disk)
            assert at.store().status == 200
            assert at.readiness() == "ready"
            assert at.count() == at.stored


def test_without_room_for_the_write_ahead_log_everything_is_refused_until_the_server_runs_again(place: Path):
    options = (f"--waldir={place}/disk/wal", "--wal-segsize=1")
    with (
        small_disk(place / "disk", 8) as disk,
        running(disk, "max_wal_size=2MB", "min_wal_size=2MB", options=options) as server,
        crowded(server, disk, place / "program", "CREATE DATABASE headgate") as at,
    ):
        token = at.tokens["grt_0"]
        assert at.read(token).status == 200
        fill_disk(disk)
        assert at.store_until_refused().code in {"storage_unusable", "storage_full"}
        # PostgreSQL ends itself when its log has no room, and cannot start again without.
        server.wait()
        for answer in (at.read(token), at.revoke("grt_0"), at.store(), at.program.ask("GET", "/readyz")):
            assert (answer.status, answer.code) == (503, "storage_unusable")
        free_disk(disk)
        server.start()
        assert at.read(token).status == 200
        assert at.revoke("grt_0").status == 200
        assert at.read(token).code == "grant_revoked"
        assert at.store().status == 200
        assert at.count() == at.stored
