"""A field that a declaration dropped and a later one declares again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.model.ids import ConnectionId
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
RECORDS = "/v1/streams/messages/records"


def version(name: str, *, without: str | None = None) -> dict[str, Any]:
    document = declaration()
    document["declaration_version"] = name
    if without is not None:
        del document["streams"][0]["schema"]["properties"][without]
    return document


async def test_a_field_dropped_and_declared_again_needs_a_new_grant(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", version("2026-08-11"))
        connection = await program.connect("mail")
        scope = stream_grant("messages", "id", "day", connections=(ConnectionId(connection),))
        old = await program.grant(grant(scope))

        async def day_shown(token: str) -> bool:
            rows = (await program.get(RECORDS, token)).body["data"]
            return "day" in rows[0]["data"]

        line = record("m1", day="2026-03-01", sent_at="2026-03-01T00:00:00Z")
        await program.ingest(connection, "messages", [line])
        assert await day_shown(old)
        await program.declare("mail", version("2026-08-12", without="headers"))
        assert await day_shown(old)
        await program.declare("mail", version("2026-08-13", without="day"))
        assert not await day_shown(old)
        await program.declare("mail", version("2026-08-14"))
        assert not await day_shown(old)
        fresh = replace(grant(scope, id_="grt_2"), declaration_version="2026-08-14")
        assert await day_shown(await program.grant(fresh))
