"""Leases: of several machines one does the work, and another takes over when it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from headgate.store.postgres.lease import LEASE_US, Lease
from headgate.store.postgres.migrate import open_place
from tests import postgres

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


Leases = Callable[..., list[Lease]]


class Clock:
    """A clock that a test moves."""

    at = 0

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def leases(tmp_path: Path, clock: Clock) -> Generator[Leases]:
    """Make leases as separate machines would."""
    made: list[Lease] = []

    def make(count: int, name: str = "work", home: str = "home") -> list[Lease]:
        place = open_place(postgres.database_url(), str(tmp_path / home))
        made.extend(found := [Lease(place, name, clock) for _ in range(count)])
        return found

    yield make
    for one in made:
        one.release()


def test_one_of_several_holds_a_lease_and_goes_on_holding_it(leases: Leases, clock: Clock):
    first, *others = leases(4)
    for _ in range(3):
        assert first.hold()
        assert [other.hold() for other in others] == [False] * 3
        clock.at += LEASE_US // 2


def test_a_lease_of_a_machine_that_is_gone_passes_to_one_other_when_it_has_ended(
    leases: Leases, clock: Clock
):
    first, *others = leases(4)
    assert first.hold()
    clock.at += LEASE_US - 1
    assert [other.hold() for other in others] == [False] * 3
    clock.at += 1
    assert [other.hold() for other in others] == [True, False, False]
    assert not first.hold()


def test_a_lease_that_is_given_up_is_free_at_once(leases: Leases):
    first, second = leases(2)
    assert first.hold()
    first.release()
    assert second.hold()


def test_leases_of_other_work_and_other_homes_are_others(leases: Leases):
    held = [*leases(1), *leases(1, "other"), *leases(1, home="second")]
    assert all(one.hold() for one in held)


def test_machines_that_ask_at_the_same_moment_do_not_both_get_it(leases: Leases):
    async def asked() -> list[bool]:
        return await asyncio.gather(*(one.hold_soon() for one in leases(8)))

    assert sorted(asyncio.run(asked())) == [False] * 7 + [True]
