"""Accounts are fetched when they are due, by one process, with longer pauses after failures."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import NotFound, UpstreamUnreachable
from headgate.home import Home
from headgate.model.record import Connection, Freshness
from headgate.sources import accounts
from headgate.sources.accounts import Accounts, account_job, add_account, scheduled, state_of
from headgate.sources.declaring import TEXT, StreamSpec
from headgate.sources.protocol import Item, LiveSource, Mark, Row
from headgate.tasks import Supervisor
from tests.in_process import local_program
from tests.store.engines import NOW, Driven

SECOND = 1_000_000
HOUR = 3600


class Bell(LiveSource):
    """A live source with one new record at each fetch; it fails while it is down."""

    name, title = "bell", "Bell"
    settings: Mapping[str, str] = {"tower": "Which."}
    streams = (StreamSpec(name="rings", label="Rings", detail="A ring.", fields={"id": TEXT}),)

    def __init__(self) -> None:
        self.is_down = False
        self.fetches = 0
        #: What a fetch raises besides our own errors, by the account's tower.
        self.faults: dict[str, Exception] = {}
        self.has_rung = threading.Semaphore(0)
        #: A fetch from the slow tower waits for this.
        self.may_end = threading.Event()

    def label(self, settings: Mapping[str, str]) -> str:
        return f"Bell of {settings['tower']}"

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item]:
        self.fetches += 1
        if settings["tower"] == "slow":
            assert self.may_end.wait(60)
        if settings["tower"] in self.faults:
            raise self.faults[settings["tower"]]
        if self.is_down:
            raise UpstreamUnreachable("The tower does not answer.")
        rung = state.get(settings["tower"], 0) + 1
        yield Row("rings", {"id": f"r{rung}"})
        yield Mark(settings["tower"], 0, rung)
        self.has_rung.release()


class Belfry:
    """A store with one account, and a clock that the test moves."""

    def __init__(self, path: Path, bell: Bell, every: int | None = None) -> None:
        self.driven = Driven("sqlite", path)
        self.home = Home(path)
        self.now = NOW
        self.accounts = Accounts(self.driven.bare, {"bell": bell}, lambda: self.now, HOUR)
        self._bell = bell
        self.connection = self.add("north", every)

    def add(self, tower: str, every: int | None = None) -> Connection:
        job = account_job(self._bell, {"tower": tower}, every_seconds=every)
        return self.driven.run(add_account(self.driven.bare, job))

    def due(self) -> bool:
        return bool(self.driven.run(self.accounts.due()))

    def fetch(self) -> Any:
        return self.driven.run(self.accounts.fetch(self.connection))

    def freshness(self, connection: Connection | None = None) -> Freshness:
        found = self.driven.run(state_of(self.driven.bare, connection or self.connection)).freshness
        assert found is not None
        return found


class Watcher:
    """A supervisor that looks without a pause, and the event that it has looked. Given a belfry, hours pass."""

    def __init__(self, belfry: Belfry | None = None) -> None:
        self._belfry = belfry
        self.has_looked = asyncio.Event()
        self.supervisor = Supervisor(self._sleep)

    async def _sleep(self, _seconds: float) -> None:
        self.has_looked.set()
        if self._belfry is not None:
            self._belfry.now += HOUR * SECOND
        await asyncio.sleep(0)


async def rung(bell: Bell, times: int = 1) -> None:
    """Wait until accounts were fetched so many times."""
    for _ in range(times):
        assert await asyncio.to_thread(bell.has_rung.acquire, timeout=60)


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def belfry(tmp_path: Path, bell: Bell):
    made = Belfry(tmp_path, bell)
    yield made
    made.driven.close()


def test_an_account_is_due_at_once_and_again_after_its_pause(belfry: Belfry):
    assert belfry.due()
    assert belfry.fetch().accepted == 1
    noted = belfry.freshness()
    assert (noted.attempted_at, noted.succeeded_at, noted.error) == (NOW, NOW, "")
    assert noted.next_at == NOW + HOUR * SECOND
    belfry.now += HOUR * SECOND - 1
    assert not belfry.due()
    belfry.now += 1
    assert belfry.due()


def test_what_was_fetched_before_is_not_fetched_again(belfry: Belfry):
    belfry.fetch()
    assert dict(belfry.fetch().streams)["rings"].added == 1


@pytest.mark.parametrize(("every", "pause"), [(60, 60), (0, None)])
def test_a_pause_of_its_own_counts_and_never_is_never(
    tmp_path: Path, bell: Bell, every: int, pause: int | None
):
    belfry = Belfry(tmp_path, bell, every)
    try:
        assert belfry.due() == (pause is not None)
        belfry.fetch()
        assert belfry.freshness().next_at == (None if pause is None else NOW + pause * SECOND)
        belfry.now += 61 * SECOND
        assert belfry.due() == (pause is not None)
    finally:
        belfry.driven.close()


def test_failures_double_the_pause_up_to_a_day_and_a_success_ends_them(belfry: Belfry, bell: Bell):
    belfry.fetch()
    bell.is_down = True
    pauses = []
    for _ in range(6):
        assert belfry.fetch().failure == "The tower does not answer."
        noted = belfry.freshness()
        pauses.append(((noted.next_at or 0) - belfry.now) // SECOND // HOUR)
        belfry.now += SECOND
    assert pauses == [2, 4, 8, 16, 24, 24]
    assert (noted.error, noted.failures, noted.succeeded_at) == ("The tower does not answer.", 6, NOW)
    assert noted.status(belfry.now) == "stale"
    bell.is_down = False
    belfry.fetch()
    noted = belfry.freshness()
    assert (noted.error, noted.failures, noted.status(belfry.now)) == ("", 0, "current")


def test_what_should_have_been_fetched_long_ago_is_stale():
    noted = Freshness().after(NOW, "", HOUR)
    assert noted.status(NOW + 2 * HOUR * SECOND) == "current"
    assert noted.status(NOW + 2 * HOUR * SECOND + 1) == "stale"
    assert Freshness().status(NOW) == Freshness().after(NOW, "", 0).status(NOW) == "unknown"


def test_a_connection_of_files_has_nothing_to_fetch(belfry: Belfry):
    connection = belfry.driven.create_connection("bell", "of files")
    assert [one.id for one in belfry.driven.run(belfry.accounts.due())] == [belfry.connection.id]
    with pytest.raises(NotFound):
        belfry.driven.run(belfry.accounts.fetch(connection))


def test_of_two_schedules_on_one_home_one_fetches_and_the_other_takes_over(belfry: Belfry, bell: Bell):
    async def both() -> list[int]:
        found: list[int] = []
        first, second, third = Watcher(), Watcher(), Watcher()
        async with scheduled(belfry.home, belfry.accounts, first.supervisor):
            await rung(bell)
            async with scheduled(belfry.home, belfry.accounts, second.supervisor):
                await second.has_looked.wait()
                found.append(bell.fetches)
        belfry.now += HOUR * SECOND
        async with scheduled(belfry.home, belfry.accounts, third.supervisor):
            await rung(bell)
            found.append(bell.fetches)
        return found

    assert belfry.driven.run(both()) == [1, 2]


def test_a_machine_whose_turn_it_is_not_fetches_nothing(belfry: Belfry, bell: Bell):
    async def fetched(*, has_turn: bool) -> int:
        watcher = Watcher()

        async def turn() -> bool:
            return has_turn

        async with scheduled(belfry.home, belfry.accounts, watcher.supervisor, turn):
            await (rung(bell) if has_turn else watcher.has_looked.wait())
        return bell.fetches

    assert belfry.driven.run(fetched(has_turn=False)) == 0
    assert belfry.driven.run(fetched(has_turn=True)) == 1


@pytest.mark.anyio
async def test_a_broken_module_of_the_program_is_a_fault_and_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "headgate.sources.accounts", None)
    with pytest.raises(ExceptionGroup) as raised:
        async with local_program(tmp_path):
            pass
    assert raised.group_contains(ModuleNotFoundError, match=r"headgate\.sources\.accounts")


def test_an_account_that_fails_as_no_account_should_stops_no_other_and_is_tried_again(
    belfry: Belfry, bell: Bell
):
    broken = belfry.add("east")
    bell.faults["east"] = RuntimeError("no keyring here")

    async def fetched() -> tuple[Any, ...]:
        watcher = Watcher(belfry)
        async with scheduled(belfry.home, belfry.accounts, watcher.supervisor):
            await rung(bell, 2)
            return watcher.supervisor.troubles()

    troubles = belfry.driven.run(fetched())
    assert [(one.loop, one.subject, one.code) for one in troubles] == [("accounts", broken.id, "unexpected")]
    noted = belfry.freshness(broken)
    assert noted.failures >= 1
    assert "RuntimeError" in noted.error
    assert "keyring" not in noted.error
    del bell.faults["east"]
    assert belfry.driven.run(belfry.accounts.fetch(broken)).accepted == 1


def test_a_slow_account_holds_up_no_other(belfry: Belfry, bell: Bell):
    belfry.add("slow")

    async def fetched() -> int:
        async with scheduled(belfry.home, belfry.accounts, Watcher(belfry).supervisor):
            await rung(bell, 3)
            bell.may_end.set()
            await rung(bell)
        return bell.fetches

    assert belfry.driven.run(fetched()) >= 4


def test_an_account_that_never_ends_is_left_after_its_time_with_what_it_brought(
    belfry: Belfry, bell: Bell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(accounts, "ACCOUNT_SECONDS", -1.0)
    report = belfry.fetch()
    assert "the rest is fetched next time" in report.failure
    assert belfry.freshness().failures == 1
    monkeypatch.undo()
    assert belfry.fetch().failure == ""
    assert bell.fetches == 2
