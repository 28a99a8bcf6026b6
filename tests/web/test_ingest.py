"""Ingest over HTTP: what is rejected, what is kept with a mark, and what aggregates tell of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import LocalProgram, local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
AT = "2026-03-01T00:00:00Z"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        await made.declare("mail", declaration())
        yield made


async def _send(program: LocalProgram, connection: str, *records: dict[str, Any], more: str = "") -> Any:
    lines = b"\n".join(json.dumps({"data": one}).encode() for one in records)
    path = f"/v1/ingest/messages?connection_id={connection}{more}"
    answer = await program.ask("POST", path, program.owner, body=lines)
    assert answer.status == 200, answer.content
    return answer.body


async def test_a_record_that_breaks_the_schema_is_rejected_and_the_rest_is_taken(program: LocalProgram):
    mine = await program.connect("mail")
    records = [{"id": "a", "sent_at": AT}, {"id": "b", "sent_at": AT, "size": "big"}, {"id": "c"}]
    report = await _send(program, mine, *records)
    assert (report["records_accepted"], report["records_rejected"]) == (1, 2)
    assert [(one["index"], one["code"], one["pointer"]) for one in report["errors"]] == [
        (1, "invalid_record", "/data/size"),
        (2, "invalid_record", "/data/sent_at"),
    ]
    assert "records_invalid" not in report
    assert "big" not in json.dumps(report)


async def test_a_record_that_breaks_the_schema_is_kept_on_demand_and_listed_for_the_owner(
    program: LocalProgram,
):
    mine = await program.connect("mail")
    records = [{"id": "a", "sent_at": AT, "size": 5}, {"id": "b", "sent_at": AT, "size": "big"}]
    report = await _send(program, mine, *records, more="&on_invalid=keep")
    assert (report["records_accepted"], report["records_rejected"], report["records_invalid"]) == (2, 0, 1)
    assert [(one["index"], one["pointer"]) for one in report["invalid"]] == [(1, "/data/size")]
    listed = await program.get(f"/v1/ingest/messages/invalid?connection_id={mine}", program.owner)
    assert (listed.status, listed.body["next_after"]) == (200, None)
    (row,) = listed.body["data"]
    assert (row["id"], [one["pointer"] for one in row["problems"]]) == ("b", ["/data/size"])
    summed = await program.get("/v1/streams/messages/aggregate?metric=sum&field=size", program.owner)
    assert summed.body["value"] == 5
    assert (summed.body["missing_value_count"], summed.body["unreadable_value_count"]) == (0, 1)
    path = "/v1/streams/messages/aggregate?metric=sum&field=size&group_by=is_read"
    (group,) = (await program.get(path, program.owner)).body["groups"]
    assert (group["value"], group["unreadable_value_count"], "missing_value_count" in group) == (5, 1, False)


async def test_another_choice_for_invalid_records_is_refused(program: LocalProgram):
    mine = await program.connect("mail")
    path = f"/v1/ingest/messages?connection_id={mine}&on_invalid=drop"
    refused = await program.ask("POST", path, program.owner, body=b"{}")
    assert (refused.status, refused.body["error"]["param"]) == (400, "on_invalid")
