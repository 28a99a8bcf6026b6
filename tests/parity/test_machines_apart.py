"""Machines that serve one home and differ: in their clocks, and in what they have noted of the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.audit.chain import load_audit_key, read_head, read_notes, verify
from headgate.audit.pruning import prune
from headgate.model.ids import GrantId
from headgate.model.instants import DAY_US
from tests import postgres
from tests.in_process import LocalProgram, record
from tests.parity.test_two_machines import RECORDS, Machines, machines
from tests.policy.worlds import grant, stream_grant

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]
HOUR_US = 3600 * 1_000_000


async def granted(at: Machines, name: str = "grt_1", **more: int) -> str:
    fields = ("id", "subject", "sent_at")
    return await at.one.grant(
        grant(stream_grant("messages", *fields, connections=(at.connection,)), id_=name), **more
    )


async def assert_log_is_whole(*programs: LocalProgram) -> None:
    for program in programs:
        await program.services.pump.flush()
    for program in programs:
        verdict = await verify(program.services.ledger, read_notes(program.services.home))
        assert (verdict.problem, verdict.unchecked) == ("", "")


async def test_machines_whose_clocks_are_hours_apart_lose_double_and_hide_nothing(tmp_path: Path):
    async with machines(tmp_path) as at:
        token = await granted(at)
        at.two.clock.at -= 5 * HOUR_US
        mark, keys = "beginning", [f"m{n}" for n in range(10)]
        for n in range(6):
            machine, other = (at.one, at.two) if n % 2 else (at.two, at.one)
            await machine.ingest(at.connection, "messages", [record(f"s{n}", sent_at="2026-05-01T00:00:00Z")])
            keys.append(f"s{n}")
            # What is new for a client is a matter of numbers, not of clocks.
            path = f"{RECORDS}?connection_id={at.connection}&limit=100&changes_since={mark}"
            body = (await other.get(path, token)).body
            assert [row["id"] for row in body["data"]][-1] == f"s{n}"
            mark = body["next_changes_since"]
            listed = (await other.get(f"{RECORDS}?limit=100", token)).body["data"]
            assert sorted(row["id"] for row in listed) == sorted(keys)
        await assert_log_is_whole(at.one, at.two)


async def test_a_grant_that_was_revoked_or_issued_by_a_clock_ahead_counts_at_one_behind(tmp_path: Path):
    async with machines(tmp_path) as at:
        at.one.clock.at += 5 * HOUR_US
        token = await granted(at)
        assert (await at.two.get(RECORDS, token)).status == 200
        assert await at.one.services.ledger.revoke(GrantId("grt_1"), at.one.clock.at)
        assert (await at.two.get(RECORDS, token)).code == "grant_revoked"


async def test_a_daily_limit_is_counted_for_the_day_of_each_machine_s_clock(tmp_path: Path):
    async with machines(tmp_path) as at:
        token = await granted(at, daily_records=4)
        at.two.clock.at += DAY_US
        statuses = [
            (await machine.get(f"{RECORDS}?limit=2", token)).status for machine in [at.one, at.two] * 3
        ]
        assert statuses == [200, 200, 200, 200, 429, 429]
        await assert_log_is_whole(at.one, at.two)


async def read_and_note(program: LocalProgram, token: str) -> None:
    assert (await program.get(f"{RECORDS}?limit=1", token)).status == 200
    await program.services.pump.flush()


async def test_what_another_machine_has_pruned_is_no_damage_to_one_that_noted_the_middle_of_it(
    tmp_path: Path,
):
    async with machines(tmp_path) as at:
        token = await granted(at)
        await read_and_note(at.two, token)
        for _ in range(3):
            await read_and_note(at.one, token)
        home = at.one.services.home
        now = at.one.clock.at + DAY_US
        key, path = load_audit_key(home), tmp_path / "old"
        pruned = await prune(home, at.one.services.ledger, key, before=now, path=path, now=now)
        noted = read_head(at.two.services.home)
        assert noted is not None
        assert pruned.first <= noted.seq < pruned.last
        await assert_log_is_whole(at.one, at.two)
        # The next read at the other machine goes on with the chain as it is.
        await read_and_note(at.two, token)
        await assert_log_is_whole(at.two, at.one)


async def test_a_chain_that_ends_before_what_either_machine_has_noted_is_found_at_that_machine(
    tmp_path: Path,
):
    async with machines(tmp_path) as at:
        token = await granted(at)
        await read_and_note(at.one, token)
        await read_and_note(at.two, token)
        ledger = at.two.services.ledger
        await ledger.connections.log(  # type: ignore[attr-defined]
            lambda database: database.run("DELETE FROM audit WHERE home=:home AND seq = 2")
        )
        found = await verify(ledger, read_notes(at.two.services.home))
        assert "ends before entry 2" in found.problem
