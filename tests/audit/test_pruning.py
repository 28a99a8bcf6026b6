"""Old entries move to a file: what was read is there or in the log, and no change goes unnoticed in either."""

from __future__ import annotations

import asyncio
import itertools
import json
import stat
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings, strategies as st

from headgate.audit import activity, journal as journals
from headgate.audit.activity import Activity, LogFilter, LoggedRead, read_event
from headgate.audit.chain import NotedChain, Verdict, read_head, seal_block, verify, write_head
from headgate.audit.journal import ANSWERED, Disclosed, Disclosure
from headgate.audit.pruning import PRUNE_ROUTE, PruneReport, prune, verify_file
from headgate.errors import Conflict, IntegrityBroken, LogUnverifiable, NotFound
from headgate.home import Home, open_home
from headgate.model.ids import ClientId, ConnectionId, FieldName, GrantId, RecordId, RequestId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.ledger import AuditBlock, AuditEntry, ChainHead, SealedBlock
from headgate.store.ledger.ledger import Ledger
from headgate.store.sqlite import FILE
from tests.audit.chains import KEY, entries_of
from tests.store.ledgers import LEDGERS, LedgerHome

#: After every day that the tests write about.
LATER = 30 * DAY_US
SQLITE = partial(LedgerHome, open_over=LEDGERS["sqlite"])


def read(at: int, *records: str, client: str = "agent", fields: tuple[str, ...] = ("id",)) -> Disclosure:
    part = Disclosed(
        ConnectionId("c"), StreamName("s"), tuple(map(FieldName, fields)), tuple(map(RecordId, records))
    )
    who = ("client", ClientId(client), (GrantId("g"),), None)
    return Disclosure(at, RequestId(f"q{at}"), *who, "mcp:fetch", ANSWERED, 700, (part,))


async def append(ledger: Ledger, home: Home, name: str, *reads: Disclosure) -> None:
    lines = b"".join(journals._encode(event) + b"\n" for event in reads)
    write_head(home, await ledger.append(name, 0, lines, partial(seal_block, KEY)))


async def five_days(ledger: Ledger, home: Home) -> None:
    for day in range(5):
        await append(ledger, home, f"j{day}", *(read(day * DAY_US + n, f"r{n}") for n in range(3)))


async def prune_to(ledger: Ledger, home: Home, path: Path, before: int) -> PruneReport:
    return await prune(home, ledger, KEY, before=before, path=path, now=LATER)


async def checked(ledger: Ledger, home: Home) -> Verdict:
    head = read_head(home)
    return await verify(ledger, NotedChain(KEY, head, is_later_key=head is None))


def in_file(path: Path) -> list[str]:
    return [event for line in path.read_text().splitlines() for event in json.loads(line)["events"]]


async def in_log(ledger: Ledger) -> list[str]:
    entries = await entries_of(ledger)
    return [entry.event.decode() for entry in entries if read_event(entry).via != PRUNE_ROUTE]


async def bounded(entries: AsyncIterator[AuditEntry]) -> AsyncIterator[AuditEntry]:
    """Read at most so many entries: a listing that repeats itself has no end."""
    count = 0
    async for entry in entries:
        yield entry
        count += 1
        if count == 50:
            return


STEPS = st.one_of(
    st.lists(st.integers(0, 5 * DAY_US - 1), min_size=1, max_size=5),
    st.sampled_from(["prune 1", "prune 3", "prune 30", "open again"]),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, max_size=10), st.sampled_from(list(LEDGERS)))
def test_after_any_appends_and_prunes_each_read_is_once_in_the_log_or_a_file_and_all_is_whole(
    steps: list[object], engine: str
):
    with tempfile.TemporaryDirectory() as directory:
        home = open_home(Path(directory) / "home")
        ledgers = LedgerHome(home, LEDGERS[engine])
        written: list[str] = []
        files: list[Path] = []
        names = itertools.count()

        async def work(ledger: Ledger, some: list[object]) -> None:
            for step in some:
                name = str(next(names))
                if isinstance(step, list):
                    reads = [read(at, f"r{at % 7}") for at in step]
                    await append(ledger, home, name, *reads)
                    written.extend(journals._encode(event).decode() for event in reads)
                elif (
                    await prune_to(ledger, home, Path(directory, name), int(str(step).split()[1]) * DAY_US)
                ).entries:
                    files.append(Path(directory, name))
                assert (await checked(ledger, home)).is_whole
            moved = [event for path in files for event in in_file(path)]
            assert moved + await in_log(ledger) == written
            for path in files:
                assert (await verify_file(ledger, KEY, path)).entries == len(in_file(path))

        for is_new, group in itertools.groupby(steps, lambda step: step == "open again"):
            if not is_new:
                ledgers.run(partial(work, some=list(group)))


def test_old_blocks_are_moved_and_the_rest_stays_as_it_was(ledgers: LedgerHome, tmp_path: Path):
    async def work(ledger: Ledger) -> None:
        home, path = ledgers.home, tmp_path / "old.jsonl"
        await five_days(ledger, home)
        before = await in_log(ledger)
        done = await prune_to(ledger, home, path, 2 * DAY_US + 1)
        assert (done.first, done.last, done.entries) == (1, 6, 6), "a block goes when all of it is old"
        assert (in_file(path), await in_log(ledger)) == (before[:6], before[6:])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # The next one begins where this one ends.
        again = await prune_to(ledger, home, tmp_path / "more.jsonl", LATER)
        assert (again.first, again.last) == (7, 15)
        assert await in_log(ledger) == []
        assert (await checked(ledger, home)).count == 15
        await append(ledger, home, "after", read(LATER, "r9"))
        assert (await checked(ledger, home)).is_whole

    ledgers.run(work)


def test_where_nothing_is_old_no_file_is_left(ledgers: LedgerHome, tmp_path: Path):
    async def work(ledger: Ledger) -> None:
        await five_days(ledger, ledgers.home)
        assert (await prune_to(ledger, ledgers.home, tmp_path / "old.jsonl", 1)).entries == 0
        assert not (tmp_path / "old.jsonl").exists()

    ledgers.run(work)


def test_a_file_that_is_there_is_not_overwritten(ledgers: LedgerHome, tmp_path: Path):
    path = tmp_path / "old.jsonl"
    path.write_text("mine")

    async def work(ledger: Ledger) -> None:
        await five_days(ledger, ledgers.home)
        with pytest.raises(Conflict):
            await prune_to(ledger, ledgers.home, path, LATER)
        assert len(await in_log(ledger)) == 15

    ledgers.run(work)
    assert path.read_text() == "mine"


def test_who_read_lists_and_pages_go_on_across_what_was_pruned(
    ledgers: LedgerHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(activity, "_AT_ONCE", 1)

    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        await five_days(ledger, home)
        await prune_to(ledger, home, tmp_path / "a", 2 * DAY_US)
        await prune_to(ledger, home, tmp_path / "b", 3 * DAY_US)
        whole = await ledger.newest(None, 100)
        assert [entry.first for entry in whole] == [15, 14, 13, 12, 11, 10, 7, 1]
        assert [entry async for entry in bounded(activity.newest_entries(ledger))] == list(whole)
        assert len([entry async for entry in activity.who_read(ledger, RecordId("r1"), None, None)]) == 2
        pages = Activity(ledger, home)
        everything, listed, before = LogFilter(with_owner=True), list[LoggedRead](), None
        for _ in whole:
            page = await pages.page(everything, before=before, limit=1)
            listed, before = [*listed, *page.reads], page.before
        assert [one.seq for one in listed] == [entry.seq for entry in whole]
        assert [one.event.via for one in listed][-2:] == [PRUNE_ROUTE, PRUNE_ROUTE]
        monkeypatch.setattr(activity, "_MOST_SCANNED", 2)
        page = await pages.page(LogFilter(stream=StreamName("none")), before=10, limit=5)
        assert (page.reads, page.before) == ((), 1)

    ledgers.run(work)


def test_nothing_is_moved_beyond_the_noted_end_of_the_chain(ledgers: LedgerHome, tmp_path: Path):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        await append(ledger, home, "a", read(1, "r1"))
        await ledger.append("b", 0, journals._encode(read(2, "r1")) + b"\n", partial(seal_block, KEY))
        assert (await prune_to(ledger, home, tmp_path / "old", LATER)).last == 1
        assert (await checked(ledger, home)).is_whole

    ledgers.run(work)


def test_of_two_that_prune_at_once_one_is_refused_and_nothing_is_lost(ledgers: LedgerHome, tmp_path: Path):
    async def run() -> None:
        async with ledgers.opened() as one, ledgers.opened() as other:
            home = ledgers.home
            await five_days(one.ledger, home)
            written = await in_log(one.ledger)
            lines: list[AuditBlock] = []

            class Late:
                """A ledger that prunes only after the other one has."""

                blocks = other.ledger.blocks

                async def prune(self, line: AuditBlock) -> None:
                    lines.append(line)
                    await prune_to(one.ledger, home, tmp_path / "first", 3 * DAY_US)
                    await other.ledger.prune(line)

            with pytest.raises(Conflict):
                await prune_to(Late(), home, tmp_path / "second", 2 * DAY_US)  # type: ignore[arg-type]
            assert lines
            assert in_file(tmp_path / "first") + await in_log(one.ledger) == written
            assert (await checked(one.ledger, home)).is_whole

    asyncio.run(run())


DAMAGES = [
    "UPDATE audit_pruned SET events = CAST(replace(events, 'prune', 'other') AS BLOB) WHERE last = 3",
    "UPDATE audit_pruned SET end_seal = zeroblob(32) WHERE last = 3",
    "UPDATE audit_pruned SET seal = zeroblob(32) WHERE last = 6",
    "UPDATE audit_pruned SET first = 2 WHERE last = 3",
    "DELETE FROM audit_pruned WHERE last = 3",
    "DELETE FROM audit_pruned WHERE last = 6",
    "DELETE FROM audit_pruned",
    "UPDATE audit_pruned SET first = 1 WHERE last = 6",
    "INSERT INTO audit SELECT last, events, seal FROM audit_pruned WHERE last = 6; DELETE FROM audit_pruned WHERE last = 6",
    "DELETE FROM audit WHERE seq = 9",
    "DELETE FROM audit WHERE seq > 14",
]


@pytest.fixture
def pruned_home(tmp_path: Path) -> Home:
    home = open_home(tmp_path / "home")

    async def fill(ledger: Ledger) -> None:
        await five_days(ledger, home)
        await prune_to(ledger, home, tmp_path / "first", DAY_US)
        await prune_to(ledger, home, tmp_path / "second", 2 * DAY_US)
        assert (await checked(ledger, home)).is_whole

    SQLITE(home).run(fill)
    return home


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_line_that_was_changed_behind_its_back_is_noticed(pruned_home: Home, damage: str):
    database = apsw.Connection(str(pruned_home.path / FILE))
    for name in ("audit_keeps", "audit_stays", "fold_keeps", "fold_stays"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute(damage)
    database.close()
    assert SQLITE(pruned_home).run(lambda ledger: checked(ledger, pruned_home)).problem, damage


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        ("events = events", False),
        ("end_seal = zeroblob(32)", True),
        ("first = first + 1", True),
        ("last = last + 1", True),
        ("events = CAST(replace(events, 'prune', 'other') AS BLOB)", True),
    ],
)
def test_the_seal_of_a_line_covers_all_of_it_also_where_nothing_follows(
    tmp_path: Path, change: str, *, is_noticed: bool
):
    home = open_home(tmp_path / "home")

    async def fill(ledger: Ledger) -> None:
        await five_days(ledger, home)
        await prune_to(ledger, home, tmp_path / "old", 2 * DAY_US)

    SQLITE(home).run(fill)
    database = apsw.Connection(str(home.path / FILE))
    for name in ("audit_stays", "fold_keeps"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute(
        f"DELETE FROM audit; DELETE FROM meta WHERE k='audit_entries'; UPDATE audit_pruned SET {change}"
    )
    database.close()
    verdict = SQLITE(home).run(lambda ledger: verify(ledger, NotedChain(KEY, None)))
    assert bool(verdict.problem) is is_noticed


def test_the_table_refuses_changes_and_blocks_leave_only_for_a_line(pruned_home: Home):
    database = apsw.Connection(str(pruned_home.path / FILE))
    for statement in (
        "UPDATE audit_pruned SET first = 0",
        "DELETE FROM audit_pruned",
        "DELETE FROM audit WHERE seq = 9",
    ):
        with pytest.raises(apsw.ConstraintError, match="only grows"):
            database.execute(statement)
    database.close()


def test_a_file_that_was_changed_or_is_of_another_log_has_no_place(pruned_home: Home, tmp_path: Path):
    changed = tmp_path / "changed"
    changed.write_text((tmp_path / "first").read_text().replace("r1", "r2"))

    async def work(ledger: Ledger) -> None:
        assert (await verify_file(ledger, KEY, tmp_path / "second")).first == 4
        with pytest.raises(NotFound):
            await verify_file(ledger, KEY, changed)
        with pytest.raises(IntegrityBroken):
            await verify_file(ledger, b"x" * 32, tmp_path / "first")

    SQLITE(pruned_home).run(work)


def test_entries_that_were_changed_are_not_moved(tmp_path: Path):
    home = open_home(tmp_path / "home")
    SQLITE(home).run(lambda ledger: five_days(ledger, home))
    database = apsw.Connection(str(home.path / FILE))
    database.execute("DROP TRIGGER audit_keeps")
    database.execute("UPDATE audit SET events = CAST(replace(events, 'r1', 'r2') AS BLOB) WHERE seq = 6")
    database.close()
    with pytest.raises(LogUnverifiable):
        SQLITE(home).run(lambda ledger: prune_to(ledger, home, tmp_path / "old", 3 * DAY_US))
    assert SQLITE(home).run(lambda ledger: checked(ledger, home)).broken_at == 4


def seal_after_a_gap(head: ChainHead | None, lines: bytes) -> SealedBlock:
    """Seal a block whose events have numbers one too high; its seal is right, as it covers no numbers."""
    sealed = seal_block(KEY, head, lines)
    return replace(sealed, block=replace(sealed.block, last=sealed.block.last + 1))


@pytest.mark.parametrize("day_after_gap", [0, 1, 2])
def test_entries_between_which_a_number_is_missing_are_not_moved(
    ledgers: LedgerHome, tmp_path: Path, day_after_gap: int
):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        for day in range(4):
            lines = b"".join(journals._encode(read(day * DAY_US + n, f"r{n}")) + b"\n" for n in range(3))
            seal = seal_after_a_gap if day == day_after_gap else partial(seal_block, KEY)
            write_head(home, await ledger.append(f"j{day}", 0, lines, seal))
        before = await entries_of(ledger)
        with pytest.raises(LogUnverifiable):
            await prune_to(ledger, home, tmp_path / "old", 3 * DAY_US)
        assert await entries_of(ledger) == before

    ledgers.run(work)
