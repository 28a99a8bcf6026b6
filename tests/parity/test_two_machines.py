"""Two processes with separate directories serve one home of a database: what one does, the next request at the other sees."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from headgate.audit.chain import read_notes, verify
from headgate.errors import RateLimited
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
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Machines:
    """Two programs on one home, and a connection with ten messages."""

    one: LocalProgram
    two: LocalProgram
    connection: ConnectionId

    async def token_until(self, end: int) -> str:
        """Grant the messages until a time."""
        given = grant(stream_grant("messages", "id", connections=(self.connection,)))
        return await self.one.grant(replace(given, expires_at=end))


@asynccontextmanager
async def machines(place: Path, **more: str) -> AsyncGenerator[Machines]:
    flags = {"store_url": postgres.database_url(), "store_home": str(place), **more}
    async with local_program(place / "one", **flags) as one:
        # The keys of a home are the same on every machine.
        shutil.copytree(place / "one" / "home" / "keys", place / "two" / "home" / "keys")
        (place / "two" / "home").chmod(0o700)
        async with local_program(place / "two", **flags) as two:
            await one.declare("mail", declaration())
            connection = ConnectionId(await one.connect("mail"))
            lines = [
                record(f"m{n}", subject=f"roof {n}", sent_at=f"2026-03-{n + 1:02}T00:00:00Z")
                for n in range(10)
            ]
            await one.ingest(connection, "messages", lines)
            yield Machines(one, two, connection)


async def test_a_revocation_on_one_machine_ends_the_next_request_on_the_other(tmp_path: Path):
    async with machines(tmp_path) as at:
        for number in range(20):
            given = grant(stream_grant("messages", "id", connections=(at.connection,)), id_=f"grt_{number}")
            token = await at.one.grant(given)
            assert (await at.two.get(f"{RECORDS}?limit=1", token)).status == 200
            assert await at.one.services.ledger.revoke(GrantId(f"grt_{number}"), at.one.clock.at)
            refused = await at.two.get(f"{RECORDS}?limit=1", token)
            assert (refused.status, refused.body["error"]["code"]) == (403, "grant_revoked")


async def test_a_daily_limit_holds_over_both_machines(tmp_path: Path):
    async with machines(tmp_path) as at:
        given = grant(stream_grant("messages", "id", connections=(at.connection,)))
        token = await at.one.grant(given, daily_records=6)
        statuses = [
            (await machine.get(f"{RECORDS}?limit=2", token)).status
            for machine in (at.one, at.two, at.one, at.two, at.one)
        ]
        assert statuses == [200, 200, 200, 429, 429]


async def test_a_page_begun_on_one_machine_goes_on_at_the_other(tmp_path: Path):
    async with machines(tmp_path) as at:
        token = await at.one.grant(grant(stream_grant("messages", "id", connections=(at.connection,))))
        turns, path, seen = [at.one, at.two] * 3, f"{RECORDS}?limit=3", []
        for machine in turns:
            page = (await machine.get(path, token)).body
            seen += [one["id"] for one in page["data"]]
            if not page["has_more"]:
                break
            path = f"{RECORDS}?limit=3&cursor={page['next_cursor']}"
        assert sorted(seen) == sorted(f"m{n}" for n in range(10))


async def test_the_reads_of_both_machines_are_in_one_log_that_is_whole(tmp_path: Path):
    async with machines(tmp_path) as at:
        token = await at.one.grant(grant(stream_grant("messages", "id", connections=(at.connection,))))
        for machine in (at.one, at.two, at.one, at.two):
            assert (await machine.get(f"{RECORDS}?limit=1", token)).status == 200
            await machine.services.pump.flush()
        for machine in (at.one, at.two):
            verdict = await verify(machine.services.ledger, read_notes(machine.services.home))
            assert (verdict.problem, verdict.unchecked) == ("", "")
            assert verdict.count >= 4


async def test_what_is_declared_and_stored_on_one_machine_is_read_on_the_other(tmp_path: Path):
    async with machines(tmp_path) as at:
        other = ConnectionId(await at.two.connect("mail", "second"))
        await at.two.ingest(
            other, "messages", [record("new", subject="gutter", sent_at="2026-04-01T00:00:00Z")]
        )
        listed = (await at.one.get(f"{RECORDS}?limit=100", at.one.owner)).body["data"]
        assert len(listed) == 11
        found = (await at.one.get("/v1/search?q=gutter", at.one.owner)).body["data"]
        assert len(found) == 1


async def test_passwords_are_guessed_no_more_often_at_two_machines_than_at_one(tmp_path: Path):
    async with machines(tmp_path) as at:
        outcomes = [
            await _is_allowed(machine.services.limits.sign_ins.check("203.0.113.9", None))
            for machine in (at.one, at.two, at.one, at.two, at.one, at.two, at.one)
        ]
        assert outcomes == [True] * 5 + [False] * 2
        # All networks together have a limit too.
        outcomes = [
            await _is_allowed(at.one.services.limits.sign_ins.check(f"198.51.100.{n}", None))
            for n in range(10)
        ]
        outcomes += [
            await _is_allowed(at.two.services.limits.sign_ins.check(f"192.0.2.{n}", None)) for n in range(20)
        ]
        assert 15 <= sum(outcomes) < 20


async def _is_allowed(check: Awaitable[None]) -> bool:
    try:
        await check
    except RateLimited:
        return False
    return True


async def test_clients_register_no_more_often_at_two_machines_than_at_one(tmp_path: Path):
    document = json.dumps({"redirect_uris": ["https://agent.example/back"], "client_name": "Agent"}).encode()
    async with machines(tmp_path) as at:
        statuses = [
            (await machine.ask("POST", "/oauth/register", body=document, client="203.0.113.9")).status
            for machine in (at.one, at.two) * 16
        ]
        assert set(statuses) == {201, 429}
        assert statuses.count(201) == 16


async def test_a_grant_that_ended_by_the_clock_of_one_machine_has_ended_at_one_whose_clock_is_behind(
    tmp_path: Path,
):
    async with machines(tmp_path) as at:
        token = await at.token_until(at.one.clock.at + 100 * SECOND_US)
        assert [(await machine.get(RECORDS, token)).status for machine in (at.one, at.two)] == [200, 200]
        at.one.clock.at += 200 * SECOND_US
        for machine in (at.one, at.two):
            refused = await machine.get(RECORDS, token)
            assert (refused.status, refused.body["error"]["code"]) == (403, "grant_expired")


async def test_the_time_of_one_machine_reaches_the_others_within_a_second(tmp_path: Path):
    async with machines(tmp_path) as at:
        token = await at.token_until(at.one.clock.at + 100 * SECOND_US)
        at.one.clock.at += 200 * SECOND_US
        # The machine that is ahead is never asked for this grant.
        assert (await at.one.get(RECORDS, at.one.owner)).status == 200
        await at.one.services.latest.share()
        assert (await at.two.get(RECORDS, token)).body["error"]["code"] == "grant_expired"
        # It stays so when the clock that was ahead goes back, and on a machine that starts later.
        at.one.clock.at -= 200 * SECOND_US
        assert (await at.one.get(RECORDS, token)).body["error"]["code"] == "grant_expired"
        flags = {"store_url": postgres.database_url(), "store_home": str(tmp_path)}
        async with local_program(tmp_path / "three", **flags) as three:
            assert (await three.get(RECORDS, token)).body["error"]["code"] == "grant_expired"
