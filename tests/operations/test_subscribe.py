"""A subscription gives envelopes until it completes, is left, is aborted or falls silent."""

import asyncio
from contextlib import aclosing

import pytest

from headgate.errors import CallError
from headgate.operations.access import AccessControl, Identity
from headgate.operations.spec import ErrorDefinition, OperationType
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio


def counting(log, *, upto=3, then=None):
    async def handler(_value, _context):
        try:
            for number in range(upto):
                log.append(number)
                yield {"n": number}
            if then is not None:
                await then()
        finally:
            log.append("closed")

    return handler


def subscription(handler, **fields):
    return registry(operation(handler, op_type=OperationType.SUBSCRIPTION, **fields))


async def forever():
    await asyncio.Event().wait()


async def read_to_the_end(stream):
    got = []
    try:
        async for envelope in stream:
            got.append(envelope.data["n"])  # noqa: PERF401 - what came before a failure counts too
    except CallError as error:
        return got, error
    return got, None


async def test_all_results_come_in_order_each_in_an_envelope():
    log = []
    held = subscription(counting(log), output_schema={"properties": {"n": {"maximum": 1}}})
    got = [envelope async for envelope in held.subscribe("ns/op", request_id="r")]
    assert [one.data for one in got] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert {one.request_id for one in got} == {"r"}
    assert [len(one.issues) for one in got] == [0, 0, 1]
    assert log == [0, 1, 2, "closed"]
    assert held.in_flight == ()


async def test_the_handler_is_never_far_ahead_of_the_reader():
    log = []
    held = subscription(counting(log, upto=1_000))
    async with aclosing(held.subscribe("ns/op")) as stream:
        assert (await anext(stream)).data == {"n": 0}
        assert len(log) <= 3
    assert log[-1] == "closed"
    assert held.in_flight == ()


async def test_aborting_closes_the_handler_and_tells_the_reader():
    log = []
    held = subscription(counting(log, upto=1, then=forever))
    stream = held.subscribe("ns/op", request_id="r")
    await anext(stream)
    assert held.abort("r") == ("r",)
    with pytest.raises(CallError) as raised:
        async with asyncio.timeout(5):
            await anext(stream)
    assert raised.value.code == "ABORTED"
    assert log == [0, "closed"]
    assert held.in_flight == ()


async def test_silence_that_lasts_too_long_is_a_timeout():
    log = []
    held = subscription(counting(log, upto=2, then=forever))
    before = asyncio.all_tasks()
    got, error = await read_to_the_end(held.subscribe("ns/op", idle_timeout_seconds=0.02))
    assert error.code == "TIMEOUT"
    assert got == [0, 1]
    assert log[-1] == "closed"
    assert asyncio.all_tasks() == before


async def test_a_failure_comes_after_the_results_before_it_and_leaks_nothing():
    async def fail():
        raise ValueError("canary")

    held = subscription(counting([], upto=2, then=fail))
    got, error = await read_to_the_end(held.subscribe("ns/op"))
    assert got == [0, 1]
    assert (error.code, error.message) == ("INTERNAL", "The operation failed.")


async def test_a_declared_failure_keeps_its_code_and_any_other_does_not():
    async def fail():
        raise CallError("DRY", details={"a": 1})

    for declared, code in (((ErrorDefinition("DRY"),), "DRY"), ((), "INTERNAL")):
        held = subscription(counting([], upto=1, then=fail), error_schemas=declared)
        got, error = await read_to_the_end(held.subscribe("ns/op"))
        assert (got, error.code) == ([0], code)


async def test_access_visibility_and_input_are_judged_as_for_a_call():
    closed = subscription(
        counting([]), access_control=AccessControl(required_scopes=("x",)), input_schema=False
    )
    hidden = registry(leaf(counting([]), "op", op_type=OperationType.SUBSCRIPTION))
    allowed = Identity("a", frozenset({"x"}))
    for held, identity, code in (
        (closed, None, "FORBIDDEN"),
        (closed, allowed, "INVALID_INPUT"),
        (hidden, allowed, "NOT_FOUND"),
    ):
        with pytest.raises(CallError) as refused:
            await anext(held.subscribe("ns/op", identity=identity))
        assert refused.value.code == code


async def test_a_reader_that_is_cancelled_ends_the_subscription():
    log, read = [], asyncio.Event()
    held = subscription(counting(log, upto=1, then=forever))

    async def reader():
        async with aclosing(held.subscribe("ns/op")) as stream:
            async for _ in stream:
                read.set()

    task = asyncio.create_task(reader())
    async with asyncio.timeout(5):
        await read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == [0, "closed"]
    assert held.in_flight == ()
