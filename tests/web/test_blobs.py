"""Files over REST: as far as a visible record refers to them, whole or in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.model.ids import ConnectionId
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.web.gatehouse import gatehouse, record

pytestmark = pytest.mark.anyio
CONTENT = bytes(range(256)) * 4


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_file_comes_whole_or_in_part_or_only_its_size_and_hidden_ones_do_not_come(tmp_path: Path):
    async with gatehouse(tmp_path) as house:
        await house.declare("mail", declaration())
        connection = await house.connect("mail")
        kept = await house.ask(
            "POST", "/v1/blobs", house.owner, body=CONTENT, headers=[("content-type", "image/png")]
        )
        path = f"/v1/blobs/{kept.body['blob_id']}"
        reference = {"blob_id": kept.body["blob_id"], "mime_type": "image/png"}
        line = record("a", sent_at="2026-03-01T00:00:00Z", headers=reference)
        await house.ingest(connection, "messages", [line])
        everywhere = (ConnectionId(connection),)
        seeing = await house.grant(
            grant(stream_grant("messages", "id", "headers", connections=everywhere), id_="grt_a")
        )
        blind = await house.grant(grant(stream_grant("messages", "id", connections=everywhere), id_="grt_b"))

        whole = await house.get(path, seeing)
        assert (whole.status, whole.content, whole.headers["content-type"]) == (200, CONTENT, "image/png")
        part = await house.get(path, seeing, headers=[("range", "bytes=254-257")])
        assert (part.status, part.content) == (206, b"\xfe\xff\x00\x01")
        assert part.headers["content-range"] == "bytes 254-257/1024"
        end = await house.get(path, seeing, headers=[("range", "bytes=-2")])
        assert (end.status, end.content) == (206, b"\xfe\xff")
        beyond = await house.get(path, seeing, headers=[("range", "bytes=5000-")])
        assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */1024")
        size = await house.ask("HEAD", path, seeing)
        assert (size.status, size.content, size.headers["content-length"]) == (200, b"", "1024")

        hidden, missing = await house.get(path, blind), await house.get(f"/v1/blobs/blob_{'0' * 64}", blind)
        assert (hidden.status, hidden.code) == (missing.status, missing.code) == (404, "blob_not_found")
