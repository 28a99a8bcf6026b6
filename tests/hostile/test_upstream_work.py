"""Hostile servers that make work: none of them holds up the event loop or fills the memory.

Lag is the processor's time that this process spends between two turns of the loop: a thread that does not let the loop
run is counted, other programs on the machine are not. The memory is the peak of this process, the server included.
"""

import asyncio
import gc
import json
import threading
import time
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from headgate.errors import AdapterError, CallError
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.pins import FilePins
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl
from tests.hostile.bounds import MEGABYTE, Memory
from tests.hostile.server import faulty_server, tool
from tests.mcp.client.importing import call, importing
from tests.on_socket import served_program

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("everything_is_loaded")]

SKIP = ImportOptions(on_bad_tool="skip")
TURN_SECONDS = 0.005


class Lag:
    """The longest time between two turns of the loop."""

    seconds = 0.0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def _watch(self):
        while True:
            before = time.process_time()
            await asyncio.sleep(TURN_SECONDS)
            self.seconds = max(self.seconds, time.process_time() - before)

    async def __aexit__(self, *_):
        self._task.cancel()


@asynccontextmanager
async def bounded(figure, case):
    """Hold the goals for the length of a block: lag under 100 ms, less than 64 MB more; print the figures."""
    # The objects of the test run are not searched for garbage meanwhile; a program has far fewer.
    gc.collect()
    gc.freeze()
    with Memory() as memory:
        async with Lag() as lag:
            yield
    gc.unfreeze()
    figure(
        "remote server",
        f"{case}: {lag.seconds * 1000:.0f} ms, {max(memory.growth_bytes, 0) / MEGABYTE:.0f} MB more",
    )
    assert lag.seconds < 0.1
    assert memory.growth_bytes < 64 * MEGABYTE


def sends(result, *, as_events=False):
    """Answer with a result that is written already, so that the server's own work does not count."""

    async def fault(seen, writer):
        body = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (seen.id, result)
        kind = b"text/event-stream" if as_events else b"application/json"
        body = b"data: %s\n\n" % body if as_events else body
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n" % (kind, len(body)))
        for start in range(0, len(body), 65536):
            writer.write(body[start : start + 65536])
            await writer.drain()

    return fault


def listing(tools, **more):
    return json.dumps({"tools": tools, **more}).encode()


def taking(properties, **more):
    return {"type": "object", "properties": properties, **more}


def hard_patterns(n):
    words = "".join(rf"\w{{1,{n % 90 + 1}}}x" for _ in range(40))
    return {f"p{i}": {"pattern": f"{words}{n}y{i}"} for i in range(32)}


LISTS = {
    "4 MB of patterns": lambda: [tool(f"t{n}", inputSchema=taking(hard_patterns(n))) for n in range(300)],
    "100 tools with patterns": lambda: [
        tool(f"t{n}", inputSchema=taking(hard_patterns(n))) for n in range(100)
    ],
    "1 000 tools": lambda: [
        tool(f"t{n}", inputSchema=taking({f"p{i}": {"type": "string"} for i in range(12)}))
        for n in range(1000)
    ],
    "wide schemas": lambda: [
        tool(f"t{n}", inputSchema=taking({f"p{i}": {"type": "string"} for i in range(1500)}))
        for n in range(10)
    ],
    "values in enum": lambda: [
        tool(f"t{n}", inputSchema=taking({"p": {"enum": [{}] * 20_000}})) for n in range(60)
    ],
    "7 MB of _meta": lambda: [tool(f"t{n}", _meta={"x": "y" * 60_000}) for n in range(120)],
    "much in one _meta": lambda: [tool("t", _meta={"x": "y" * 7_000_000})],
    "words that cannot be seen": lambda: [tool(f"t{n}", description="\u200b" * 100_000) for n in range(10)],
}


@pytest.mark.parametrize("which", list(LISTS))
async def test_a_tool_list_that_makes_work_holds_up_nothing(which, figure):
    """The import ends with what can be used or with a typed error; registering it is cheap."""
    fault = sends(listing(LISTS[which]()))
    async with faulty_server(faults={"tools/list": fault}) as server, bounded(figure, f"tools/list, {which}"):
        try:
            async with await from_mcp(server.url, "ns", options=SKIP) as imported:
                Registry(imported)
                await imported.refresh()
        except AdapterError as error:
            assert error.details["reason"] == "upstream_too_large"  # noqa: PT017 - either is right


async def test_a_tool_list_that_makes_work_ends_at_its_deadline():
    tools = [tool(f"t{n}", inputSchema=taking(hard_patterns(n))) for n in range(100)]
    options = ImportOptions(limits=Limits(total_seconds=0.1, max_patterns=10_000))
    async with faulty_server(faults={"tools/list": sends(listing(tools))}) as server:
        with pytest.raises(AdapterError) as caught:
            async with asyncio.timeout(5):
                await from_mcp(server.url, "ns", options=options)
    assert caught.value.details["reason"] == "upstream_timeout"


async def test_pages_of_meta_do_not_add_up_in_memory_or_in_the_pins(tmp_path, figure):
    pages = []

    async def page(seen, writer):
        pages.append(seen)
        listed = listing([tool(f"t{len(pages)}", _meta={"x": "y" * 60_000})] * 1, nextCursor=str(len(pages)))
        await sends(listed.replace(b'"_meta"', b'"other": "' + b"z" * 4_000_000 + b'", "_meta"'))(
            seen, writer
        )

    pins = FilePins(tmp_path / "pins.json")
    async with faulty_server(faults={"tools/list": page}) as server, bounded(figure, "100 pages of _meta"):
        with pytest.raises(AdapterError) as caught:
            await from_mcp(server.url, "ns", options=SKIP, pins=pins)
    assert caught.value.details["reason"] == "upstream_too_large"
    assert len(pages) < 5
    assert not (tmp_path / "pins.json").exists()


async def test_the_file_of_pins_is_about_as_long_as_the_definitions(tmp_path):
    levels = 90
    deep = json.loads("[" * levels + ",".join(["1"] * 1000) + "]" * levels)
    listed = [tool(f"t{n}", annotations={"x": deep}) for n in range(20)]
    async with importing(tools=listed, pins=FilePins(tmp_path / "pins.json")) as (_, imported):
        assert len(imported) == 20
    assert (tmp_path / "pins.json").stat().st_size < 2 * len(listing(listed))


RESULTS = {
    "empty blocks": b'{"content":[' + b"{}," * 2_600_000 + b"{}]}",
    "many blocks": b'{"content":[' + b"{}," * 15_000 + b"{}]}",
    "9 000 blocks": b'{"content":[' + b"{}," * 9_000 + b"{}]}",
    "a long text": ('{"content":[{"type":"text","text":"' + "x" * 7_900_000 + '\U0001f600"}]}').encode(),
    "escapes": b'{"content":[{"type":"text","text":"' + rb"\u0041" * 1_300_000 + b'"}]}',
    "numbers": b'{"structuredContent":{"a":[' + b",".join([b"1"] * 99_000) + b"]}}",
    "texts": b'{"structuredContent":{"a":[' + b",".join([b'"' + b"x" * 70 + b'"'] * 90_000) + b"]}}",
    "objects": b'{"structuredContent":{"a":[' + b",".join([b'{"b":1}'] * 19_000) + b"]}}",
    "levels": b'{"structuredContent":{"a":[' + b",".join([b'{"a":' * 100 + b"1" + b"}" * 100] * 240) + b"]}}",
    "7 MB of _meta": b'{"content":[],"_meta":{"a":"' + b"x" * 7_000_000 + b'"}}',
    "an error": b'{"isError":true,"content":[],"structuredContent":{"a":['
    + b",".join([b'{"b":1}'] * 19_000)
    + b"]}}",
}
OUTPUTS = {
    "integers": {"items": {"type": "integer"}},
    "all": {"allOf": [{"items": {"type": ["integer", "string"], "minimum": n}} for n in range(200)]},
    "any": {"items": {"anyOf": [{"type": "object", "required": [f"k{n}"]} for n in range(200)]}},
    "unique": {"uniqueItems": True},
    "pattern": {"items": {"pattern": "^(x|y|[0-9])*z$"}},
    "defaults": {"items": {"type": "object", "properties": {"c": {"default": ["x"] * 100}}}},
}
TOOLS = [
    tool("plain"),
    *(tool(name, outputSchema=taking({"a": {"type": "array", **how}})) for name, how in OUTPUTS.items()),
]


@pytest.mark.parametrize("as_events", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize("which", list(RESULTS))
async def test_a_result_that_makes_work_holds_up_nothing(which, as_events, figure):
    """Checked against every kind of schema, the call ends with a result or a typed error."""
    fault = sends(RESULTS[which], as_events=as_events)
    async with importing(tools=TOOLS, faults={"tools/call": fault}, options=SKIP) as (_, imported):
        registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
        for item in imported if b"structured" in RESULTS[which][:60] else imported[:1]:
            case = f"{item.local_name}, {which}{' as events' if as_events else ''}"
            async with bounded(figure, f"tools/call, {case}"):
                try:
                    await registry.execute(item.id, {}, timeout_seconds=30)
                except CallError as error:
                    assert error.details["reason"] == "upstream_too_large"  # noqa: PT017 - either is right


async def test_a_result_with_more_blocks_or_meta_than_allowed_is_too_large():
    for which in ("empty blocks", "many blocks", "7 MB of _meta"):
        async with importing(faults={"tools/call": sends(RESULTS[which])}) as (_, imported):
            with pytest.raises(CallError) as caught:
                await call(imported[0])
        assert caught.value.details["reason"] == "upstream_too_large"


class HealthWatch(threading.Thread):
    """Asks for /healthz all the time; no answer may take two seconds, and the slowest is noted."""

    def __init__(self, address):
        super().__init__()
        self.address = urlsplit(address)
        self.done = threading.Event()
        self.slowest_seconds, self.answers, self.failure = 0.0, 0, None

    def run(self):
        try:
            while not self.done.is_set():
                self._ask()
        except Exception as error:  # noqa: BLE001 - shown by the test
            self.failure = error

    def _ask(self):
        started = time.perf_counter()
        connection = HTTPConnection(self.address.hostname, self.address.port, timeout=2)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        self.slowest_seconds = max(self.slowest_seconds, time.perf_counter() - started)
        self.answers += 1
        self.done.wait(0.01)


async def test_a_server_with_two_hostile_upstreams_answers_all_the_time(tmp_path, figure):
    """One lists tools that are costly to compile, the other answers with as much as it may."""
    costly = sends(listing(LISTS["100 tools with patterns"]()))
    async with (
        faulty_server(faults={"tools/list": costly}) as first,
        faulty_server(tools=TOOLS, faults={"tools/call": sends(RESULTS["texts"])}) as second,
    ):
        block = {name: {"url": server.url} for name, server in (("first", first), ("second", second))}
        (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": block}))
        settings = {
            "HEADGATE_GATEWAY_SERVERS": str(tmp_path / "servers.json"),
            "HEADGATE_GATEWAY_CLIENTS": "agent",
        }
        served = served_program(tmp_path, **settings)
        program = await asyncio.to_thread(served.__enter__)
        watch = HealthWatch(program.address)
        watch.start()
        try:
            await asyncio.to_thread(program.connect)
            token = await asyncio.to_thread(program.grant)
            async with await from_mcp(f"{program.address}/gateway", "far", token) as far:
                await _use(Registry(expose(item, access_control=AccessControl()) for item in far))
        finally:
            watch.done.set()
            await asyncio.to_thread(watch.join)
            await asyncio.to_thread(served.__exit__, None, None, None)
    figure(
        "remote server", f"two of them behind serve: slowest /healthz {watch.slowest_seconds * 1000:.0f} ms"
    )
    assert watch.failure is None
    assert watch.answers > 20


async def _use(registry):
    async with asyncio.timeout(60):
        while (await registry.call("far/search", {}))["total"] < 20:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
    for name in OUTPUTS:
        envelope = await registry.execute("far/call", {"operation": f"second/{name}"}, timeout_seconds=30)
        assert envelope.is_error
