"""A host may show its model the structure alone: the record id of a row is enough to open it, with its stream and connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.mcp.serve.looking import look
from headgate.mcp.serve.results import Outcome
from tests.in_process import LocalProgram, local_program, record
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
KEYS = ("plain", "a/b:c", "../up", "船 2", "x:y", "k" * 900)


async def ask(program: LocalProgram, tool: str, **arguments: Any) -> Outcome:
    access = await program.services.admission.owner_access()
    return await look(program.services.reads, access, tool, arguments, "http://127.0.0.1")


async def test_a_row_is_opened_by_its_record_id_with_stream_and_connection(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        for name in ("Home", "Work"):
            where = await program.connect("mail", name)
            rows = [record(key, subject=f"{name} {place}") for place, key in enumerate(KEYS)]
            await program.ingest(where, "messages", rows)
        for connection in ("home", "work"):
            listed = await ask(
                program, "query_records", stream="messages", connection_id=connection, fields=["subject"]
            )
            page = listed.whole()["structuredContent"]["data"]
            assert {row["id"] for row in page["data"]} == set(KEYS)
            for row in page["data"]:
                bare = await ask(program, "fetch", id=row["id"], stream="messages", connection_id=connection)
                whole = await ask(program, "fetch", id=row["fetch_id"])
                assert not bare.is_error, (row["id"], bare.text)
                assert bare.whole()["structuredContent"]["title"] == row["data"]["subject"]
                assert bare.text == whole.text
        refused = await ask(program, "fetch", id="plain", stream="messages")
        assert refused.whole()["structuredContent"]["error"]["code"] == "ambiguous_connection"
        assert len(refused.text.encode()) <= 1_250
