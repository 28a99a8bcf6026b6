"""Old reads are folded: who has read a record is still known, and no change goes unnoticed before, in or after a fold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings, strategies as st

from headgate.audit import folding, journal as journals
from headgate.audit.activity import Activity, LogFilter, conversations
from headgate.audit.chain import NotedChain, Verdict, read_head, seal_block, verify, write_head
from headgate.audit.folding import FOLD_ROUTE, Folding, FoldRule, fold_step, would_fold
from headgate.audit.report import entry_document, read_event, who_read
from headgate.errors import LogUnverifiable, StorageFull
from headgate.home import Home, open_home
from headgate.model.disclosure import ANSWERED, Disclosed, Disclosure, FoldedDisclosure
from headgate.model.ids import ClientId, ConnectionId, FieldName, GrantId, RecordId, RequestId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.ledger import AuditEntry, ChainHead, SealedBlock
from headgate.store.ledger import Ledger
from headgate.store.sqlite.paths import FILE
from headgate.tasks import Supervisor
from tests.audit.chains import KEY, entries_of
from tests.store.ledgers import LEDGERS, LedgerHome

#: After every day that the tests write about.
LATER = 30 * DAY_US
SQLITE = partial(LedgerHome, open_over=LEDGERS["sqlite"])
CONNECTION, STREAM = ConnectionId("c"), StreamName("s")


def read(
    at: int,
    *records: str,
    client: str | None = "agent",
    via: str = "mcp:fetch",
    fields: tuple[str, ...] = ("id",),
    outcome: str = ANSWERED,
    again: tuple[str, ...] = (),
) -> Disclosure:
    """A read of records; ``again`` are those that the answer also holds as related ones, with another field."""
    part = Disclosed(CONNECTION, STREAM, tuple(map(FieldName, fields)), tuple(map(RecordId, records)))
    related = Disclosed(CONNECTION, STREAM, (FieldName("owner"),), tuple(map(RecordId, again)))
    who = ("client" if client else "owner", ClientId(client) if client else None, (GrantId("g"),), None)
    parts = () if outcome != ANSWERED else (part, related) if again else (part,)
    return Disclosure(at, RequestId(f"q{at}"), *who, via, outcome, 700, parts)


async def append(ledger: Ledger, home: Home, name: str, *reads: Disclosure) -> None:
    lines = b"".join(journals._encode(one) + b"\n" for one in reads)
    write_head(home, await ledger.append(name, 0, lines, partial(seal_block, KEY)))


async def fold(ledger: Ledger, home: Home, before: int) -> int:
    """Fold what there is, and count the reads."""
    count = 0
    while (made := await fold_step(home, ledger, KEY, before=before, now=LATER)) is not None:
        count += made.reads
    return count


async def checked(ledger: Ledger, home: Home) -> Verdict:
    head = read_head(home)
    return await verify(ledger, NotedChain(KEY, head, is_later_key=head is None))


Shown = dict[tuple[object, ...], tuple[int, frozenset[str]]]


def shown_by(events: list[Disclosure]) -> Shown:
    """Say of each record who was shown which of its fields, on which day, by what and in how many reads."""
    times: Counter[tuple[object, ...]] = Counter()
    fields: dict[tuple[object, ...], frozenset[str]] = {}
    for event in events:
        reads: dict[tuple[object, ...], int] = {}
        for part in event.parts:
            for record in part.record_ids or ("",):
                key = record, event.client_id, event.at // DAY_US, event.via
                reads[key] = getattr(part, "times", 1)
                fields[key] = fields.get(key, frozenset()) | {*part.fields}
        times.update(reads)
    return {key: (count, fields[key]) for key, count in times.items()}


Totals = dict[tuple[object, ...], tuple[int, int, int]]


def totals_of(events: list[Disclosure]) -> Totals:
    """Sum up reads, records and bytes by day, client, route and outcome."""
    found: dict[tuple[object, ...], tuple[int, int, int]] = {}
    for event in events:
        key = event.at // DAY_US, event.client_id, event.via, event.outcome
        reads, records, size = found.get(key, (0, 0, 0))
        found[key] = reads + event.read_count, records + event.record_count, size + event.size_bytes
    return found


async def logged(ledger: Ledger) -> list[Disclosure]:
    events = [read_event(one) for one in await entries_of(ledger)]
    return [one for one in events if one.via != FOLD_ROUTE]


READS = st.builds(
    read,
    st.integers(0, 5 * DAY_US - 1),
    *[st.sampled_from(["r1", "r2", "r10"])] * 2,
    client=st.sampled_from(["agent", "other", None]),
    via=st.sampled_from(["mcp:fetch", "GET /v1"]),
    fields=st.sampled_from([("id",), ("id", "body"), ("subject",)]),
    outcome=st.sampled_from([ANSWERED, ANSWERED, "grant_revoked"]),
    again=st.sampled_from([(), ("r1",), ("r2", "r3", "r3")]),
)
STEPS = st.one_of(
    st.lists(READS, min_size=1, max_size=5),
    st.integers(0, 6).map(lambda day: day * DAY_US),
    st.sampled_from(["kill", "open again"]),
)


class Killed(Exception):
    pass


async def fold_and_die(ledger: Ledger, home: Home) -> None:
    """Fold everything in a transaction that does not come to its end."""

    def die(_head: object, _lines: bytes) -> object:
        raise Killed

    rule = FoldRule(KEY, LATER, read_head(home), LATER)
    with contextlib.suppress(Killed):
        await ledger.fold(10_000, rule, die)


@settings(max_examples=12, deadline=None)
@given(st.lists(STEPS, max_size=12), st.sampled_from(list(LEDGERS)), st.sampled_from([1, 10_000]))
def test_after_any_appends_folds_and_deaths_the_log_is_whole_and_knows_who_read_what(
    steps: list[object], engine: str, step_bytes: int
):
    async def run(place: Path) -> None:
        home, written = LedgerHome(open_home(place / "home"), LEDGERS[engine]), list[Disclosure]()
        names = iter(range(100))
        pending = list(steps)
        while pending:
            async with home.opened() as opened:
                ledger = opened.ledger
                while pending and (step := pending.pop(0)) != "open again":
                    if isinstance(step, list):
                        await append(ledger, home.home, f"j{next(names)}", *step)
                        written += step
                    elif isinstance(step, int):
                        await fold(ledger, home.home, step)
                    else:
                        await fold_and_die(ledger, home.home)
                    verdict = await checked(ledger, home.home)
                    assert verdict.is_whole, verdict
                    found = await logged(ledger)
                    assert shown_by(found) == shown_by(written)
                    assert totals_of(found) == totals_of(written)
                    records = Counter[int]()
                    for one in written:
                        records[one.at // DAY_US] += len(
                            {record for part in one.parts for record in part.record_ids}
                        )
                    spent = {day: await ledger.spent(GrantId("g"), day) for day in range(5)}
                    assert spent == {day: records[day] for day in range(5)}

    before, folding._STEP_BYTES = folding._STEP_BYTES, step_bytes
    try:
        with tempfile.TemporaryDirectory(prefix="headgate-fold-") as place:
            asyncio.run(run(Path(place)))
    finally:
        folding._STEP_BYTES = before


@pytest.mark.parametrize("moment", ["in the transaction", "before the head is noted"])
def test_a_process_that_is_killed_while_it_folds_leaves_a_whole_log(
    ledgers: LedgerHome, monkeypatch: pytest.MonkeyPatch, moment: str
):
    reads = [read(number, f"r{number % 3}") for number in range(50)]
    ledgers.run(lambda ledger: append(ledger, ledgers.home, "j", *reads))

    def die(*_: object) -> object:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    child = os.fork()
    if not child:
        name = "seal_block" if moment == "in the transaction" else "write_head"
        monkeypatch.setattr(folding, name, die)
        ledgers.run(lambda ledger: fold(ledger, ledgers.home, LATER))
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])

    async def look(ledger: Ledger) -> tuple[Verdict, Shown, int]:
        return (
            await checked(ledger, ledgers.home),
            shown_by(await logged(ledger)),
            len(await entries_of(ledger)),
        )

    verdict, shown, count = ledgers.run(look)
    assert verdict.is_whole
    assert shown == shown_by(reads)
    # All of it or nothing: one line for the day and the note, or every read.
    assert count == (50 if moment == "in the transaction" else 2)


def test_whole_days_are_folded_and_the_rest_stays_as_it_was(ledgers: LedgerHome):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        await append(ledger, home, "a", read(5, "r1"), read(6, "r1", fields=("id", "body")))
        await append(ledger, home, "b", read(7, "r2", client="other"), read(DAY_US + 1, "r1"))
        await append(ledger, home, "c", read(DAY_US + 2, "r2"))
        assert await fold(ledger, home, DAY_US + 5) == 2
        first, *rest, note = [read_event(one) for one in await entries_of(ledger)]
        assert isinstance(first, FoldedDisclosure)
        assert (first.at, first.seq, first.reads, first.record_count, first.size_bytes) == (0, 2, 2, 2, 1400)
        assert [(one.fields, one.record_ids, one.times) for one in first.parts] == [
            (("body", "id"), ("r1",), 2)
        ]
        assert [one.at for one in rest] == [7, DAY_US + 1, DAY_US + 2]
        assert (note.via, note.request_id) == (FOLD_ROUTE, "fold_1_2")
        assert await fold(ledger, home, DAY_US + 5) == 0
        assert await fold(ledger, home, LATER) == 3
        # The note of the first fold is of the day on which it was made, and that is not over.
        assert len(await entries_of(ledger)) == 5

    ledgers.run(work)


def test_reads_of_numbers_alone_are_in_the_fold_with_their_fields():
    (found,) = folding.fold_events([(1, read(5, fields=("size",))), (2, read(6, fields=("size",)))])
    assert [(one.fields, one.record_ids, one.times) for one in found.parts] == [(("size",), (), 2)]


def test_a_day_that_goes_on_is_not_folded_whatever_is_asked(tmp_path: Path):
    home = open_home(tmp_path / "home")

    async def work(ledger: Ledger) -> None:
        await append(ledger, home, "a", read(DAY_US + 1, "r1"))
        assert await fold_step(home, ledger, KEY, before=LATER, now=2 * DAY_US - 1) is None
        assert await fold_step(home, ledger, KEY, before=LATER, now=2 * DAY_US) is not None

    SQLITE(home).run(work)


def test_what_folding_would_come_to_is_what_it_comes_to(ledgers: LedgerHome):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        for day in range(4):
            await append(ledger, home, f"j{day}", *(read(day * DAY_US + n, f"r{n % 5}") for n in range(20)))
        await fold(ledger, home, DAY_US)
        before = await entries_of(ledger)
        would = await would_fold(home, ledger, KEY, before=3 * DAY_US, now=LATER)
        assert await entries_of(ledger) == before
        assert would.reads == 40 == await fold(ledger, home, 3 * DAY_US)
        assert 0 < would.bytes_after < would.bytes_before

    ledgers.run(work)


def test_who_read_lists_and_pages_go_on_across_a_fold(ledgers: LedgerHome):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        await append(ledger, home, "a", read(1, "r1"), read(2, "r1", "r2"), read(3, outcome="grant_revoked"))
        await append(ledger, home, "b", read(DAY_US, "r1"))
        await fold(ledger, home, DAY_US)
        found = [entry_document(one) async for one in who_read(ledger, RecordId("r1"), STREAM, None)]
        assert [(one["seq"], one["at"][:10], one.get("reads"), one["record_count"]) for one in found] == [
            (2, "1970-01-01", 2, 3),
            (4, "1970-01-02", None, 1),
        ]
        assert [one.seq for one in await ledger.newest(None, 2)] == [5, 4]
        assert [one.seq for one in await ledger.newest(4, 9)] == [3, 2]
        assert [one.seq for one in await ledger.entries(2, 9)] == [3, 4, 5]
        activity = Activity(ledger, home)
        page = await activity.page(LogFilter(), before=None, limit=10)
        newest, oldest = conversations(page.reads)
        assert (oldest.calls, oldest.refusals, oldest.records) == (3, 1, 3)
        assert (newest.calls, newest.records) == (1, 1)
        assert (await activity.who_read(RecordId("r2"), STREAM, CONNECTION, limit=5))[0].seq == 2

    ledgers.run(work)


def test_nothing_is_folded_beyond_the_noted_end_of_the_chain(ledgers: LedgerHome):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        await append(ledger, home, "a", read(1, "r1"))
        lines = journals._encode(read(2, "r1")) + b"\n"
        await ledger.append("b", 0, lines, partial(seal_block, KEY))
        made = await fold_step(home, ledger, KEY, before=LATER, now=LATER)
        assert made is not None
        assert (made.block.last, made.reads) == (1, 1)
        assert (await checked(ledger, home)).is_whole

    ledgers.run(work)


async def _five_days(ledger: Ledger, home: Home) -> None:
    for day in range(5):
        await append(ledger, home, f"j{day}", *(read(day * DAY_US + n, f"r{n}") for n in range(3)))


DAMAGES = [
    "UPDATE audit_fold SET events = CAST(replace(events, 'r1', 'r2') AS BLOB) WHERE last = 3",
    "UPDATE audit_fold SET end_seal = zeroblob(32) WHERE last = 3",
    "UPDATE audit_fold SET seal = zeroblob(32) WHERE last = 6",
    "UPDATE audit_fold SET first = 2 WHERE last = 3",
    "DELETE FROM audit_fold WHERE last = 3",
    "DELETE FROM audit_fold WHERE last = 6",
    "DELETE FROM audit_fold",
    "UPDATE audit_fold SET first = 1 WHERE last = 6",
    "INSERT INTO audit SELECT last, events, seal FROM audit_fold WHERE last = 6; DELETE FROM audit_fold WHERE last = 6",
    "DELETE FROM audit WHERE seq = 9",
    "DELETE FROM audit WHERE seq > 15",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_fold_that_was_changed_behind_its_back_is_noticed(tmp_path: Path, damage: str):
    home = open_home(tmp_path / "home")

    async def fill(ledger: Ledger) -> None:
        await _five_days(ledger, home)
        await fold(ledger, home, DAY_US)
        await fold(ledger, home, 2 * DAY_US)
        assert (await checked(ledger, home)).is_whole

    SQLITE(home).run(fill)
    database = apsw.Connection(str(home.path / FILE))
    for name in ("audit_keeps", "audit_stays", "fold_keeps", "fold_stays"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute(damage)
    database.close()
    verdict = SQLITE(home).run(lambda ledger: checked(ledger, home))
    assert verdict.problem, damage


@pytest.mark.parametrize(
    ("change", "is_noticed"),
    [
        ("events = events", False),
        ("end_seal = zeroblob(32)", True),
        ("first = first + 1", True),
        ("last = last + 1", True),
        ("events = CAST(replace(events, 'r1', 'r2') AS BLOB)", True),
    ],
)
def test_the_seal_of_a_fold_covers_all_of_it_also_where_nothing_follows(
    tmp_path: Path, change: str, *, is_noticed: bool
):
    home = open_home(tmp_path / "home")

    async def fill(ledger: Ledger) -> None:
        await _five_days(ledger, home)
        await fold(ledger, home, 2 * DAY_US)

    SQLITE(home).run(fill)
    database = apsw.Connection(str(home.path / FILE))
    for name in ("audit_stays", "fold_keeps"):
        database.execute(f"DROP TRIGGER {name}")
    database.execute(
        f"DELETE FROM audit; DELETE FROM meta WHERE k='audit_entries'; UPDATE audit_fold SET {change}"
    )
    database.close()
    verdict = SQLITE(home).run(lambda ledger: verify(ledger, NotedChain(KEY, None)))
    assert bool(verdict.problem) is is_noticed


def test_the_folds_refuse_to_be_changed_through_sql_and_blocks_leave_only_for_a_fold(tmp_path: Path):
    home = open_home(tmp_path / "home")

    async def fill(ledger: Ledger) -> None:
        await _five_days(ledger, home)
        await fold(ledger, home, 2 * DAY_US)

    SQLITE(home).run(fill)
    database = apsw.Connection(str(home.path / FILE))
    for statement in (
        "UPDATE audit_fold SET first = 0",
        "DELETE FROM audit_fold",
        "DELETE FROM audit WHERE seq = 9",
    ):
        with pytest.raises(apsw.ConstraintError, match="only grows"):
            database.execute(statement)
    database.close()


def test_entries_that_were_changed_are_not_folded(tmp_path: Path):
    home = open_home(tmp_path / "home")
    SQLITE(home).run(lambda ledger: _five_days(ledger, home))
    database = apsw.Connection(str(home.path / FILE))
    database.execute("DROP TRIGGER audit_keeps")
    database.execute("UPDATE audit SET events = CAST(replace(events, 'r1', 'r2') AS BLOB) WHERE seq = 6")
    database.close()
    with pytest.raises(LogUnverifiable):
        SQLITE(home).run(lambda ledger: fold(ledger, home, 3 * DAY_US))
    assert SQLITE(home).run(lambda ledger: checked(ledger, home)).broken_at == 4


def seal_after_a_gap(head: ChainHead | None, lines: bytes) -> SealedBlock:
    """Seal a block whose events have numbers one too high; its seal is right, as it covers no numbers."""
    sealed = seal_block(KEY, head, lines)
    return replace(sealed, block=replace(sealed.block, last=sealed.block.last + 1))


@pytest.mark.parametrize(("day_after_gap", "folded_days"), [(0, 0), (1, 0), (1, 1), (2, 1)])
def test_entries_between_which_a_number_is_missing_are_not_folded(
    ledgers: LedgerHome, day_after_gap: int, folded_days: int
):
    async def work(ledger: Ledger) -> None:
        home = ledgers.home
        for day in range(4):
            lines = b"".join(journals._encode(read(day * DAY_US + n, f"r{n}")) + b"\n" for n in range(3))
            seal = seal_after_a_gap if day == day_after_gap else partial(seal_block, KEY)
            write_head(home, await ledger.append(f"j{day}", 0, lines, seal))
        assert await fold(ledger, home, folded_days * DAY_US) == 3 * folded_days
        before = await entries_of(ledger)
        with pytest.raises(LogUnverifiable):
            await fold(ledger, home, 3 * DAY_US)
        assert await entries_of(ledger) == before
        assert (await checked(ledger, home)).broken_at == 3 * day_after_gap + 1

    ledgers.run(work)


def test_the_background_task_folds_what_is_older_than_its_days(ledgers: LedgerHome):
    async def work(ledger: Ledger) -> None:
        home, supervisor = ledgers.home, Supervisor()
        await _five_days(ledger, home)
        task = Folding(home, ledger, key=KEY, days=3, clock=lambda: 5 * DAY_US, supervisor=supervisor)
        made = await task.step()
        assert made is not None
        assert made.reads == 6
        assert await task.step() is None
        off = Folding(home, ledger, key=KEY, days=0, clock=lambda: LATER, supervisor=supervisor)
        off.start()
        await off.stop()
        assert not supervisor.troubles()
        assert len([one for one in await logged(ledger) if not isinstance(one, FoldedDisclosure)]) == 9

    ledgers.run(work)


@pytest.mark.parametrize("trouble", [LogUnverifiable("sealed by another key"), StorageFull()])
def test_entries_that_cannot_be_folded_are_reported_until_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Exception
):
    home, slept, left = open_home(tmp_path / "home"), list[float](), [trouble, trouble, None]
    reported: list[list[str]] = []

    async def refuse(*_: object, **__: object) -> None:
        if (failure := left.pop(0)) is not None:
            raise failure

    async def work(ledger: Ledger) -> None:
        has_worked = asyncio.Event()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            reported.append([one.code for one in supervisor.troubles()])
            if not left:
                has_worked.set()
                await asyncio.Event().wait()

        supervisor = Supervisor(sleep)
        task = Folding(home, ledger, key=KEY, days=3, clock=lambda: LATER, supervisor=supervisor)
        task.start()
        await asyncio.wait_for(has_worked.wait(), 5)
        await task.stop()

    monkeypatch.setattr(folding, "fold_step", refuse)
    SQLITE(home).run(work)
    assert slept == [5, 10, 3600]
    assert reported == [[trouble.code], [trouble.code], []]


@pytest.mark.parametrize("has_turn", [True, False])
def test_of_several_machines_the_one_that_has_its_turn_folds(tmp_path: Path, has_turn: bool):  # noqa: FBT001
    home = open_home(tmp_path / "home")

    async def work(ledger: Ledger) -> int:
        await _five_days(ledger, home)
        has_slept = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            has_slept.set()
            await asyncio.Event().wait()

        async def turn() -> bool:
            return has_turn

        supervisor = Supervisor(sleep)
        task = Folding(
            home, ledger, key=KEY, days=3, clock=lambda: LATER, supervisor=supervisor, has_turn=turn
        )
        task.start()
        await asyncio.wait_for(has_slept.wait(), 5)
        await task.stop()
        assert not supervisor.troubles()
        return len([one for one in await logged(ledger) if isinstance(one, FoldedDisclosure)])

    assert (SQLITE(home).run(work) > 0) is has_turn


@pytest.mark.parametrize("way", ["backwards", "forwards"])
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_a_listing_misses_no_read_while_another_process_folds(ledgers: LedgerHome, way: str, at_once: int):
    """The other one folds after the first piece; a sum may then hold reads that were listed before it."""
    reads = [read(number, f"r{number}", client=f"agent{number % 3}") for number in range(9)]
    is_backwards = way == "backwards"

    async def pieces(ledger: Ledger) -> AsyncIterator[tuple[AuditEntry, ...]]:
        place = None if is_backwards else 0
        while found := await (
            ledger.newest(place, at_once) if is_backwards else ledger.entries(place or 0, at_once)
        ):
            yield found
            place = found[-1].first if is_backwards else found[-1].seq

    async def run() -> set[RecordId]:
        async with ledgers.opened() as one, ledgers.opened() as other:
            await append(one.ledger, ledgers.home, "j", *reads)
            listed: list[Disclosure] = []
            async for piece in pieces(one.ledger):
                listed += map(read_event, piece)
                await fold(other.ledger, ledgers.home, DAY_US)
            return {record for event in listed for part in event.parts for record in part.record_ids}

    assert asyncio.run(run()) == {f"r{number}" for number in range(9)}


def test_a_folded_log_is_listed_in_pieces_as_it_is_in_one(ledgers: LedgerHome):
    reads = [read(number, f"r{number}", client=f"agent{number % 3}") for number in range(9)]

    async def work(ledger: Ledger) -> None:
        await append(ledger, ledgers.home, "j", *reads)
        await append(ledger, ledgers.home, "k", read(DAY_US, "r1"), read(DAY_US + 1, "r1", client="other"))
        await fold(ledger, ledgers.home, LATER)
        whole = await ledger.newest(None, 100)
        assert len(whole) == 6
        assert sorted(whole, key=lambda one: one.seq) == await entries_of(ledger)
        listed: list[AuditEntry] = []
        while found := await ledger.newest(listed[-1].first if listed else None, 1):
            listed += found
        assert tuple(listed) == whole

    ledgers.run(work)


def test_folded_reads_take_a_small_part_of_their_room(ledgers: LedgerHome, figure):
    """Three agents read for thirty days: single records, pages of ten and searches, of a thousand records."""
    names = tuple(map(FieldName, ("id", "sender", "subject", "sent_at", "size", "channel")))

    def reads(day: int) -> list[Disclosure]:
        found: list[Disclosure] = []
        for number in range(300):
            first = (number * number + 13 * day) % 990
            count = (1, 1, 10)[number % 3]
            ids = tuple(RecordId(f"msg_{first + n:08x}") for n in range(count))
            part = Disclosed(ConnectionId("cin_4f1d2c3b5a697887"), StreamName("messages"), names, ids)
            via = ("mcp:fetch", "GET /v1/streams/{stream}/records/{id}", "mcp:search")[number % 3]
            who = ("client", ClientId(f"agent{number % 3}"), (GrantId("grt_0123456789abcdef"),), None)
            at = day * DAY_US + number * 60_000_000
            found.append(
                Disclosure(at, RequestId(f"req_{number:016x}"), *who, via, ANSWERED, 900 * count, (part,))
            )
        return found

    async def work(ledger: Ledger) -> tuple[int, int, int]:
        for day in range(29):
            await append(ledger, ledgers.home, f"j{day}", *reads(day))
        done = await would_fold(ledgers.home, ledger, KEY, before=LATER, now=LATER)
        return done.reads, done.bytes_before, done.bytes_after

    count, before, after = ledgers.run(work)
    figure("folding", f"{count} reads: {before / count:.0f} bytes a read before, {after / count:.0f} after")
    assert after < before / 5
