"""When calls to a failing server are suspended, and when they are let through again."""

import asyncio

import pytest

from headgate.errors import (
    UpstreamProtocolError,
    UpstreamRefused,
    UpstreamSuspended,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from headgate.mcp.client.limits import Breaker, CallQueue, Limits

FAR = 1000.0


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return Breaker(3, 30.0, clock)


def failing(breaker, error, deadline=FAR):
    with pytest.raises(type(error)), breaker.watch(deadline):
        raise error


def is_suspended(breaker):
    try:
        with breaker.watch(FAR):
            return False
    except UpstreamSuspended:
        return True


def suspended(breaker):
    for _ in range(3):
        failing(breaker, UpstreamUnreachable())
    return breaker


def test_calls_are_suspended_after_some_failures_in_a_row(breaker, clock):
    suspended(breaker)
    clock.now = 8.0
    with pytest.raises(UpstreamSuspended) as caught, breaker.watch(FAR):
        pytest.fail("a call was let through")
    assert caught.value.details == {"retry_after": 22}


def test_a_success_in_between_starts_the_count_again(breaker):
    for _ in range(2):
        failing(breaker, UpstreamUnreachable())
    with breaker.watch(FAR):
        pass
    for _ in range(2):
        failing(breaker, UpstreamUnreachable())
    assert not is_suspended(breaker)


def test_after_the_pause_one_call_alone_is_a_trial(breaker, clock):
    suspended(breaker)
    clock.now = 30.0
    with breaker.watch(FAR):
        assert is_suspended(breaker)
    assert not is_suspended(breaker)


def test_a_failed_trial_suspends_again_and_a_cancelled_one_allows_another(breaker, clock):
    suspended(breaker)
    clock.now = 30.0
    failing(breaker, UpstreamUnreachable())
    clock.now = 59.0
    assert is_suspended(breaker)
    clock.now = 60.0
    failing(breaker, asyncio.CancelledError())
    assert not is_suspended(breaker)


@pytest.mark.parametrize(
    ("error", "deadline", "counts"),
    [
        (UpstreamUnreachable(), FAR, True),
        (UpstreamTimeout(), FAR, True),
        (UpstreamTimeout(), 0.5, False),
        (UpstreamRefused(details={"status": 500}), FAR, True),
        (UpstreamRefused(details={"status": 429}), FAR, False),
        (UpstreamProtocolError(), FAR, False),
    ],
)
def test_only_failures_of_the_server_count(breaker, error, deadline, counts):
    for _ in range(3):
        failing(breaker, error, deadline)
    assert is_suspended(breaker) is counts


@pytest.mark.anyio
async def test_a_call_that_waits_too_long_for_its_turn_times_out_and_frees_its_place():
    queue = CallQueue(Limits(concurrency=1, queue=1))
    loop = asyncio.get_running_loop()
    async with queue.turn(loop.time() + FAR):
        for _ in range(3):
            with pytest.raises(UpstreamTimeout):
                async with queue.turn(loop.time()):
                    pytest.fail("the slot was taken")
    async with queue.turn(loop.time() + FAR):
        pass
