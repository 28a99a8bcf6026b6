from __future__ import annotations

import asyncio

import pytest

from headgate.auth.limits import SignInLimits
from headgate.errors import RateLimited


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
