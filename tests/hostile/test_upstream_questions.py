"""Hostile questions of a server to which the capability was offered.

Row 109 of the list of hostile cases, where the program has offered to answer.
"""

import asyncio

import pytest

from headgate.errors import CallError
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.questions import Reply
from tests.hostile.server import LEGACY, MODERN, replies, result_of, sse
from tests.hostile.test_upstream import BAD_SCHEMAS
from tests.mcp.client.importing import call, until
from tests.mcp.client.test_questions import asks, elicit, importing_one, replied, replying_with

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("little_memory")]


async def refused(tool):
    async with asyncio.timeout(10):
        with pytest.raises(CallError) as caught:
            await call(tool)
    return caught.value.details["reason"]


def required(**more):
    return replies(lambda seen: result_of(seen, {"resultType": "input_required", **more}))


ONE = {"q": {"method": "elicitation/create", "params": elicit()}}


@pytest.mark.parametrize("more", [{"inputRequests": ONE, "requestState": "s"}, {"requestState": "s"}])
async def test_questions_without_end_end(more):
    received = []
    limits = Limits(max_questions=4)
    async with importing_one(MODERN, replying_with(Reply.accept(), received), limits=limits) as (
        server,
        tool,
    ):
        server.faults["tools/call"] = required(**more)
        assert await refused(tool) == "upstream_too_large"
        assert len(server.calls("tools/call")) == 5
        assert len(received) == (4 if "inputRequests" in more else 0)


async def test_questions_without_end_in_one_round_never_reach_the_callback():
    received = []
    many = {f"q{number}": ONE["q"] for number in range(1000)}
    async with importing_one(MODERN, replying_with(Reply.accept(), received)) as (server, tool):
        server.faults["tools/call"] = required(inputRequests=many)
        assert await refused(tool) == "upstream_too_large"
        assert received == []


async def test_questions_without_end_on_a_stream_are_asked_a_few_times():
    received = []
    async with importing_one(LEGACY, replying_with(Reply.accept(), received)) as (server, tool):
        server.faults["tools/call"] = asks(server, *[elicit()] * 40)
        assert (await call(tool)).ok
        sent = [replied(server, f"question-{number}") for number in range(40)]
    assert len(received) == 10
    assert {reply["error"]["code"] for reply in sent[10:]} == {-32600}


@pytest.mark.parametrize("state", ["x" * 65_537, "x" * 4_000_000, 7, ["s"], {"a": 1}])
async def test_a_huge_or_strange_state_is_not_carried(state):
    async with importing_one(MODERN, replying_with(Reply.accept())) as (server, tool):
        server.faults["tools/call"] = required(inputRequests=ONE, requestState=state)
        assert await refused(tool) in {"upstream_too_large", "upstream_protocol_error"}
        assert len(server.calls("tools/call")) == 1


FORMS = {
    **{name: {"type": "object", "properties": {"p": bad}} for name, bad in BAD_SCHEMAS.items()},
    "nested": {"type": "object", "properties": {"p": {"type": "object", "properties": {}}}},
    "wide": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(100)}},
    "a list": [],
    "no object": {"type": "string"},
    "a bomb beside the fields": {
        "type": "object",
        "properties": {"p": {"type": "string"}},
        "allOf": [{"$ref": "#"}],
    },
    "no schema": None,
}


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("which", list(FORMS))
async def test_a_schema_bomb_in_a_question_never_reaches_the_callback(era, which):
    received = []
    async with importing_one(era, replying_with(Reply.accept(), received)) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit(FORMS[which]))
        if era == MODERN:
            assert await refused(tool) in {"upstream_schema_rejected", "upstream_protocol_error"}
        else:
            assert (await call(tool)).ok
            assert replied(server, "question-0")["error"]["code"] == -32602
    assert received == []


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "elicitation/other"])
async def test_what_was_not_offered_is_refused_all_the_same(era, method):
    received = []
    async with importing_one(era, replying_with(Reply.accept(), received)) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit(), method=method)
        if era == MODERN:
            assert await refused(tool) == "upstream_unsupported"
        else:
            assert (await call(tool)).ok
            assert replied(server, "question-0")["error"]["code"] == -32601
    assert received == []


async def test_a_question_with_an_address_to_open_is_refused():
    received = []
    async with importing_one(MODERN, replying_with(Reply.accept(), received)) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit(mode="url", url="https://evil.example/"))
        assert await refused(tool) == "upstream_unsupported"
    assert received == []


async def test_a_server_asks_nothing_while_none_of_its_tools_runs():
    received = []
    answer = replying_with(Reply.accept(), received)
    async with importing_one(LEGACY, answer, list_changed=True) as (server, tool):
        await until(lambda: server.streams)
        question = {"jsonrpc": "2.0", "id": "unasked", "method": "elicitation/create", "params": elicit()}
        server.streams[0].write(sse(question))
        await until(lambda: replied(server, "unasked"))
        assert replied(server, "unasked")["error"]["code"] == -32601
        assert received == []
        server.faults["tools/call"] = asks(server, elicit())
        assert (await call(tool)).ok
    assert len(received) == 1


async def test_the_text_of_a_question_is_short_printable_and_without_our_token():
    received = []
    message = "canary-token-1234 \x1b[2J\u202eevil" + "x" * 100_000
    async with importing_one(MODERN, replying_with(Reply.decline(), received), token="canary-token-1234") as (
        server,
        tool,
    ):
        server.faults["tools/call"] = asks(server, elicit(message=message))
        assert (await call(tool)).ok
    words = received[0].message
    assert len(words) < 2100
    assert words.isprintable()
    assert "canary-token" not in words


@pytest.mark.parametrize("shape", [[], "q", {"q": []}, {"q": {"method": 7}}, {"q": {}}])
async def test_requests_of_any_shape_are_a_typed_error(shape):
    async with importing_one(MODERN, replying_with(Reply.accept())) as (server, tool):
        server.faults["tools/call"] = required(inputRequests=shape)
        assert await refused(tool) in {"upstream_protocol_error", "upstream_unsupported"}


async def test_hanging_up_while_a_question_is_open_ends_the_question():
    asked, ended = asyncio.Event(), asyncio.Event()

    async def slow(question):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with importing_one(LEGACY, slow) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        task = asyncio.create_task(call(tool))
        await asked.wait()
        await until(lambda: server.calls("tools/call"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(ended.is_set)
        await until(lambda: replied(server, "question-0"))
        assert replied(server, "question-0")["error"]["code"] == -32600
