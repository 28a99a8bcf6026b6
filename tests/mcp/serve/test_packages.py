"""Packages: several grants behind one token, read together where they allow the same."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.model.grant import StreamGrant, TimeConstraint
from headgate.model.instants import instant
from tests.mcp.serve.test_world import in_world
from tests.mcp.serve.world import MAIL, World


def test_the_connections_of_a_connector_in_several_grants_are_read_together():
    async def work(w: World) -> None:
        grants = [w.grant(name, grant_id=f"grt_{name}") for name in ("Home mail", "Work mail")]
        access = w.access(*grants, w.grant("Village chat", grant_id="grt_chat"))
        asked = {"stream": "messages", "connector_key": "mail"}
        for tool, given in (("query_records", {}), ("aggregate", {"metric": "count"})):
            refused = (await w.call(access, tool, stream="messages", **given)).structured["error"]
            assert "or with the connector_key of one" in refused["hint"]
            assert asked["connector_key"] in [
                one["connector_key"] for one in refused["available_connections"]
            ]
        alone = await w.call(access, "fetch", id="messages:m00001")
        assert "connector_key" not in alone.structured["error"]["hint"]
        for name in ("Home mail", "Work mail"):
            newest = {"sent_at": "2027-01-01T00:00:00Z", "subject": "s", "sender": "s", "body": "b"}
            await w.add(name, "messages", {"id": "new", **newest})
            await w.add(name, "attachments", {"id": "a1", "message_id": "new", "name": "plan"})
        page = await w.call(
            access, "query_records", **asked, limit=100, count="exact", expand=["attachments"]
        )
        rows = page.structured["data"]["data"]
        assert {row["connection_id"] for row in rows} == {
            w.connections["Home mail"],
            w.connections["Work mail"],
        }
        assert page.structured["data"]["meta"]["count"]["value"] == 212
        children = [child for row in rows for child in row["expanded"]["attachments"]["data"]]
        assert {child["connection_id"] for child in children} == {row["connection_id"] for row in rows}
        number = await w.call(access, "aggregate", **asked, metric="count")
        assert number.structured["data"]["value"] == 212
        one = await w.call(
            access, "aggregate", **asked, metric="count", connection_id=w.connections["Work mail"]
        )
        assert one.structured["data"]["value"] == 41

    in_world(work)


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        (("id", "subject"), {}),
        (MAIL, {"time": TimeConstraint("sent_at", instant("2026-06-01T00:00:00Z"), None)}),
        (MAIL, {"resources": frozenset({"m00001"})}),
    ],
)
def test_grants_that_allow_different_things_are_not_read_together(
    fields: tuple[str, ...], more: dict[str, Any]
):
    async def work(w: World) -> None:
        streams = [
            [StreamGrant("messages", (w.connections["Home mail"],), MAIL)],
            [StreamGrant("messages", (w.connections["Work mail"],), fields, **more)],
        ]
        access = w.access(
            *(w.grant("Home mail", streams=one, grant_id=f"grt_{n}") for n, one in enumerate(streams))
        )
        for given in ({}, {"connector_key": "mail"}):
            answer = await w.call(access, "query_records", stream="messages", **given)
            assert answer.structured["error"]["code"] == "ambiguous_connection"
            assert len(answer.structured["error"]["available_connections"]) == 2
            # It would not help.
            assert "connector_key" not in answer.structured["error"]["hint"]

    in_world(work)


def test_a_filter_that_fits_one_of_the_sources_applies_there_and_says_so():
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail"), w.grant("Village chat", grant_id="grt_2"))
        sources, cursor = set[str](), dict[str, str]()
        while sources != {"mail", "chat"}:
            both = await w.call(access, "search", q="bridge", streams=["messages"], limit=100, **cursor)
            sources |= {row["connector_key"] for row in both.structured["data"]["data"]}
            cursor = {"cursor": both.structured["data"].get("next_cursor", "")}
        senders = (
            await w.call(
                access,
                "aggregate",
                stream="messages",
                connector_key="mail",
                metric="count",
                group_by="sender",
            )
        ).structured["data"]["groups"]
        sender = senders[0]["key"]
        some = await w.call(
            access, "search", q="bridge", streams=["messages"], filter={"sender": sender}, limit=100
        )
        assert not some.is_error, some.text
        assert {row["connector_key"] for row in some.structured["data"]["data"]} == {"mail"}
        (warning,) = some.structured["data"]["meta"]["warnings"]
        assert warning["code"] == "filter_partial"
        assert warning["message"] == "Left out: records of chat, which cannot be filtered by sender."
        assert warning["message"] in some.text
        nowhere = await w.call(access, "search", q="bridge", streams=["messages"], filter={"sendr": "x"})
        assert nowhere.structured["error"]["code"] == "field_not_granted"
        assert "Near: sender" in nowhere.text

    in_world(work)


@pytest.mark.requirement("S2-75")
def test_a_query_whose_fields_one_connector_has_is_sent_there_first():
    async def work(w: World) -> None:
        access = w.access(w.grant("Village chat", grant_id="grt_2"), w.grant("Home mail", "Work mail"))
        for tool, given in (
            ("query_records", {"filter": {"sender": "x"}}),
            ("query_records", {"fields": ["subject"]}),
            ("aggregate", {"metric": "count", "group_by": "sender"}),
        ):
            answer = await w.call(access, tool, stream="messages", **given)
            error = answer.structured["error"]
            assert (error["code"], error["retry_with"]) == ("ambiguous_connection", "connection_id")
            assert 'connector_key "mail"' in error["hint"]
            assert [entry["connector_key"] for entry in error["available_connections"]] == [
                "mail",
                "mail",
                "chat",
            ]
            again = await w.call(access, tool, stream="messages", connector_key="mail", **given)
            assert not again.is_error, again.text

    in_world(work)
