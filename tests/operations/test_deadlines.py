"""Deadlines are kept around the handler, inherited by children, and only ever shortened."""

import asyncio

import pytest

from headgate.errors import CallError
from headgate.operations.registration import OperationContext
from tests.operations.parts import composing, leaf, operation, registry

pytestmark = pytest.mark.anyio


def hanging(ended):
    async def handler(_value, _context):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    return handler


async def code_of(awaitable):
    with pytest.raises(CallError) as raised:
        async with asyncio.timeout(5):
            await awaitable
    return raised.value.code


async def test_a_call_that_takes_too_long_is_cancelled_and_says_so():
    ended = []
    held = registry(operation(hanging(ended)))
    with pytest.raises(CallError) as raised:
        await held.call("ns/op", timeout_seconds=0.01)
    assert (raised.value.code, raised.value.status, raised.value.retryable) == ("TIMEOUT", 504, True)
    assert ended == [True]
    assert held.in_flight == ()


async def test_a_deadline_that_is_over_stops_the_handler_from_starting():
    ran = []

    async def handler(_value, _context):
        ran.append(True)

    held = registry(operation(handler))
    for seconds in (0, -1):
        assert await code_of(held.call("ns/op", timeout_seconds=seconds)) == "TIMEOUT"
    assert ran == []


async def test_a_child_gets_the_rest_of_its_parents_time_or_less():
    seen = []

    async def inner(_value, context):
        seen.append(context)

    async def outer(_value, context):
        seen.append(context)
        await context.env.call("ns/leaf", timeout_seconds=1000)
        await context.env.call("ns/leaf", timeout_seconds=1)
        await context.env.call("ns/leaf")

    await registry(leaf(inner), composing(outer, "ns/leaf")).call("ns/outer", timeout_seconds=60)
    parent, longer, shorter, same = seen
    assert longer.deadline == same.deadline == parent.deadline
    assert shorter.deadline < parent.deadline
    assert 0 < shorter.remaining_seconds() <= 1
    assert 1 < parent.remaining_seconds() <= 60


async def test_without_a_deadline_there_is_none():
    seen = []

    async def handler(_value, context):
        seen.append(context)

    await registry(operation(handler)).call("ns/op", timeout_seconds=None)
    assert seen[0].deadline is None
    assert seen[0].remaining_seconds() is None


async def test_no_time_left_is_zero_and_not_less():
    assert OperationContext("1", deadline=0.0).remaining_seconds() == 0.0


async def test_when_the_whole_call_is_late_the_caller_hears_of_that_and_not_of_the_child():
    ended = []

    async def outer(_value, context):
        return await context.env.call("ns/leaf")

    held = registry(leaf(hanging(ended)), composing(outer, "ns/leaf"))
    assert await code_of(held.call("ns/outer", timeout_seconds=0.01)) == "TIMEOUT"
    assert ended == [True]
    assert held.in_flight == ()


async def test_a_parent_can_live_on_after_a_child_was_late():
    ended = []

    async def outer(_value, context):
        try:
            await context.env.call("ns/leaf", timeout_seconds=0.01)
        except CallError as error:
            return {"child": error.code}

    assert await registry(leaf(hanging(ended)), composing(outer, "ns/leaf")).call("ns/outer") == {
        "child": "TIMEOUT"
    }


async def test_a_failure_after_the_deadline_is_a_timeout():
    async def stubborn(_value, context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert context.remaining_seconds() == 0
            raise ValueError("late") from None

    assert await code_of(registry(operation(stubborn)).call("ns/op", timeout_seconds=0.01)) == "TIMEOUT"


async def test_a_handler_that_holds_the_loop_past_its_deadline_and_fails_is_late():
    async def busy(_value, context):
        while context.remaining_seconds() > 0:
            pass
        raise ValueError("late")

    assert await code_of(registry(operation(busy)).call("ns/op", timeout_seconds=0.01)) == "TIMEOUT"


async def test_a_result_after_the_deadline_is_a_timeout_too():
    async def deaf(_value, _context):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"

    assert await code_of(registry(operation(deaf)).call("ns/op", timeout_seconds=0.01)) == "TIMEOUT"


async def test_many_deadlines_are_kept_by_one_timer_each_in_its_turn():
    ended, order = [], []
    held = registry(operation(hanging(ended)))

    async def call(seconds):
        assert await code_of(held.call("ns/op", timeout_seconds=seconds)) == "TIMEOUT"
        order.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (0.09, 0.03, 0.06):
            group.create_task(call(seconds))
    assert order == [0.03, 0.06, 0.09]


def test_a_registry_can_be_used_in_one_event_loop_after_another():
    held = registry(operation(hanging([])), operation(name="quick"))
    # What was to be looked at in the first loop, and never was, must not keep the second from looking.
    asyncio.run(held.call("ns/quick", timeout_seconds=0.01))
    for _ in range(2):
        assert asyncio.run(code_of(held.call("ns/op", timeout_seconds=0.05))) == "TIMEOUT"
