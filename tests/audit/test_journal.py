"""Disclosures are never lost once an answer was sent, enter the chain once, and cannot be changed unnoticed."""

from __future__ import annotations

import asyncio
import hmac
import os
import resource
import signal
from functools import partial
from pathlib import Path

import apsw
import msgspec
import pytest

from headgate.audit import journal as journals
from headgate.audit.chain import NotedChain, load_audit_key, read_head, seal_block, verify, write_head
from headgate.audit.journal import Journal
from headgate.audit.pump import take_over
from headgate.audit.report import all_entries, who_read
from headgate.errors import ConfigInvalid, LogUnverifiable, StorageFull
from headgate.home import Home, open_home, write_private
from headgate.model.disclosure import Disclosed, Disclosure
from headgate.model.ids import ConnectionId, FieldName, GrantId, RecordId, RequestId, StreamName
from headgate.model.ledger import ChainHead
from headgate.store.sqlite.database import open_writer
from headgate.store.sqlite.engine import SqliteStore
from headgate.store.sqlite.ledger import SqliteLedger
from headgate.store.sqlite.migrate import all_migrations, migrate
from headgate.store.sqlite.paths import FILE

KEY = b"k" * 32


def disclosure(number: int, outcome: str = "answered") -> Disclosure:
    part = Disclosed(ConnectionId("c"), StreamName("s"), (FieldName("id"),), (RecordId(f"r{number}"),))
    return Disclosure(
        number,
        RequestId(f"q{number}"),
        "client",
        None,
        (GrantId("g"),),
        None,
        "GET /v1",
        outcome,
        10,
        (part,),
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = open_home(tmp_path / "home")
    asyncio.run(SqliteStore(made, lambda: 0).close())
    return made


def with_ledger(home: Home, work):
    async def run():
        ledger = SqliteLedger(home)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(run())


async def fill(ledger: SqliteLedger, home: Home, count: int, *, together: int = 1000) -> None:
    journal = Journal(home)
    for number in range(count):
        journal.write(disclosure(number))
        if (number + 1) % together == 0 or number + 1 == count:
            await flush(journal, ledger, home)
    await journal.close(ledger)


async def flush(journal: Journal, ledger: SqliteLedger, home: Home) -> None:
    while (moved := await journal.flush(ledger, KEY)) is not None:
        write_head(home, moved[0])


def test_what_a_killed_process_had_written_is_taken_over_once(home: Home):
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        written = Journal(home)
        for number in range(50):
            written.write(disclosure(number))
            os.write(write_end, b".")
        signal.pause()
    os.close(write_end)
    received = 0
    while received < 50:
        received += len(os.read(read_end, 50))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read_end)

    async def twice(ledger: SqliteLedger):
        counts = [await take_over(home, ledger, KEY) for _ in range(2)]
        return (
            counts,
            [entry.seq for entry in all_entries(ledger)],
            verify(ledger, NotedChain(KEY, read_head(home))),
        )

    counts, seqs, verdict = with_ledger(home, twice)
    assert counts == [1, 0]
    assert seqs == list(range(1, 51))
    assert verdict.is_whole


def test_a_line_that_was_not_written_to_its_end_is_not_taken_over(home: Home):
    written = Journal(home)
    for number in range(3):
        written.write(disclosure(number))
    written.leave()
    (path,) = (home.path / "journals").iterdir()
    content = path.read_bytes()
    end = content.index(b"\0")
    # What a process leaves that dies in the middle of putting a line there: parts of it, in any order.
    torn = content[:end] + b'{"at":4,"req\0\0\0\0"q4"}\n' + bytes(100)
    path.write_bytes(torn)

    async def work(ledger: SqliteLedger):
        count = await take_over(home, ledger, KEY)
        return count, [msgspec.json.decode(entry.event)["at"] for entry in all_entries(ledger)]

    assert with_ledger(home, work) == (1, [0, 1, 2])


def test_a_line_longer_than_a_file_gets_a_file_of_its_own(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journals, "_FILE_BYTES", 64)

    async def work(ledger: SqliteLedger):
        await fill(ledger, home, 3)
        return [entry.seq for entry in all_entries(ledger)]

    assert with_ledger(home, work) == [1, 2, 3]
    assert list((home.path / "journals").iterdir()) == []


def test_a_journal_that_finds_no_room_says_so_and_leaves_nothing_behind(home: Home):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        with pytest.raises(StorageFull):
            Journal(home).write(disclosure(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list((home.path / "journals").iterdir()) == []
    Journal(home).write(disclosure(1))


def test_a_journal_of_a_living_process_is_left_alone(home: Home):
    living = Journal(home)
    living.write(disclosure(1))

    async def look(ledger: SqliteLedger):
        return await take_over(home, ledger, KEY), len(list(all_entries(ledger)))

    assert with_ledger(home, look) == (0, 0)


def test_a_full_journal_goes_when_its_lines_are_in_the_chain_though_others_keep_coming(
    home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journals, "_FILE_BYTES", 1000)

    async def work(ledger: SqliteLedger):
        journal = Journal(home)
        most = 0
        for number in range(200):
            journal.write(disclosure(number))
            if number % 3 == 2:
                await journal.flush(ledger, KEY)
            most = max(most, len(list((home.path / "journals").iterdir())))
        assert journal.waiting > 0
        while await journal.flush(ledger, KEY) is not None:
            pass
        await journal.close(ledger)
        return most, [msgspec.json.decode(entry.event)["at"] for entry in all_entries(ledger)]

    most, numbers = with_ledger(home, work)
    assert 1 < most <= 3
    assert numbers == list(range(200))


def test_lines_that_are_handed_over_twice_enter_the_chain_once(home: Home):
    async def work(ledger: SqliteLedger):
        lines = [journals._encode(disclosure(number)) + b"\n" for number in range(3)]
        await ledger.append("j", 0, b"".join(lines[:2]), partial(seal_block, KEY))
        await ledger.append("j", 0, b"".join(lines), partial(seal_block, KEY))
        await ledger.append("j", len(lines[0]), b"".join(lines[1:]), partial(seal_block, KEY))
        return [entry.event for entry in all_entries(ledger)], ledger.spent(GrantId("g"), 0)

    events, spent = with_ledger(home, work)
    assert len(events) == spent == 3


def test_a_torn_line_is_left_out(home: Home):
    place = journals.journals(home) / "1-dead.journal"
    place.write_bytes(journals._encode(disclosure(1)) + b'\n{"at":1')

    async def work(ledger: SqliteLedger):
        await take_over(home, ledger, KEY)
        return len(list(all_entries(ledger)))

    assert with_ledger(home, work) == 1
    assert not place.exists()


def test_the_log_refuses_to_be_changed_through_sql(home: Home):
    with_ledger(home, lambda ledger: fill(ledger, home, 2))
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
    with_ledger(home, lambda ledger: fill(ledger, home, 10, together=together))
    database = apsw.Connection(str(home.path / FILE))
    database.execute("DROP TRIGGER audit_keeps; DROP TRIGGER audit_stays")
    database.execute(damage)
    database.close()

    async def check(ledger: SqliteLedger):
        return verify(ledger, NotedChain(KEY, read_head(home)))

    verdict = with_ledger(home, check)
    assert not verdict.is_whole
    assert verdict.broken_at == broken_at
    assert problem in verdict.problem


def test_a_chain_that_was_sealed_anew_is_not_the_one_whose_end_was_noted(home: Home):
    with_ledger(home, lambda ledger: fill(ledger, home, 10, together=5))
    noted = read_head(home)
    assert noted is not None
    amid = ChainHead(noted.seq - 2, noted.seal)

    async def check(ledger: SqliteLedger):
        return [
            verify(ledger, NotedChain(KEY, head)).problem for head in (noted, ChainHead(10, b"x" * 32), amid)
        ]

    whole, *others = with_ledger(home, check)
    assert whole == ""
    assert all("not the one whose end was noted" in problem for problem in others)


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

    async def work(ledger: SqliteLedger):
        noted = read_head(home)
        await fill(ledger, home, 3)
        return verify(ledger, NotedChain(KEY, noted)), [entry.event for entry in all_entries(ledger)]

    verdict, found = with_ledger(home, work)
    assert (verdict.is_whole, verdict.count) == (True, 7)
    assert found == events + events[:3]


@pytest.mark.parametrize("together", [1, 4, 7, 23])
def test_entries_are_read_one_by_one_however_they_were_sealed(home: Home, together: int):
    async def work(ledger: SqliteLedger):
        await fill(ledger, home, 23, together=together)
        for place in range(25):
            for limit in (1, 5, 40):
                after = [entry.seq for entry in ledger.entries(place, limit)]
                assert after == list(range(place + 1, 24))[:limit]
                before = [entry.seq for entry in ledger.newest(place or None, limit)]
                assert before == list(reversed(range(1, min(place or 24, 24))))[:limit]
                # Every record whose number has a 2.
                with_two = [entry.seq for entry in ledger.entries_with('"r2', place, limit)]
                assert with_two == [seq for seq in (3, 21, 22, 23) if seq > place][:limit]
        return [msgspec.json.decode(entry.event)["at"] for entry in all_entries(ledger)]

    assert with_ledger(home, work) == list(range(23))


def test_who_read_a_record_is_a_question_with_an_answer(home: Home):
    async def work(ledger: SqliteLedger):
        await fill(ledger, home, 12)
        found = who_read(ledger, RecordId("r1"), None, None)
        other = who_read(ledger, RecordId("r1"), StreamName("other"), None)
        return [entry.seq for entry in found], list(other)

    assert with_ledger(home, work) == ([2], [])


def test_the_key_of_the_chain_is_made_once_and_for_its_owner_alone(home: Home):
    assert load_audit_key(home) == load_audit_key(home)
    assert (home.keys / "audit").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"k" * 31])
def test_a_key_that_is_too_short_is_refused_and_left_alone(home: Home, content: bytes):
    load_audit_key(home)
    (home.keys / "audit").write_bytes(content)
    with pytest.raises(ConfigInvalid):
        load_audit_key(home)
    assert (home.keys / "audit").read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"seq": 1}', b'{"seq": "x", "seal": ""}', b'{"seq": 1, "seal": "xy"}', b"\xff"],
)
def test_a_damaged_head_is_reported_and_entries_still_reach_the_chain(home: Home, content: bytes):
    with_ledger(home, lambda ledger: fill(ledger, home, 2))
    write_private(home.path / "audit-head.json", content)
    with pytest.raises(LogUnverifiable):
        read_head(home)
    journal = Journal(home)
    journal.write(disclosure(3))
    journal.leave()

    async def work(ledger: SqliteLedger):
        await take_over(home, ledger, KEY)
        return len(list(all_entries(ledger)))

    assert with_ledger(home, work) == 3
    assert (home.path / "audit-head.json").read_bytes() == content


def test_what_cannot_be_checked_is_not_reported_as_changed(home: Home):
    with_ledger(home, lambda ledger: fill(ledger, home, 4, together=2))
    noted = read_head(home)
    other = b"o" * 32

    async def check(ledger: SqliteLedger):
        before = [
            verify(ledger, NotedChain(KEY, None)),
            verify(ledger, NotedChain(other, None, is_later_key=True)),
            verify(ledger, NotedChain(other, noted)),
            verify(ledger, NotedChain(KEY, noted, is_later_key=True)),
        ]
        # A later key goes on with the chain.
        await ledger.append(
            "later.journal", 0, journals._encode(disclosure(5)) + b"\n", partial(seal_block, other)
        )
        return [*before, verify(ledger, NotedChain(other, None, is_later_key=True))]

    no_head, no_key, changed, whole, later = with_ledger(home, check)
    assert "audit-head.json" in no_head.unchecked
    assert "Entries 1 to 4" in no_key.unchecked
    assert (changed.broken_at, changed.unchecked) == (1, "")
    assert whole.is_whole
    assert ("Entries 1 to 4" in later.unchecked, later.count, later.problem) == (True, 5, "")
