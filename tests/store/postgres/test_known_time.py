"""The latest time that machines of a home let each other know."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headgate.store.engines.postgres import PostgresLedger
from headgate.store.postgres.migrate import open_place
from tests import postgres

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_DIGEST = bytes(32)


@pytest.mark.parametrize("look_up", ["version", "holder"])
def test_every_look_up_of_admission_learns_the_latest_time_of_another_machine(tmp_path: Path, look_up: str):
    here, there = (open_place(postgres.database_url(), str(tmp_path)) for _ in range(2))

    async def run() -> None:
        ledger, other = PostgresLedger(here), PostgresLedger(there)
        for n in range(1, 6):
            await other.raise_latest_time(n)
            await (ledger.version() if look_up == "version" else ledger.holder(_DIGEST))
            assert ledger.latest_time == n
        await other.close()
        await ledger.close()

    asyncio.run(run())


def test_a_machine_that_starts_knows_the_latest_time_of_others(tmp_path: Path):
    place = open_place(postgres.database_url(), str(tmp_path))

    async def run() -> None:
        other = PostgresLedger(place)
        await other.raise_latest_time(7)
        await other.raise_latest_time(5)
        await other.close()

    asyncio.run(run())
    assert open_place(postgres.database_url(), str(tmp_path)).latest_time.value == 7
