"""Reads from a replica, with two real servers: answers are those of the primary, whatever becomes of the replica."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from headgate.model.hiding import HidingRule, RuleId, RuleKind
from headgate.model.ids import ConnectionId, GrantId
from tests import postgres
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]
RECORDS = "/v1/streams/messages/records"
#: Every kind of read that a replica may answer.
READS = (
    f"{RECORDS}?limit=3",
    f"{RECORDS}/m3",
    f"{RECORDS}?filter[size][gt]=5&limit=3",
    f"{RECORDS}/m3/field-window?field=body&offset_chars=2&limit_chars=4",
    "/v1/streams/messages/aggregate?metric=sum&field=size",
    "/v1/streams/messages/aggregate?metric=count",
    "/v1/search?q=roof",
)
_SECOND_US = 1_000_000
_TABLES_OF_READS = {"record", "shelf", "word_segment"}
_SETTINGS = (
    "shared_buffers=16MB",
    "max_connections=80",
    "autovacuum=off",
    "log_statement=all",
    "log_line_prefix=%a: ",
)


@dataclass(frozen=True, slots=True)
class Servers:
    """A primary server, and one that follows it."""

    primary: postgres.Server
    replica: postgres.Server

    def reads_of_records(self) -> int:
        """Count the statements on records that the replica was sent."""
        return sum(bool(_TABLES_OF_READS & set(re.findall(r"\w+", sent))) for sent in self.sent_to_replica())

    def sent_to_replica(self) -> list[str]:
        """Give every statement that the program sent to the replica."""
        log = (self.replica.folder / "log").read_text(encoding="utf-8", errors="replace")
        entries = re.split(r"^(?=[^\n:]*: [A-Z]+: )", log, flags=re.MULTILINE)
        return [entry for entry in entries if entry.startswith("headgate-replica:")]

    async def caught_up(self) -> None:
        """Wait until the replica has replayed everything that the primary wrote."""
        with psycopg.connect(self.primary.url) as primary, psycopg.connect(self.replica.url) as replica:
            end = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
            async with asyncio.timeout(30):
                question = "SELECT 1 WHERE pg_last_wal_replay_lsn() >= %s::pg_lsn"
                while replica.execute(question, end).fetchone() is None:  # noqa: ASYNC110 - nothing tells when
                    await asyncio.sleep(0.01)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let the replica receive what is written, and not show it."""
        with psycopg.connect(self.replica.url, autocommit=True) as replica:
            replica.execute("SELECT pg_wal_replay_pause()")
            while replica.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
                pass
            try:
                yield
            finally:
                replica.execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module")
def servers() -> Generator[Servers]:
    folders = [Path(tempfile.mkdtemp(prefix="headgate-pg-")) for _ in range(2)]
    primary, replica = (postgres.Server(folder, _SETTINGS) for folder in folders)
    primary.make()
    primary.start()
    replica.follow(primary)
    replica.start()
    try:
        yield Servers(primary, replica)
    finally:
        for server in (replica, primary):
            server.kill()
            shutil.rmtree(server.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class World:
    """A program with a replica, another of the same home without one, a client's token, and ten messages."""

    servers: Servers
    program: LocalProgram
    other: LocalProgram
    connection: ConnectionId
    token: str

    async def put(self, program: LocalProgram, key: str, subject: str) -> None:
        line = record(key, subject=subject, sent_at="2026-04-01T00:00:00Z")
        await program.ingest(self.connection, "messages", [line])

    async def settled(self) -> None:
        """Wait until nothing more is written by itself, and the replica has everything and is used."""
        async with asyncio.timeout(30):
            stores = [one.services.store for one in (self.program, self.other)]
            while not all(one.is_settled for one in stores):  # noqa: ASYNC110 - nothing tells when
                await asyncio.sleep(0.02)
        await self.servers.caught_up()
        await self.round()

    async def round(self) -> None:
        rounds = self.program.services.rounds
        assert rounds is not None
        await rounds.round()

    async def get(self, path: str) -> Any:
        answer = await self.program.get(path, self.token)
        assert answer.status == 200, answer.content
        return answer.body

    async def keys(self) -> set[str]:
        return {one["id"] for one in (await self.get(f"{RECORDS}?limit=100"))["data"]}


@asynccontextmanager
async def world(servers: Servers, place: Path) -> AsyncGenerator[World]:
    flags = {"store_url": servers.primary.url, "store_home": str(place)}
    async with (
        local_program(place / "one", **flags, replica_url=servers.replica.url) as program,
        local_program(place / "two", **flags) as other,
    ):
        await program.declare("mail", declaration())
        connection = ConnectionId(await program.connect("mail"))
        fields = "id", "subject", "body", "size", "sent_at"
        token = await program.grant(grant(stream_grant("messages", *fields, connections=(connection,))))
        made = World(servers, program, other, connection, token)
        lines = [
            record(f"m{n}", subject=f"roof {n}", body="a long text", size=n, sent_at=f"2026-03-{n + 1:02}T00:00:00Z")
            for n in range(10)
        ]  # fmt: skip
        await program.ingest(connection, "messages", lines)
        await made.settled()
        yield made


async def test_reads_are_answered_by_the_replica_as_the_primary_answers_them(
    servers: Servers, tmp_path: Path
):
    async with world(servers, tmp_path) as at:
        with servers.paused():
            # The primary answers what is newer.
            await at.put(at.program, "new", "roof")
            expected = [await at.get(path) for path in READS]
        await at.settled()
        for path, answer in zip(READS, expected, strict=True):
            before = servers.reads_of_records()
            assert _shown(await at.get(path)) == _shown(answer), path
            assert servers.reads_of_records() > before, path


def _shown(body: Any) -> Any:
    """Leave out what differs between two answers of one server: seals with a random part, and times of answers."""
    if isinstance(body, list):
        return [_shown(one) for one in cast("list[Any]", body)]
    if not isinstance(body, dict):
        return body
    members = cast("dict[str, Any]", body).items()
    return {name: _shown(value) for name, value in members if "cursor" not in name and "_at" not in name}


async def test_admission_budgets_catalog_and_changes_are_never_asked_of_the_replica(
    servers: Servers, tmp_path: Path
):
    async with world(servers, tmp_path) as at:
        sent = len(servers.sent_to_replica())
        first = await at.get(f"{RECORDS}?changes_since=beginning")
        assert (await at.get(f"{RECORDS}?changes_since={first['next_changes_since']}"))["data"] == []
        assert not [text for text in servers.sent_to_replica()[sent:] if "record" in text]
        limited = await at.program.grant(
            grant(stream_grant("messages", "id", connections=(at.connection,)), id_="grt_day"),
            daily_records=2,
        )
        statuses = [(await at.program.get(f"{RECORDS}?limit=2", limited)).status for _ in range(2)]
        assert statuses == [200, 429]
        for table in ("token", "grant_issued", "budget", "spent", "audit", "oauth_entry", "owner"):
            assert not [text for text in servers.sent_to_replica() if re.search(rf"\b{table}\b", text)]


@pytest.mark.parametrize("writes", ["program", "other"])
async def test_what_a_machine_stores_and_removes_is_seen_by_the_next_request_while_the_replica_shows_nothing_new(
    servers: Servers, tmp_path: Path, writes: str
):
    async with world(servers, tmp_path) as at:
        writer: LocalProgram = getattr(at, writes)
        with servers.paused():
            for n in range(3):
                await at.put(writer, f"new{n}", "gutter")
                assert f"new{n}" in await at.keys()
                found = await at.get("/v1/search?q=gutter")
                assert len(found["data"]) == n + 1
                counted = await at.get("/v1/streams/messages/aggregate?metric=count")
                assert counted["value"] == 11 + n
            path = f"{RECORDS}/new0?connection_id={at.connection}"
            assert (await writer.ask("DELETE", path, writer.owner)).status in {200, 204}
            assert "new0" not in await at.keys()
        await at.settled()
        before = servers.reads_of_records()
        assert "new0" not in await at.keys()
        assert servers.reads_of_records() > before


@pytest.mark.parametrize("adds", ["program", "other"])
async def test_a_rule_hides_from_the_next_request_on_what_the_replica_still_shows(
    servers: Servers, tmp_path: Path, adds: str
):
    async with world(servers, tmp_path) as at:
        adder: LocalProgram = getattr(at, adds)
        await at.put(at.program, "secret", "private matter")
        await at.settled()
        assert "secret" in await at.keys()
        with servers.paused():
            rule = HidingRule(RuleId("rul_1"), RuleKind.WORDS, "private matter")
            assert await adder.services.store.add_rule(rule, at=at.program.clock.at) == 1
            assert "secret" not in await at.keys()
            assert (await at.program.get(f"{RECORDS}/secret", at.token)).status == 404
            assert (await at.get("/v1/search?q=private"))["data"] == []
            assert (await at.get("/v1/streams/messages/aggregate?metric=count"))["value"] == 10
            with psycopg.connect(servers.replica.url) as replica:
                query = "SELECT count(*) FROM hiding_rule JOIN home USING (home) WHERE name = %s"
                assert replica.execute(query, (str(tmp_path),)).fetchone() == (0,)


async def test_a_revocation_ends_the_next_request_while_the_replica_shows_nothing_new(
    servers: Servers, tmp_path: Path
):
    async with world(servers, tmp_path) as at:
        with servers.paused():
            assert len(await at.keys()) == 10
            assert await at.other.services.ledger.revoke(GrantId("grt_1"), at.program.clock.at)
            refused = await at.program.get(f"{RECORDS}?limit=1", at.token)
            assert (refused.status, refused.body["error"]["code"]) == (403, "grant_revoked")


async def test_a_connection_that_was_removed_is_gone_for_the_next_request(servers: Servers, tmp_path: Path):
    async with world(servers, tmp_path) as at:
        with servers.paused():
            await at.other.services.store.delete_connection(at.connection)
            assert (await at.program.get(f"{RECORDS}?limit=1", at.token)).status != 200
            owners = await at.program.get(f"{RECORDS}?limit=1", at.program.owner)
            assert owners.status == 404 or owners.body["data"] == []


async def test_a_replica_that_lags_more_than_a_second_is_left_alone_until_it_has_caught_up(
    servers: Servers, tmp_path: Path
):
    async with world(servers, tmp_path) as at:
        with servers.paused():
            # No record changes, so the records are the same there: only the time shows that it lags.
            for _ in range(3):
                at.program.clock.at += _SECOND_US
                assert len(await at.keys()) == 10
                await at.round()
            before = servers.reads_of_records()
            assert len(await at.keys()) == 10
            assert servers.reads_of_records() == before
        await at.settled()
        assert len(await at.keys()) == 10
        assert servers.reads_of_records() > before


async def test_no_request_fails_when_the_replica_is_killed_and_it_is_used_again_when_it_is_back(
    servers: Servers, tmp_path: Path
):
    async with world(servers, tmp_path) as at:

        async def read(number: int) -> int:
            return (await at.program.get(READS[number % len(READS)], at.token)).status

        async def read_on(first: int) -> set[int]:
            return {await read(n) for n in range(first, first + 4 * len(READS))}

        reading = [asyncio.create_task(read_on(n)) for n in range(8)]
        served = servers.reads_of_records()
        while servers.reads_of_records() < served + 20:  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.01)
        servers.replica.kill()
        try:
            assert set[int]().union(*await asyncio.gather(*reading)) == {200}
            await at.round()
            assert await read(0) == 200
        finally:
            servers.replica.start()
        await at.settled()
        before = servers.reads_of_records()
        assert await read(0) == 200
        assert servers.reads_of_records() > before


async def test_a_server_starts_while_its_replica_cannot_be_reached(servers: Servers, tmp_path: Path):
    nowhere = f"postgresql://postgres@/postgres?host={tmp_path}"
    flags = {"store_url": servers.primary.url, "replica_url": nowhere, "store_home": str(tmp_path)}
    async with local_program(tmp_path, **flags) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", [record("m", sent_at="2026-03-01T00:00:00Z")])
        listed = await program.get(f"{RECORDS}?limit=1", program.owner)
        assert [one["id"] for one in listed.body["data"]] == ["m"]
