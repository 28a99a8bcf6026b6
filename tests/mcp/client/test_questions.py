"""A server's questions: refused by default, answered by the callback of the importing program."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from headgate.errors import CallError
from headgate.mcp.client.from_mcp import FromMCP, ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.questions import Question, Reply
from headgate.mcp.client.servers import from_servers
from tests.hostile.server import LEGACY, MODERN, SSE_HEAD, faulty_server, replies, result_of, sse, text
from tests.mcp.client.importing import call, until

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "nobody"},
        "age": {"type": "integer"},
        "sure": {"type": "boolean", "default": False},
    },
}


def elicit(schema=FORM, message="Who are you?", **more):
    return {"message": message, "requestedSchema": schema, **more}


def asks(server, *questions, state=None, method="elicitation/create"):
    """Answer a call with questions, one after the other, and then with the replies they got."""

    async def legacy(seen, writer):
        writer.write(SSE_HEAD)
        for number, params in enumerate(questions):
            writer.write(
                sse({"jsonrpc": "2.0", "id": f"question-{number}", "method": method, "params": params})
            )
            await writer.drain()
            await until(lambda number=number: replied(server, f"question-{number}"))
        writer.write(sse(result_of(seen, text("done"))))
        await writer.drain()
        writer.close()

    def modern(seen):
        asked = len(server.calls("tools/call")) - 1
        if asked >= len(questions):
            return result_of(seen, text("done") | {"resultType": "complete"})
        requests = {f"question-{asked}": {"method": method, "params": questions[asked]}}
        more = {} if state is None else {"requestState": state}
        return result_of(seen, {"resultType": "input_required", "inputRequests": requests, **more})

    return legacy if server.era == LEGACY else replies(modern)


def replied(server, key):
    """Return the reply that the server received, in either era."""
    if server.era == LEGACY:
        return next((seen.body for seen in server.seen if seen.id == key), None)
    found = [seen.params.get("inputResponses", {}) for seen in server.calls("tools/call")]
    return next(({"result": responses[key]} for responses in found if key in responses), None)


@asynccontextmanager
async def importing_one(era, answer=None, *, limits=None, token=None, **more):
    options = ImportOptions(limits=limits or Limits())
    async with (
        faulty_server(era=era, **more) as server,
        await from_mcp(server.url, "ns", token, answer=answer, options=options) as imported,
    ):
        yield server, imported[0]


def replying_with(reply, received=None):
    async def answer(question):
        if received is not None:
            received.append(question)
        return reply

    return answer


def offers(server):
    """Return every capability object that the server received."""
    sent = [seen.params.get("_meta", {}).get(CAPABILITIES) for seen in server.seen if seen.id is not None]
    hello = [seen.params["capabilities"] for seen in server.calls("initialize")]
    return [*hello, *(found for found in sent if found is not None)]


@ERAS
async def test_nothing_is_offered_to_a_server_by_default(era):
    async with importing_one(era) as (server, tool):
        await call(tool)
        assert offers(server)
        assert all(offer == {} for offer in offers(server))


@ERAS
async def test_with_a_callback_forms_are_offered_and_nothing_else(era):
    async with importing_one(era, replying_with(Reply.decline())) as (server, tool):
        await call(tool)
        assert offers(server)
        assert all(offer == {"elicitation": {"form": {}}} for offer in offers(server))


async def test_without_a_callback_a_tool_that_asks_has_failed():
    async with importing_one(MODERN) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        with pytest.raises(CallError) as caught:
            await call(tool)
        assert caught.value.details["reason"] == "upstream_unsupported"
        assert len(server.calls("tools/call")) == 1


@ERAS
async def test_a_question_reaches_the_callback_and_its_reply_the_server(era):
    received = []
    async with importing_one(era, replying_with(Reply.accept({"name": "Ada", "age": 36}), received)) as (
        server,
        tool,
    ):
        server.faults["tools/call"] = asks(server, elicit())
        assert (await call(tool)).data == text("done")["content"]
        sent = replied(server, "question-0")["result"]
    assert sent == {"action": "accept", "content": {"name": "Ada", "age": 36, "sure": False}}
    name = tool.local_name if era == MODERN else None
    assert received == [Question("ns", name, "Who are you?", FORM)]


@ERAS
async def test_what_is_left_out_gets_its_default_and_what_has_none_stays_out(era):
    async with importing_one(era, replying_with(Reply.accept())) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        await call(tool)
        sent = replied(server, "question-0")["result"]
    assert sent == {"action": "accept", "content": {"name": "nobody", "sure": False}}


@ERAS
@pytest.mark.parametrize("reply", [Reply.decline(), Reply.cancel()])
async def test_no_and_silence_hold_no_values(era, reply):
    async with importing_one(era, replying_with(reply)) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        assert (await call(tool)).ok
        assert replied(server, "question-0")["result"] == {"action": reply.action}


@pytest.mark.parametrize("state", ['{"a": 1,  "b":"\\u00e9"}', "é\n\t\u2028 ", "", "x" * 60_000])
async def test_state_goes_back_byte_for_byte_and_stays_with_its_call(state):
    async with importing_one(MODERN, replying_with(Reply.accept())) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit(), elicit(), state=state)
        await call(tool, {"x": 1})
        first, second, third = server.calls("tools/call")
        assert "requestState" not in first.params
        assert "inputResponses" not in first.params
        assert second.params["requestState"] == third.params["requestState"] == state
        assert list(third.params["inputResponses"]) == ["question-1"]
        assert {seen.params["name"] for seen in (first, second, third)} == {tool.local_name}
        assert all(seen.params["arguments"] == {"x": 1} for seen in (first, second, third))
        assert len({seen.id for seen in (first, second, third)}) == 3
        await call(tool)
        assert not {"requestState", "inputResponses"} & server.calls("tools/call")[-1].params.keys()


async def test_no_state_is_made_up_where_none_came():
    async with importing_one(MODERN, replying_with(Reply.accept())) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        await call(tool)
        assert "requestState" not in server.calls("tools/call")[-1].params


async def test_a_tool_that_only_wants_to_be_called_again_is_called_again():
    def later(seen):
        if seen.params.get("requestState") == "2":
            return result_of(seen, text("done"))
        count = int(seen.params.get("requestState", "0")) + 1
        return result_of(seen, {"resultType": "input_required", "requestState": str(count)})

    async with importing_one(MODERN, replying_with(Reply.decline())) as (server, tool):
        server.faults["tools/call"] = replies(later)
        assert (await call(tool)).ok
        assert all("inputResponses" not in seen.params for seen in server.calls("tools/call"))


@ERAS
async def test_a_reply_that_does_not_fit_is_not_sent(era, caplog):
    async with importing_one(era, replying_with(Reply.accept({"age": "canary-old"}))) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        if era == MODERN:
            with pytest.raises(CallError) as caught:
                await call(tool)
            assert caught.value.code == "INVALID_INPUT"
            assert caught.value.details[0]["path"] == "$.age"
        else:
            await call(tool)
            assert replied(server, "question-0")["error"]["code"] == -32602
            assert "INVALID_INPUT" in caplog.text
        assert not any("canary-old" in str(seen.body) for seen in server.seen)


async def test_the_error_of_a_failing_callback_is_not_sent_to_the_server(caplog):
    async def broken(question):
        raise ValueError("canary-private")

    async with importing_one(LEGACY, broken) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        await call(tool)
        assert replied(server, "question-0")["error"]["code"] == -32603
        assert not any("canary-private" in str(seen.body) for seen in server.seen)
    assert [record.levelno for record in caplog.records if record.name == "headgate"] == [logging.ERROR]


async def test_a_reply_that_never_comes_ends_at_the_deadline_of_the_call():
    async def silent(question):
        await asyncio.Event().wait()

    async with importing_one(MODERN, silent) as (server, tool):
        server.faults["tools/call"] = asks(server, elicit())
        with pytest.raises(CallError) as caught:
            await call(tool, deadline=asyncio.get_running_loop().time() + 0.2)
        assert caught.value.code == "TIMEOUT"


async def test_the_callback_goes_with_every_way_to_import():
    answer = replying_with(Reply.decline())
    async with faulty_server(era=MODERN) as server:
        assert FromMCP(server.url, "ns", answer=answer).answer is answer
        block = {"mcpServers": {"one": {"type": "http", "url": server.url}}}
        async with await from_servers(block, answer=answer) as imported:
            server.faults["tools/call"] = asks(server, elicit())
            assert (await call(imported.servers["one"][0])).ok
        assert replied(server, "question-0")["result"] == {"action": "decline"}
