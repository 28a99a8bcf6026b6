"""Fields that a later declaration drops, declares again, or gives another meaning."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InvalidDeclaration
from headgate.model.ids import ConnectionId
from headgate.schema.declare import read_declaration
from tests.in_process import local_program, record
from tests.policy.worlds import grant, shop_document, stream_grant
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


def described(name: str, **of_subject: Any) -> dict[str, Any]:
    """Make a version in which the subject is described otherwise, or by another type."""
    document = version(name)
    properties = document["streams"][0]["schema"]["properties"]
    properties["subject"] = {**properties["subject"], **of_subject}
    return document


@pytest.mark.parametrize(
    "change",
    [
        {"description": "The whole text of the message."},
        {"title": "Everything"},
        {"x_pdpp_role": "primary-content"},
        {"contentMediaType": "text/html"},
    ],
)
async def test_a_granted_field_that_gets_another_meaning_needs_a_new_grant(
    tmp_path: Path, change: dict[str, Any]
):
    first = {"description": "The subject line.", "title": "Subject", "contentMediaType": "text/plain"}
    async with local_program(tmp_path) as program:
        await program.declare("mail", described("2026-08-11", **first))
        connection = await program.connect("mail")
        scope = stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),))
        old = await program.grant(grant(scope))
        lines = [record("m1", subject="a secret plan", sent_at="2026-03-01T00:00:00Z")]
        await program.ingest(connection, "messages", lines)

        async def shown(token: str) -> set[str]:
            rows = (await program.get(RECORDS, token)).body["data"]
            found = (await program.get("/v1/search?q=plan", token)).body
            fields = {*rows[0]["data"]}
            assert bool(found.get("data")) is ("subject" in fields)
            schema = json.dumps((await program.get("/v1/schema?detail=full&stream=messages", token)).body)
            assert ('"subject"' in schema) is ("subject" in fields)
            return fields

        assert await shown(old) == {"id", "subject"}
        added = described("2026-08-12", **first, **{"x-added": 1})
        added["streams"][0]["schema"]["properties"]["extra"] = {"type": "string"}
        await program.declare("mail", added)
        assert await shown(old) == {"id", "subject"}, "a version that only adds takes nothing away"
        await program.declare("mail", described("2026-08-13", **{**first, **change}))
        assert await shown(old) == {"id"}
        fresh = replace(grant(scope, id_="grt_2"), declaration_version="2026-08-13")
        assert await shown(await program.grant(fresh)) == {"id", "subject"}
        await program.declare("mail", described("2026-08-14", **first))
        assert await shown(old) == {"id"}, "what meant something else in between stays away"


async def test_a_stream_and_a_field_cannot_change_their_type_or_key(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", version("2026-08-11"))
        for change in ({"type": "integer"}, {"type": "object"}):
            with pytest.raises(InvalidDeclaration):
                await program.declare("mail", described("2026-08-12", **change))
        other = version("2026-08-12")
        other["streams"][0]["semantics"] = "append_only"
        with pytest.raises(InvalidDeclaration):
            await program.declare("mail", other)


async def test_a_grant_of_a_package_that_nothing_is_left_of_is_not_offered(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", version("2026-08-11"))
        await program.declare("shop", shop_document())
        mail, shop = await program.connect("mail"), await program.connect("shop")
        source = read_declaration(shop_document())
        name = next(iter(source.streams))
        whole = replace(
            grant(
                stream_grant(name, *source.streams[name].fields, connections=(ConnectionId(shop),)),
                id_="grt_2",
            ),
            source_id=source.source_id,
            declaration_version=source.version,
        )
        old = stream_grant("messages", "day", connections=(ConnectionId(mail),))
        token = await program.grant(grant(old), whole)
        assert {one["name"] for one in (await program.get("/v1/streams", token)).body["data"]} == {
            "messages",
            name,
        }
        await program.declare("mail", version("2026-08-13", without="day"))
        await program.declare("mail", version("2026-08-14"))
        assert [one["name"] for one in (await program.get("/v1/streams", token)).body["data"]] == [name]
        assert (await program.get(RECORDS, token)).status in {403, 404}
