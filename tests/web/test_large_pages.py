"""Pages of large records: bounded in bytes, complete when followed, and never built while other requests wait."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conftest import Figure
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
MIB = 1 << 20
MESSAGES = "/v1/streams/messages/records"
#: What an answer has beside the records.
ENVELOPES = 100_000
#: Longer texts are stored apart from their record; nested values are not.
SHAPES = {
    "text": lambda size: {"body": "x" * size},
    "nested": lambda size: {"headers": {"all": ["y" * size]}},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def filled(place: Path, shape: str, sizes: list[int]) -> AsyncIterator[LocalProgram]:
    async with local_program(place) as program:
        document = declaration()
        document["streams"][1]["schema"]["properties"]["content"] = {"type": "string"}
        await program.declare("mail", document)
        connection = await program.connect("mail")
        for number, size in enumerate(sizes):
            at = f"2026-03-{number + 1:02}T00:00:00Z"
            line = record(f"m{number:02}", sent_at=at, size=number, **SHAPES[shape](size))
            await program.ingest(connection, "messages", [line])
        yield program


async def pages(program: LocalProgram, path: str) -> AsyncIterator[tuple[int, dict[str, object]]]:
    cursor = ""
    while cursor is not None:
        answer = await program.get(path + (f"&cursor={cursor}" if cursor else ""), program.owner)
        assert answer.status == 200, answer.content[:300]
        yield len(answer.content), answer.body
        cursor = answer.body.get("next_cursor")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "way", ["limit=100", "limit=100&changes_since=beginning", "limit=100&filter[size][gt]=-1"]
)
async def test_pages_end_at_a_bound_in_bytes_and_lead_to_every_record_once(
    tmp_path: Path, shape: str, way: str
):
    sizes = [3 * MIB] * 3 + [100] * 2
    async with filled(tmp_path, shape, sizes) as program:
        seen: list[str] = []
        async for size, body in pages(program, f"{MESSAGES}?{way}"):
            assert size <= 8 * MIB + ENVELOPES
            rows = [row["id"] for row in body["data"]]
            warnings = [one["code"] for one in body["meta"]["warnings"]]
            is_last = body.get("next_cursor") is None
            assert warnings == ([] if is_last else ["page_cut"])
            seen += rows
        assert sorted(seen) == [f"m{number:02}" for number in range(len(sizes))]


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_record_larger_than_a_page_is_a_page_alone(tmp_path: Path, shape: str):
    async with filled(tmp_path, shape, [100, 12 * MIB, 100]) as program:
        found = [
            [row["id"] for row in body["data"]] async for _, body in pages(program, f"{MESSAGES}?limit=3")
        ]
        assert found == [["m02"], ["m01"], ["m00"]]
        whole = await program.get(f"{MESSAGES}/m01", program.owner)
        assert whole.status == 200
        assert len(whole.content) > 12 * MIB


async def test_related_records_count_for_the_bound(tmp_path: Path):
    async with filled(tmp_path, "text", [100] * 4) as program:
        (connection,) = [one.id for one in await program.services.store.connections()]
        for number in range(4):
            line = record(f"f{number}", message_id=f"m{number:02}", content="z" * (3 * MIB))
            del line["key"]
            assert (await program.ingest(connection, "attachments", [line]))["records_accepted"] == 1
        found = [size async for size, _ in pages(program, f"{MESSAGES}?limit=4&expand=attachments")]
        assert len(found) > 1
        assert max(found) <= 8 * MIB + ENVELOPES


NUMBERS = list(range(400_000))
#: Values of some megabytes, each the work of something else: to copy, to decode and shorten, to add addresses to.
COSTLY = {
    "texts": {"body": "x" * (2 * MIB)},
    "numbers": {"headers": {"all": NUMBERS}},
    "files": {"headers": {"all": NUMBERS, "one": {"blob_id": f"blob_{'0' * 64}"}}},
}
READS = (
    f"{MESSAGES}?limit=100",
    f"{MESSAGES}/m03",
    f"{MESSAGES}?limit=100&changes_since=beginning",
    f"{MESSAGES}/m03/field-window?field=headers&limit_chars=16384",
)
META = "io.modelcontextprotocol"
CALLS = {
    "query_records": {"stream": "messages"},
    "fetch": {"id": "messages:m03"},
    "read_record_field": {"id": "messages:m03", "field_path": "headers", "offset_chars": 0},
    "search": {"query": "m03"},
}


async def call(program: LocalProgram, token: str, tool: str) -> int:
    meta = {f"{META}/protocolVersion": "2026-07-28", f"{META}/clientCapabilities": {}}
    params = {"name": tool, "arguments": CALLS[tool], "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    return (await program.ask("POST", "/mcp", token, body=body, headers=headers.items())).status


@asynccontextmanager
async def watched_loop() -> AsyncIterator[list[float]]:
    """Measure each turn of the event loop, in processor time of its thread: other programs do not count."""
    lags: list[float] = []
    is_over = asyncio.Event()

    async def probe() -> None:
        while not is_over.is_set():
            begun = time.thread_time()
            await asyncio.sleep(0)
            lags.append(time.thread_time() - begun)

    probing = asyncio.create_task(probe())
    yield lags
    is_over.set()
    await probing


@pytest.mark.parametrize("kind", COSTLY)
async def test_no_answer_keeps_the_event_loop_waiting(tmp_path: Path, figure: Figure, kind: str):
    async with filled(tmp_path, "text", [10] * 5) as program:
        (connection,) = [one.id for one in await program.services.store.connections()]
        for number in range(5):
            line = record(f"m{number:02}", sent_at="2026-03-01T00:00:00Z", size=1, **COSTLY[kind])
            await program.ingest(connection, "messages", [line])
        fields = ("id", "body", "headers", "sent_at")
        token = await program.grant(grant(stream_grant("messages", *fields, connections=(connection,))))
        await program.get(READS[0], program.owner)
        async with watched_loop() as lags:
            for path in READS * 2:
                assert (await program.get(path, program.owner)).status in {200, 404, 422}
            for tool in CALLS:
                assert await call(program, token, tool) == 200
        figure("loop lag", f"{kind}: longest {max(lags) * 1000:.1f} ms of {len(lags)}")
        assert max(lags) < 0.05
