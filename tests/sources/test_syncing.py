"""Accounts are fetched when they are due, by one process, with longer pauses after failures."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import NotFound, UpstreamUnreachable
from headgate.home import Home
from headgate.model.freshness import Freshness
from headgate.sources.accounts import account_job, add_account, state_of
from headgate.sources.declaring import TEXT, StreamSpec, declaration
from headgate.sources.protocol import Item, Mark, Row
from headgate.sources.syncing import Accounts, scheduled
from tests.in_process import local_program
from tests.store.engines import NOW, Driven

SECOND = 1_000_000
HOUR = 3600


class Bell:
    """A live source with one new record at each fetch; it fails while it is down."""

    name, title = "bell", "Bell"
    settings: Mapping[str, str] = {"tower": "Which."}

    def __init__(self) -> None:
        self.is_down = False
        self.fetches = 0

    def label(self, settings: Mapping[str, str]) -> str:
        return f"Bell of {settings['tower']}"

    def declare(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        del settings
        spec = StreamSpec(name="rings", label="Rings", detail="A ring.", fields={"id": TEXT})
        return declaration("bell", "Bell", [spec])

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item]:
        self.fetches += 1
        if self.is_down:
            raise UpstreamUnreachable("The tower does not answer.")
        rung = state.get(settings["tower"], 0) + 1
        yield Row("rings", {"id": f"r{rung}"})
        yield Mark(settings["tower"], 0, rung)


class Belfry:
    """A store with one account, and a clock that the test moves."""

    def __init__(self, path: Path, bell: Bell, every: int | None = None) -> None:
        self.driven = Driven("sqlite", path)
        self.home = Home(path)
        self.now = NOW
        self.accounts = Accounts(self.driven.bare, {"bell": bell}, lambda: self.now, HOUR)
        job = account_job(bell, {"tower": "north"}, every_seconds=every)
        self.connection = self.driven.run(add_account(self.driven.bare, job))

    def due(self) -> bool:
        return bool(self.driven.run(self.accounts.due()))

    def fetch(self) -> Any:
        return self.driven.run(self.accounts.fetch(self.connection))

    def freshness(self) -> Freshness:
        found = self.driven.run(state_of(self.driven.bare, self.connection)).freshness
        assert found is not None
        return found


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
        looks = [asyncio.Event() for _ in range(3)]
        found: list[int] = []

        def sleeper(number: int):
            async def sleep(_seconds: float) -> None:
                looks[number].set()
                await asyncio.sleep(0)

            return sleep

        async with scheduled(belfry.home, belfry.accounts, sleeper(0)):
            await looks[0].wait()
            async with scheduled(belfry.home, belfry.accounts, sleeper(1)):
                await looks[1].wait()
                found.append(bell.fetches)
        belfry.now += HOUR * SECOND
        async with scheduled(belfry.home, belfry.accounts, sleeper(2)):
            await looks[2].wait()
            found.append(bell.fetches)
        return found

    assert belfry.driven.run(both()) == [1, 2]


def test_a_machine_whose_turn_it_is_not_fetches_nothing(belfry: Belfry, bell: Bell):
    async def fetched(*, has_turn: bool) -> int:
        looked = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            looked.set()
            await asyncio.sleep(0)

        async def turn() -> bool:
            return has_turn

        async with scheduled(belfry.home, belfry.accounts, sleep, turn):
            await looked.wait()
        return bell.fetches

    assert belfry.driven.run(fetched(has_turn=False)) == 0
    assert belfry.driven.run(fetched(has_turn=True)) == 1


@pytest.mark.anyio
async def test_a_broken_module_of_the_program_is_a_fault_and_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "headgate.sources.syncing", None)
    with pytest.raises(ExceptionGroup) as raised:
        async with local_program(tmp_path):
            pass
    assert raised.group_contains(ModuleNotFoundError, match=r"headgate\.sources\.syncing")
