"""The deadline of an import or a call covers all work on what a server sends, and none of it is done in the event loop."""

import asyncio
import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headgate.errors import AdapterError, CallError
from headgate.mcp.client import mapping
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.pins import MemoryPins
from headgate.operations import running
from headgate.schema.normalise import normalise
from tests.hostile.server import faulty_server, tool
from tests.hostile.test_upstream_work import bounded, hard_patterns, listing, sends, taking
from tests.mcp.client.importing import call, importing, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("everything_is_loaded")]

#: The module; the package has its function under the same name.
IMPORTING = importlib.import_module("headgate.mcp.client.from_mcp")
PINS = importlib.import_module("headgate.mcp.client.pins")
#: Long enough for a busy machine to come to the work in question.
SOON = ImportOptions(limits=Limits(total_seconds=3))
MANY = ImportOptions(limits=Limits(max_patterns=10_000))


class SlowPins(MemoryPins):
    """Pins on a disk that does not answer, until it is let go."""

    def __init__(self):
        super().__init__()
        self.asked, self.answers = threading.Event(), threading.Event()

    def read(self, server):
        self.asked.set()
        assert self.answers.wait(60)
        return super().read(server)


@pytest.fixture
def threads(monkeypatch):
    """The threads for what servers send, of this test alone: what it leaves running disturbs no other."""
    made = ThreadPoolExecutor(max_workers=2)
    monkeypatch.setattr(running, "_THREADS", made)
    yield made
    made.shutdown()


def changed(tools, words):
    return [{**one, "description": words} for one in tools]


async def test_an_import_ends_at_its_deadline_while_its_tools_are_compared_with_the_pins(threads):
    pins = SlowPins()
    async with faulty_server() as server:
        try:
            with pytest.raises(AdapterError) as caught:
                async with asyncio.timeout(15):
                    await from_mcp(server.url, "ns", options=SOON, pins=pins)
        finally:
            pins.answers.set()
    assert pins.asked.is_set()
    assert caught.value.details["reason"] == "upstream_timeout"


async def test_tools_are_not_mapped_any_further_after_the_deadline(threads, monkeypatch):
    """Else the threads would go on with a list that no call waits for, while other servers wait for them."""
    mapped, map_tool = [], mapping.map_tool

    def slowly(definition, *more):
        mapped.append(definition["name"])
        # The third takes until after the deadline.
        if len(mapped) == 3:
            assert ended.wait(60)
        return map_tool(definition, *more)

    ended = threading.Event()
    monkeypatch.setattr(mapping, "map_tool", slowly)
    async with faulty_server(tools=[tool(f"t{n}") for n in range(50)]) as server:
        with pytest.raises(AdapterError) as caught:
            async with asyncio.timeout(15):
                await from_mcp(server.url, "ns", options=SOON)
        ended.set()
    await asyncio.to_thread(threads.shutdown)
    assert caught.value.details["reason"] == "upstream_timeout"
    assert mapped == ["t0", "t1", "t2"]


async def test_the_time_of_a_call_covers_the_list_of_tools_that_it_waits_for():
    """After a change was announced the tools are listed anew first; here the server does not answer that."""
    asked = asyncio.Event()

    async def silence(_seen, _writer):
        asked.set()
        await asyncio.Event().wait()

    async with importing(list_changed=True) as (server, imported):
        await until(lambda: server.streams)
        server.faults["tools/list"] = silence
        await server.announce()
        await until(lambda: imported.stale)
        now = asyncio.get_running_loop().time
        patient = asyncio.create_task(call(imported[0], deadline=now() + 60))
        await asyncio.wait_for(asked.wait(), 10)
        # One waits for the other's list, and the next for its own.
        for is_alone in (False, True):
            if is_alone:
                patient.cancel()
                await asyncio.gather(patient, return_exceptions=True)
            with pytest.raises(CallError) as caught:
                async with asyncio.timeout(15):
                    await call(imported[1], deadline=now() + 0.3)
            assert (caught.value.code, caught.value.details["reason"]) == ("TIMEOUT", "upstream_timeout")
        assert server.calls("tools/call") == []


CHECKED = {
    "a large result": ({"a": {"type": "array"}}, {"a": [1] * 2_000}),
    "a schema with a pattern": ({"a": {"pattern": "x*y"}}, {"a": "xxy"}),
    "a large schema": ({f"p{n}": {"type": "string"} for n in range(500)}, {"p1": "x"}),
}


@pytest.mark.parametrize("which", list(CHECKED))
async def test_the_loop_goes_on_while_a_result_is_checked(which, monkeypatch):
    """The check waits here until the loop has had a turn: in the loop, it would wait in vain."""
    properties, value = CHECKED[which]
    loop, had_turns = asyncio.get_running_loop(), []

    def checked(schema, structured):
        turn = threading.Event()
        loop.call_soon_threadsafe(turn.set)
        had_turns.append(turn.wait(5))
        return normalise(schema, structured)

    monkeypatch.setattr(IMPORTING, "_SHAPES", {"normalise": checked})
    listed = [tool("t", outputSchema=taking(properties))]
    async with importing(tools=listed, results={"t": {"content": [], "structuredContent": value}}) as (
        _,
        made,
    ):
        assert (await call(made[0])).data == value
    assert had_turns == [True]


async def test_a_result_that_takes_too_long_to_check_ends_at_the_deadline(threads, monkeypatch):
    is_late = threading.Event()

    def checked(schema, structured):
        assert is_late.wait(60)
        return normalise(schema, structured)

    monkeypatch.setattr(IMPORTING, "_SHAPES", {"normalise": checked})
    properties, value = CHECKED["a large result"]
    listed = [tool("t", outputSchema=taking(properties))]
    async with importing(tools=listed, results={"t": {"content": [], "structuredContent": value}}) as (
        _,
        made,
    ):
        try:
            with pytest.raises(CallError) as caught:
                async with asyncio.timeout(15):
                    await call(made[0], deadline=asyncio.get_running_loop().time() + 2)
        finally:
            is_late.set()
    assert (caught.value.code, caught.value.details["reason"]) == ("TIMEOUT", "upstream_timeout")


async def test_tools_that_all_changed_hold_up_nothing_and_are_mapped_once(figure, monkeypatch):
    """What was approved is offered further, and mapping it costs as much as mapping what is listed."""
    mapped, map_tool = [], PINS.map_tool

    def counted(definition, *more):
        mapped.append(definition["name"])
        return map_tool(definition, *more)

    monkeypatch.setattr(PINS, "map_tool", counted)
    tools = [tool(f"t{n}", inputSchema=taking(hard_patterns(n))) for n in range(12)]
    pins = MemoryPins()
    async with faulty_server(faults={"tools/list": sends(listing(tools))}) as server:
        async with await from_mcp(server.url, "ns", options=MANY, pins=pins):
            pass
        server.faults["tools/list"] = sends(listing(changed(tools, "Another.")))
        async with (
            bounded(figure, "tools that all changed"),
            await from_mcp(server.url, "ns", options=MANY, pins=pins) as imported,
        ):
            await imported.refresh()
            await imported.judge_again()
            await imported.approve_off_loop("t1")
            assert [item.spec.description for item in imported[:3]] == ["Does t0.", "Another.", "Does t2."]
    assert mapped == [f"t{n}" for n in range(12)]


async def test_the_patterns_of_what_was_approved_are_within_the_same_bound():
    pins = MemoryPins()
    one = tool("t", inputSchema=taking({"a": {"pattern": "^x$"}, "b": {"pattern": "^y$"}}))
    async with faulty_server(tools=[one]) as server:
        async with await from_mcp(server.url, "ns", pins=pins) as imported:
            assert not imported[0].compiled.input.is_valid({"a": "z"})
        server.tools = changed([one], "Another.")
        none = ImportOptions(limits=Limits(max_patterns=0))
        async with await from_mcp(server.url, "ns", pins=pins, options=none) as imported:
            assert imported[0].spec.description == "Does t."
            assert imported[0].compiled.input.is_valid({"a": "z"})


class LatePins(MemoryPins):
    """Pins on a slow disk: another thread comes between what is read and what is written."""

    def read(self, server):
        found = dict(super().read(server) or {}) or None
        threading.Event().wait(0.05)
        return found


async def test_two_approvals_at_once_are_both_kept():
    tools = [tool(f"t{n}") for n in range(6)]
    async with importing(tools=tools, pins=LatePins()) as (server, imported):
        server.tools = changed(tools, "Another.")
        await imported.refresh()
        await asyncio.gather(*(imported.approve_off_loop(f"t{n}") for n in range(5)))
        assert set(imported.blocked) == {"t5"}
        await imported.refresh()
        assert set(imported.blocked) == {"t5"}
