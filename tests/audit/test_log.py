"""Reads and refusals enter the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.auth.test_admission import token_for
from tests.in_process import local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio


async def test_every_answer_is_in_the_log_and_refusals_too(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        token = await token_for(program)
        await program.get("/v1/streams/messages/records?limit=2", token)
        await program.get("/v1/streams/messages/records?fields=body", token)
        await program.services.pump.flush()
        events = [json.loads(entry.event) for entry in await program.services.ledger.newest(None, 2)]
        assert [event["outcome"] for event in events] == ["field_not_granted", "answered"]
        shown = events[1]
        assert shown["client_id"] == "agent"
        assert shown["grant_ids"] == ["grt_1"]
        assert shown["via"] == "GET /v1/streams/{stream}/records"
        assert shown["parts"][0]["record_ids"] == ["m4", "m3"]
        assert shown["parts"][0]["fields"] == ["sent_at", "id"]
        assert shown["size_bytes"] > 0
