"""Batches whose calls use the answers of earlier ones: checked before anything runs, and bounded."""

from __future__ import annotations

import json

import pytest

from headgate.mcp.gateway.answers import Gateway
from headgate.mcp.gateway.results import ANSWER_BYTES
from tests.operations.parts import operation, registry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def offered(ran):
    async def listing(_value, _context):
        return {
            "items": [{"id": number, "state": "open" if number % 2 else "closed"} for number in range(150)]
        }

    async def close(value, _context):
        ran.append(value)
        return {"closed": value["id"]}

    async def fails(_value, _context):
        raise RuntimeError

    return Gateway(registry(operation(listing, "list"), operation(close, "close"), operation(fails, "fails")))


async def batch(gateway, *calls):
    return await gateway.answer("batch", {"calls": list(calls)}, identity=None)


def call(name, value=None, **more):
    return {"operation": f"ns/{name}", **({} if value is None else {"input": value}), **more}


async def test_a_call_takes_values_out_of_an_earlier_answer():
    ran = []
    result = await batch(
        offered(ran),
        call("list", select="$.items[*].id"),
        call("close", {"id": "$1[4]", "why": ["$1.50", "$5", "costs $1.items"], "all": "$1[*]"}),
    )
    assert [step["isError"] for step in result.structured["results"]] == [False, False]
    assert ran == [{"id": 4, "why": ["$1.50", "$5", "costs $1.items"], "all": list(range(150))}]


async def test_a_call_runs_for_each_chosen_value():
    ran = []
    result = await batch(
        offered(ran),
        call("list"),
        call("close", {"id": "$item.id"}, for_each="$1.items", where={"state": "open"}, limit=3),
        call("close", {"id": "$2[*].closed"}),
    )
    assert [value["id"] for value in ran] == [1, 3, 5, [1, 3, 5]]
    each = result.structured["results"][1]
    assert [one["output"] for one in each["results"]] == [{"closed": 1}, {"closed": 3}, {"closed": 5}]


@pytest.mark.parametrize(
    "wrong",
    [
        call("close", {"id": "$2.items"}),
        call("close", {"id": "$3.items"}),
        call("close", {"id": "$item.id"}),
        call("close", {"id": 1}, for_each="items"),
        call("close", {"id": 1}, for_each="$1.items[x"),
        call("close", {"id": 1}, limit=3),
        call("list", select="$.items[x"),
    ],
)
async def test_a_reference_that_cannot_be_followed_is_refused_before_anything_runs(wrong):
    ran = []
    result = await batch(offered(ran), call("close", {"id": 1}), wrong)
    assert result.structured["error"]["code"] == "INVALID_INPUT"
    assert not ran


async def test_a_call_that_needs_a_failed_one_is_not_run_and_the_others_are():
    ran = []
    result = await batch(offered(ran), call("fails"), call("close", {"id": "$1.x"}), call("close", {"id": 2}))
    assert [step["isError"] for step in result.structured["results"]] == [True, True, False]
    assert "Call 1 failed" in result.structured["results"][1]["error"]["message"]
    assert ran == [{"id": 2}]


async def test_a_batch_runs_at_most_a_hundred_calls():
    ran = []
    refused = await batch(offered(ran), call("list"), call("close", {"id": "$item.id"}, for_each="$1.items"))
    assert refused.structured["results"][1]["error"]["code"] == "RESOURCE_LIMIT"
    assert not ran
    each = call("close", {"id": "$item.id"}, for_each="$1.items", limit=60)
    await batch(offered(ran), call("list"), each, each)
    assert len(ran) == 99


async def test_long_answers_of_a_batch_fit_together_and_each_can_be_read():
    gateway = offered([])
    result = await batch(gateway, *[call("list")] * 20)
    assert len(json.dumps(result.structured).encode()) <= ANSWER_BYTES * 1.2
    summary = result.structured["results"][7]["output"]
    page = await gateway.answer("read", {"answer": summary["answer"], "path": "$.items"}, identity=None)
    assert page.structured["count"] == 150
