"""Files over REST: as far as a visible record refers to them, whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.model.ids import ConnectionId
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
CONTENT = bytes(range(256)) * 4


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_file_comes_whole_or_in_part_or_only_its_size_and_hidden_ones_do_not_come(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        stored = await program.ask(
            "POST", "/v1/blobs", program.owner, body=CONTENT, headers=[("content-type", "image/png")]
        )
        path = f"/v1/blobs/{stored.body['blob_id']}"
        reference = {"blob_id": stored.body["blob_id"], "mime_type": "image/png"}
        line = record("a", sent_at="2026-03-01T00:00:00Z", headers=reference)
        await program.ingest(connection, "messages", [line])
        everywhere = (ConnectionId(connection),)
        seeing = await program.grant(
            grant(stream_grant("messages", "id", "headers", connections=everywhere), id_="grt_a")
        )
        blind = await program.grant(
            grant(stream_grant("messages", "id", connections=everywhere), id_="grt_b")
        )

        whole = await program.get(path, seeing)
        assert (whole.status, whole.content, whole.headers["content-type"]) == (200, CONTENT, "image/png")
        part = await program.get(path, seeing, headers=[("range", "bytes=254-257")])
        assert (part.status, part.content) == (206, b"\xfe\xff\x00\x01")
        assert part.headers["content-range"] == "bytes 254-257/1024"
        end = await program.get(path, seeing, headers=[("range", "bytes=-2")])
        assert (end.status, end.content) == (206, b"\xfe\xff")
        beyond = await program.get(path, seeing, headers=[("range", "bytes=5000-")])
        assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */1024")
        size = await program.ask("HEAD", path, seeing)
        assert (size.status, size.content, size.headers["content-length"]) == (200, b"", "1024")

        hidden, missing = (
            await program.get(path, blind),
            await program.get(f"/v1/blobs/blob_{'0' * 64}", blind),
        )
        assert (hidden.status, hidden.code) == (missing.status, missing.code) == (404, "blob_not_found")
