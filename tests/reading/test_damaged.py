"""One damaged record costs one record: what lists, searches and changes answer around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.store.damages import FILLER, damage_page

pytestmark = pytest.mark.anyio
RECORDS = "/v1/streams/messages/records"
DAY_US = 86_400_000_000
SINCE_THE_SECOND = TimeConstraint(FieldName("sent_at"), 1_772_323_200_000_000 + DAY_US)
SINCE_THE_FOURTH = TimeConstraint(FieldName("sent_at"), 1_772_323_200_000_000 + 3 * DAY_US)


async def test_a_damaged_record_is_left_out_with_a_warning_that_names_it(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(
            connection,
            "messages",
            [record(f"m{n}", subject="hello", sent_at=f"2026-03-0{n}T00:00:00Z") for n in range(1, 6)],
        )
        scope = stream_grant("messages", "id", "subject", "sent_at", connections=(ConnectionId(connection),))
        token = await program.grant(grant(scope))
        file = apsw.Connection(str(tmp_path / "home" / "records.db"))
        file.execute("UPDATE record SET digest=zeroblob(32) WHERE record_id='m3'")
        file.close()
        for path, params in (
            (RECORDS, {}),
            (RECORDS, {"count": "exact"}),
            (RECORDS, {"changes_since": "beginning"}),
            ("/v1/search", {"q": "hello"}),
        ):
            answer = await program.get(path, token, params=params)
            assert answer.status == 200, (path, answer.content)
            assert len(answer.body["data"]) == 4
            (warning,) = answer.body["meta"]["warnings"]
            assert (warning["code"], warning["detail"]) == ("record_damaged", {"record_id": "m3"})
        assert (await program.get(f"{RECORDS}/m3", token)).code == "integrity_error"


async def test_pages_go_on_after_a_damaged_record(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        lines = [record(f"m{n}", sent_at=f"2026-03-0{n}T00:00:00Z") for n in range(1, 7)]
        await program.ingest(connection, "messages", lines)
        scope = stream_grant("messages", "id", "sent_at", connections=(ConnectionId(connection),))
        token = await program.grant(grant(scope))
        file = apsw.Connection(str(tmp_path / "home" / "records.db"))
        file.execute("UPDATE record SET digest=zeroblob(32) WHERE record_id IN ('m2', 'm5', 'm6')")
        file.close()
        found: list[str] = []
        params = {"limit": "2"}
        while True:
            body = (await program.get(RECORDS, token, params=params)).body
            found += [row["id"] for row in body["data"]]
            if "next_cursor" not in body:
                break
            params = {"limit": "2", "cursor": body["next_cursor"]}
        assert sorted(found) == ["m1", "m3", "m4"]


def large(key: str, **values: str) -> dict[str, Any]:
    """A record that shares the page of the file with no other."""
    return record(key, **values, headers={"mark": f"<{key}>", "filler": FILLER})


async def test_a_damaged_page_of_the_file_costs_the_records_on_it(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        lines = [large(f"m{n}", subject="hello", sent_at=f"2026-03-0{n}T00:00:00Z") for n in range(1, 6)]
        await program.ingest(connection, "messages", lines)
    damage_page(tmp_path / "home", b"<m3>")
    async with local_program(tmp_path) as program:
        both = (ConnectionId(connection),)
        whole = stream_grant("messages", "id", "subject", "sent_at", connections=both)
        timed = stream_grant("messages", "id", "subject", connections=both, time=SINCE_THE_SECOND)
        hidden = stream_grant("messages", "id", "subject", connections=both, time=SINCE_THE_FOURTH)
        for scope, intact, named in ((whole, 4, ["m3"]), (timed, 3, ["m3"]), (hidden, 2, [])):
            token = await program.grant(grant(scope, id_=f"grt_{intact}"))
            for path, params in (
                (RECORDS, {}),
                (RECORDS, {"changes_since": "beginning"}),
                ("/v1/search", {"q": "hello"}),
            ):
                answer = await program.get(path, token, params=params)
                assert answer.status == 200, (path, answer.content)
                assert len(answer.body["data"]) == intact, (path, params)
                assert [one["detail"]["record_id"] for one in answer.body["meta"]["warnings"]] == named


async def test_changes_after_a_bookmark_go_around_a_damaged_page(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", [large("m1")])
        scope = stream_grant("messages", "id", connections=(ConnectionId(connection),))
        token = await program.grant(grant(scope))
        begun = await program.get(RECORDS, token, params={"changes_since": "beginning"})
        await program.ingest(connection, "messages", [large(f"m{n}") for n in range(2, 6)])
    damage_page(tmp_path / "home", b"<m3>")
    async with local_program(tmp_path) as program:
        since = begun.body["next_changes_since"]
        answer = await program.get(RECORDS, token, params={"changes_since": since})
        assert [row["id"] for row in answer.body["data"]] == ["m2", "m4", "m5"]
        assert [one["detail"]["record_id"] for one in answer.body["meta"]["warnings"]] == ["m3"]


async def test_a_damaged_child_is_left_out_of_its_parent_with_a_warning(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", [record("m1", sent_at="2026-03-01T00:00:00Z")])
        children = [{"key": ["m1", f"{n}"], "data": {"id": f"{n}", "message_id": "m1"}} for n in range(3)]
        await program.ingest(connection, "attachments", children)
        both = (ConnectionId(connection),)
        token = await program.grant(
            grant(
                stream_grant("messages", "id", "sent_at", connections=both),
                stream_grant("attachments", "id", "message_id", connections=both),
            )
        )
        file = apsw.Connection(str(tmp_path / "home" / "records.db"))
        key = file.execute("SELECT record_id FROM record WHERE record_id LIKE '%1\"]'").get
        file.execute("UPDATE record SET digest=zeroblob(32) WHERE record_id=?", (key,))
        file.close()
        listed = (await program.get(RECORDS, token, params={"expand": "attachments"})).body
        single = (await program.get(f"{RECORDS}/m1", token, params={"expand": "attachments"})).body
        for row, meta in ((listed["data"][0], listed["meta"]), (single, single["meta"])):
            assert [child["data"]["id"] for child in row["expanded"]["attachments"]["data"]] == ["2", "0"]
            (warning,) = meta["warnings"]
            assert (warning["code"], warning["detail"]) == ("record_damaged", {"record_id": key})
