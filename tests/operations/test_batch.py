"""A batch has one outcome for each entry, in their order, whatever becomes of the others."""

import asyncio

import pytest

from headgate.errors import CallError
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registry import MAX_ENTRIES, BatchEntry
from headgate.operations.spec import AccessControl, Identity
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio


async def fail(_value, _context):
    raise ValueError("no")


async def tool_fails(_value, _context):
    return mcp_envelope([], is_error=True)


async def test_each_entry_has_its_own_outcome_in_order():
    held = registry(
        operation(),
        operation(fail, "fails"),
        operation(tool_fails, "tool"),
        leaf(),
        operation(name="closed", access_control=AccessControl(required_scopes=("x",))),
    )
    names = ["op", "fails", "leaf", "tool", "closed", "none", "op"]
    outcomes = await held.batch([BatchEntry(f"ns/{name}", {"n": n}) for n, name in enumerate(names)])
    assert [one.error.code if one.error else one.envelope.data for one in outcomes] == [
        {"n": 0},
        "INTERNAL",
        "NOT_FOUND",
        "MCP_TOOL_ERROR",
        "FORBIDDEN",
        "NOT_FOUND",
        {"n": 6},
    ]
    assert [one.ok for one in outcomes] == [True, False, False, False, False, False, True]
    assert outcomes[3].envelope.is_error
    assert len({one.request_id for one in outcomes}) == 7


async def test_the_identity_counts_for_all_entries():
    held = registry(operation(access_control=AccessControl(required_scopes=("x",))))
    outcomes = await held.batch([BatchEntry("ns/op")] * 2, identity=Identity("a", frozenset({"x"})))
    assert [one.ok for one in outcomes] == [True, True]


@pytest.mark.parametrize(("concurrency", "most"), [(1, 1), (2, 2), (10, 5)])
async def test_no_more_run_at_once_than_allowed(concurrency, most):
    now, seen = 0, []
    full = asyncio.Event()

    async def count(_value, _context):
        nonlocal now
        now += 1
        seen.append(now)
        if now == most:
            full.set()
        async with asyncio.timeout(5):
            await full.wait()
        now -= 1

    outcomes = await registry(operation(count)).batch([BatchEntry("ns/op")] * 5, concurrency=concurrency)
    assert all(one.ok for one in outcomes)
    assert max(seen) == most


async def test_one_deadline_is_shared():
    async def wait(_value, _context):
        await asyncio.Event().wait()

    held = registry(operation(wait), operation(name="quick"))
    entries = [BatchEntry("ns/quick"), BatchEntry("ns/op"), BatchEntry("ns/quick")]
    outcomes = await held.batch(entries, timeout_seconds=0.02)
    assert [one.error.code if one.error else "ok" for one in outcomes] == ["ok", "TIMEOUT", "TIMEOUT"]


async def test_a_batch_is_bounded():
    held = registry(operation())
    assert len(await held.batch([BatchEntry("ns/op")] * MAX_ENTRIES)) == MAX_ENTRIES
    with pytest.raises(CallError) as refused:
        await held.batch([BatchEntry("ns/op")] * (MAX_ENTRIES + 1))
    assert refused.value.code == "INVALID_INPUT"
    assert await held.batch([]) == ()


async def test_cancelling_a_batch_ends_its_calls():
    begun, ended = asyncio.Event(), []

    async def wait(_value, _context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    held = registry(operation(wait))
    task = asyncio.create_task(held.batch([BatchEntry("ns/op")] * 3))
    async with asyncio.timeout(5):
        await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
    assert held.in_flight == ()
