"""Pages of large records: bounded in bytes, complete when followed, and never built while other requests wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conftest import Figure
from tests.in_process import LocalProgram, local_program, record
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


async def test_no_answer_keeps_the_event_loop_waiting(tmp_path: Path, figure: Figure):
    async with filled(tmp_path, "text", [2 * MIB] * 5) as program:
        paths = [f"{MESSAGES}?limit=100", f"{MESSAGES}/m03", f"{MESSAGES}?limit=100&changes_since=beginning"]
        await program.get(paths[0], program.owner)
        lags: list[float] = []
        is_over = asyncio.Event()

        async def probe() -> None:
            while not is_over.is_set():
                # Processor time of this thread: what other programs on the machine take does not count.
                begun, before = time.thread_time(), len(lags)
                await asyncio.sleep(0)
                lags.append(time.thread_time() - begun)
                assert len(lags) == before + 1

        probing = asyncio.create_task(probe())
        for path in paths * 3:
            assert (await program.get(path, program.owner)).status == 200
        is_over.set()
        await probing
        figure("loop lag", f"longest {max(lags) * 1000:.1f} ms of {len(lags)}")
        assert max(lags) < 0.05
