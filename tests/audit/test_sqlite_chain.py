"""The chain in SQLite's file: what is changed there, past the program, and what an older version wrote there."""

from __future__ import annotations

import asyncio
import hmac
from functools import partial
from pathlib import Path

import apsw
import pytest

from headgate.audit import journal as journals
from headgate.audit.chain import NotedChain, read_head, verify, write_head
from headgate.home import Home, open_home
from headgate.model.ledger import ChainHead
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.ledger.ledger import Ledger
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import open_writer
from headgate.store.sqlite.migrate import all_migrations, migrate
from tests.audit.chains import KEY, disclosure, entries_of, fill
from tests.store.ledgers import LEDGERS, LedgerHome

SQLITE = partial(LedgerHome, open_over=LEDGERS["sqlite"])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def test_the_log_refuses_to_be_changed_through_sql(home: Home):
    SQLITE(home).run(lambda ledger: fill(ledger, home, 2))
    database = apsw.Connection(str(home.path / FILE))
    for statement in ("UPDATE audit SET events = x'00'", "DELETE FROM audit WHERE seq = 2"):
        with pytest.raises(apsw.ConstraintError, match="only grows"):
            database.execute(statement)
    database.close()


SWAPPED = "substr(events, instr(events, x'0a') + 1) || x'0a' || substr(events, 1, instr(events, x'0a') - 1)"


@pytest.mark.parametrize(
    ("together", "damage", "broken_at", "problem"),
    [
        (
            1,
            "UPDATE audit SET events = CAST(replace(events, 'r3', 'r4') AS BLOB) WHERE seq = 4",
            4,
            "changed",
        ),
        (1, "DELETE FROM audit WHERE seq = 3", 3, "missing"),
        (1, "DELETE FROM audit WHERE seq > 7", 8, "ends before"),
        (1, "UPDATE audit SET seal = zeroblob(32) WHERE seq = 10", 10, "changed"),
        (5, "UPDATE audit SET events = CAST(replace(events, 'r7', 'r8') AS BLOB)", 6, "one of 6 to 10"),
        (
            5,
            "UPDATE audit SET events = substr(events, instr(events, x'0a') + 1) WHERE seq = 10",
            6,
            "missing",
        ),
        (2, f"UPDATE audit SET events = CAST({SWAPPED} AS BLOB) WHERE seq = 4", 3, "one of 3 to 4"),
        (5, "DELETE FROM audit WHERE seq = 5", 1, "missing"),
        (5, "DELETE FROM audit WHERE seq = 10", 6, "ends before"),
        (5, "UPDATE audit SET seq = 11 WHERE seq = 10", 6, "missing"),
    ],
)
def test_what_was_changed_behind_its_back_is_noticed(
    home: Home, together: int, damage: str, broken_at: int, problem: str
):
    SQLITE(home).run(lambda ledger: fill(ledger, home, 10, together=together))
    database = apsw.Connection(str(home.path / FILE))
    database.execute("DROP TRIGGER audit_keeps; DROP TRIGGER audit_stays")
    database.execute(damage)
    database.close()

    async def check(ledger: Ledger):
        return await verify(ledger, NotedChain(KEY, read_head(home)))

    verdict = SQLITE(home).run(check)
    assert not verdict.is_whole
    assert verdict.broken_at == broken_at
    assert problem in verdict.problem


def test_a_home_of_before_whose_events_have_a_seal_each_goes_on_with_blocks(tmp_path: Path):
    """Events that once had a seal each are blocks of one."""
    home = open_home(tmp_path / "home")
    before = open_writer(home.path / FILE)
    migrate(before, all_migrations()[:3])
    events = [journals._encode(disclosure(number)) for number in range(4)]
    seals = [bytes(32)]
    for event in events:
        seals.append(hmac.digest(KEY, seals[-1] + event, "sha256"))
    rows = list(zip(range(1, 5), events, seals[1:], strict=True))
    before.many("INSERT INTO audit(seq, event, seal) VALUES(?, ?, ?)", rows)
    before.db.close()
    asyncio.run(SqliteStore(home, lambda: 0).close())
    write_head(home, ChainHead(4, seals[-1]))

    async def work(ledger: Ledger):
        noted = read_head(home)
        await fill(ledger, home, 3)
        return await verify(ledger, NotedChain(KEY, noted)), [
            entry.event for entry in await entries_of(ledger)
        ]

    verdict, found = SQLITE(home).run(work)
    assert (verdict.is_whole, verdict.count) == (True, 7)
    assert found == events + events[:3]
