from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from headgate.auth.limits import _MAX_BUCKETS, SignInLimits, StoredAttempts, TokenBuckets, limits_of
from headgate.errors import RateLimited
from headgate.home import open_home
from headgate.store.engines.opening import open_engine


class Seconds:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def allows(limits: SignInLimits, address: str, browser: bytes | None = None) -> bool:
    try:
        asyncio.run(limits.check(address, browser))
    except RateLimited:
        return False
    return True


def test_a_network_may_try_five_times_and_then_once_a_minute():
    clock = Seconds()
    limits = SignInLimits(clock)
    assert [allows(limits, "198.51.100.7") for _ in range(6)] == [True] * 5 + [False]
    clock.at = 60
    assert [allows(limits, "198.51.100.7") for _ in range(2)] == [True, False]


def test_addresses_of_one_ipv6_network_share_a_limit():
    limits = SignInLimits(Seconds())
    assert [allows(limits, f"2001:db8::{n}") for n in range(6)] == [True] * 5 + [False]
    assert allows(limits, "2001:db8:0:1::1")


def test_many_networks_together_have_a_limit():
    limits = SignInLimits(Seconds())
    assert [allows(limits, f"198.51.100.{n}") for n in range(21)] == [True] * 20 + [False]


@pytest.mark.parametrize(
    ("address", "browser"), [("203.0.113.5", b"known"), ("127.0.0.1", None), ("::1", None)]
)
def test_strangers_who_use_up_the_total_do_not_keep_the_owner_out(address: str, browser: bytes | None):
    limits = SignInLimits(Seconds())
    for n in range(40):
        allows(limits, f"198.51.100.{n}")
    assert not allows(limits, "203.0.113.9")
    assert allows(limits, address, browser)


def test_a_known_browser_has_a_limit_too():
    limits = SignInLimits(Seconds())
    assert [allows(limits, "127.0.0.1", b"known") for _ in range(6)] == [True] * 5 + [False]


def test_the_name_that_is_used_most_is_not_the_first_to_be_forgotten():
    buckets = TokenBuckets(1, 2, Seconds())
    assert [buckets.take(b"busy") for _ in range(3)] == [True, True, False]
    for number in range(_MAX_BUCKETS + 10):
        buckets.take(b"%d" % number)
        assert not buckets.take(b"busy")


def test_workers_of_one_home_count_attempts_together(tmp_path: Path):
    """Each worker has its own connections to the store, and its own count of what it was asked."""

    async def work() -> list[bool]:
        home, now = open_home(tmp_path / "home"), 1_800_000_000_000_000
        opened = [open_engine(home, lambda: now, None) for _ in range(3)]
        # What a worker counts for itself is not the matter here.
        own = Seconds()
        workers = [
            limits_of(0, own, StoredAttempts(one.oauth, lambda: now, certain=lambda: now)) for one in opened
        ]

        async def allowed(number: int) -> bool:
            try:
                await workers[number % 3].sign_ins.check("198.51.100.7", None)
            except RateLimited:
                return False
            return True

        found = [await allowed(number) for number in range(12)]
        now += 60_000_000
        found += [await allowed(number) for number in range(12, 15)]
        # A clock that is set back gives no attempts, and does not take them away for good.
        now, own.at = now - 3600_000_000, 3600
        found += [await allowed(number) for number in range(15, 17)]
        now += 60_000_000
        found += [await allowed(number) for number in range(17, 19)]
        for one in opened:
            await one.ledger.close()
            await one.store.close()
        return found

    counted = asyncio.run(work())
    assert counted[:12] == [True] * 5 + [False] * 7
    assert counted[12:] == [True, False, False, False, False, True, False]


def test_machines_whose_clocks_differ_give_no_more_attempts_than_one(tmp_path: Path):
    async def work() -> list[bool]:
        home, now = open_home(tmp_path / "home"), 1_800_000_000_000_000
        opened = open_engine(home, lambda: now, None)
        clocks = (lambda: now), (lambda: now - 120_000_000)
        machines = [StoredAttempts(opened.oauth, clock, certain=clock) for clock in clocks]
        allowed = [await machines[number % 2].take(b"network", rate=1 / 60, burst=5) for number in range(12)]
        await opened.ledger.close()
        await opened.store.close()
        return allowed

    assert asyncio.run(work()) == [True] * 5 + [False] * 7
