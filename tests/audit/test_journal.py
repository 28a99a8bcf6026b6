"""Disclosures are never lost once an answer was sent, enter the chain once, and cannot be changed unnoticed."""

from __future__ import annotations

import os
import resource
import signal
from functools import partial

import msgspec
import pytest

from headgate.audit import journal as journals
from headgate.audit.activity import who_read
from headgate.audit.chain import NotedChain, load_audit_key, read_head, seal_block, verify
from headgate.audit.journal import Journal
from headgate.audit.pump import take_over
from headgate.errors import ConfigInvalid, LogUnverifiable, StorageFull
from headgate.home import Home, write_private
from headgate.model.ids import GrantId, RecordId, StreamName
from headgate.model.ledger import ChainHead
from headgate.store.ledger.ledger import Ledger
from tests.audit.chains import KEY, disclosure, entries_of, fill
from tests.store.ledgers import LedgerHome


@pytest.fixture
def home(ledgers: LedgerHome) -> Home:
    return ledgers.home


def test_what_a_killed_process_had_written_is_taken_over_once(home: Home, ledgers: LedgerHome):
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

    async def twice(ledger: Ledger):
        counts = [await take_over(home, ledger, KEY) for _ in range(2)]
        return (
            counts,
            [entry.seq for entry in await entries_of(ledger)],
            await verify(ledger, NotedChain(KEY, read_head(home))),
        )

    counts, seqs, verdict = ledgers.run(twice)
    assert counts == [1, 0]
    assert seqs == list(range(1, 51))
    assert verdict.is_whole


def test_a_line_that_was_not_written_to_its_end_is_not_taken_over(home: Home, ledgers: LedgerHome):
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

    async def work(ledger: Ledger):
        count = await take_over(home, ledger, KEY)
        return count, [msgspec.json.decode(entry.event)["at"] for entry in await entries_of(ledger)]

    assert ledgers.run(work) == (1, [0, 1, 2])


def test_a_line_longer_than_a_file_gets_a_file_of_its_own(
    home: Home, ledgers: LedgerHome, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journals, "_FILE_BYTES", 64)

    async def work(ledger: Ledger):
        await fill(ledger, home, 3)
        return [entry.seq for entry in await entries_of(ledger)]

    assert ledgers.run(work) == [1, 2, 3]
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


def test_a_journal_of_a_living_process_is_left_alone(home: Home, ledgers: LedgerHome):
    living = Journal(home)
    living.write(disclosure(1))

    async def look(ledger: Ledger):
        return await take_over(home, ledger, KEY), len(await entries_of(ledger))

    assert ledgers.run(look) == (0, 0)


def test_a_full_journal_goes_when_its_lines_are_in_the_chain_though_others_keep_coming(
    home: Home, ledgers: LedgerHome, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(journals, "_FILE_BYTES", 1000)

    async def work(ledger: Ledger):
        journal = Journal(home)
        most = 0
        for number in range(200):
            journal.write(disclosure(number))
            if number % 3 == 2:
                await journal.flush(ledger, partial(seal_block, KEY))
            most = max(most, len(list((home.path / "journals").iterdir())))
        assert journal.waiting > 0
        while await journal.flush(ledger, partial(seal_block, KEY)) is not None:
            pass
        await journal.close(ledger)
        return most, [msgspec.json.decode(entry.event)["at"] for entry in await entries_of(ledger)]

    most, numbers = ledgers.run(work)
    assert 1 < most <= 3
    assert numbers == list(range(200))


def test_lines_that_are_handed_over_twice_enter_the_chain_once(home: Home, ledgers: LedgerHome):
    async def work(ledger: Ledger):
        lines = [journals._encode(disclosure(number)) + b"\n" for number in range(3)]
        await ledger.append("j", 0, b"".join(lines[:2]), partial(seal_block, KEY))
        await ledger.append("j", 0, b"".join(lines), partial(seal_block, KEY))
        await ledger.append("j", len(lines[0]), b"".join(lines[1:]), partial(seal_block, KEY))
        return [entry.event for entry in await entries_of(ledger)], await ledger.spent(GrantId("g"), 0)

    events, spent = ledgers.run(work)
    assert len(events) == spent == 3


def test_a_torn_line_is_left_out(home: Home, ledgers: LedgerHome):
    place = journals.journals(home) / "1-dead.journal"
    place.write_bytes(journals._encode(disclosure(1)) + b'\n{"at":1')

    async def work(ledger: Ledger):
        await take_over(home, ledger, KEY)
        return len(await entries_of(ledger))

    assert ledgers.run(work) == 1
    assert not place.exists()


def test_a_chain_that_was_sealed_anew_is_not_the_one_whose_end_was_noted(home: Home, ledgers: LedgerHome):
    ledgers.run(lambda ledger: fill(ledger, home, 10, together=5))
    noted = read_head(home)
    assert noted is not None
    amid = ChainHead(noted.seq - 2, noted.seal)

    async def check(ledger: Ledger):
        return [
            (await verify(ledger, NotedChain(KEY, head))).problem
            for head in (noted, ChainHead(10, b"x" * 32), amid)
        ]

    whole, *others = ledgers.run(check)
    assert whole == ""
    assert all("not the one whose end was noted" in problem for problem in others)


@pytest.mark.parametrize("together", [1, 4, 7, 23])
def test_entries_are_read_one_by_one_however_they_were_sealed(home: Home, ledgers: LedgerHome, together: int):
    async def work(ledger: Ledger):
        await fill(ledger, home, 23, together=together)
        for place in range(25):
            for limit in (1, 5, 40):
                after = [entry.seq for entry in await ledger.entries(place, limit)]
                assert after == list(range(place + 1, 24))[:limit]
                before = [entry.seq for entry in await ledger.newest(place or None, limit)]
                assert before == list(reversed(range(1, min(place or 24, 24))))[:limit]
                # Every record whose number has a 2.
                with_two = [entry.seq for entry in await ledger.entries_with('"r2', place, limit)]
                assert with_two == [seq for seq in (3, 21, 22, 23) if seq > place][:limit]
        return [msgspec.json.decode(entry.event)["at"] for entry in await entries_of(ledger)]

    assert ledgers.run(work) == list(range(23))


def test_who_read_a_record_is_a_question_with_an_answer(home: Home, ledgers: LedgerHome):
    async def work(ledger: Ledger):
        await fill(ledger, home, 12)
        found = who_read(ledger, RecordId("r1"), None, None)
        other = who_read(ledger, RecordId("r1"), StreamName("other"), None)
        return [entry.seq async for entry in found], [entry async for entry in other]

    assert ledgers.run(work) == ([2], [])


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
def test_a_damaged_head_is_reported_and_entries_still_reach_the_chain(
    home: Home, ledgers: LedgerHome, content: bytes
):
    ledgers.run(lambda ledger: fill(ledger, home, 2))
    write_private(home.path / "audit-head.json", content)
    with pytest.raises(LogUnverifiable):
        read_head(home)
    journal = Journal(home)
    journal.write(disclosure(3))
    journal.leave()

    async def work(ledger: Ledger):
        await take_over(home, ledger, KEY)
        return len(await entries_of(ledger))

    assert ledgers.run(work) == 3
    assert (home.path / "audit-head.json").read_bytes() == content


def test_what_cannot_be_checked_is_not_reported_as_changed(home: Home, ledgers: LedgerHome):
    ledgers.run(lambda ledger: fill(ledger, home, 4, together=2))
    noted = read_head(home)
    other = b"o" * 32

    async def check(ledger: Ledger):
        before = [
            await verify(ledger, NotedChain(KEY, None)),
            await verify(ledger, NotedChain(other, None, is_later_key=True)),
            await verify(ledger, NotedChain(other, noted)),
            await verify(ledger, NotedChain(KEY, noted, is_later_key=True)),
        ]
        # A later key goes on with the chain.
        await ledger.append(
            "later.journal", 0, journals._encode(disclosure(5)) + b"\n", partial(seal_block, other)
        )
        return [*before, await verify(ledger, NotedChain(other, None, is_later_key=True))]

    no_head, no_key, changed, whole, later = ledgers.run(check)
    assert "audit-head.json" in no_head.unchecked
    assert "Entries 1 to 4" in no_key.unchecked
    assert (changed.broken_at, changed.unchecked) == (1, "")
    assert whole.is_whole
    assert ("Entries 1 to 4" in later.unchecked, later.count, later.problem) == (True, 5, "")
