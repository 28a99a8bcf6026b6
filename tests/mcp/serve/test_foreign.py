"""The adapter on a resource server that is not ours: what it does not send is not invented, what it sends is shown."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.mcp.serve.call import call
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import Outcome
from headgate.reading.remote import RemoteResourceServer, http_client
from headgate.text.ladder import Windows
from tests.mcp.serve.prepared import HANDLES, found, hit, page, record, window
from tests.mcp.serve.provider import provider

RECORDS = "/v1/streams/messages/records"
RECORD = f"{RECORDS}/m1"
FIELD = f"{RECORD}/field-window"
AGGREGATE = "/v1/streams/messages/aggregate"
ID = "cin_a/messages:m1"


def answered(faults: dict[str, Any], tool: str, **arguments: Any) -> tuple[Outcome, list[str]]:
    """Call a tool on a server with faults, and give its outcome and the requests that the server got."""

    async def go(address: str) -> Outcome:
        async with http_client("tok") as client:
            port = RemoteResourceServer(address, client)
            return await call(tool, arguments, Reader(port, HANDLES, address, windows=Windows.TEXT))

    with provider(faults=faults) as made:
        return asyncio.run(go(made.address)), made.asked


GROUPS = {"object": "aggregation", "stream": "messages", "metric": "count", "group_by": "sender"}


def test_a_count_of_other_groups_that_was_not_sent_is_not_zero():
    body = {**GROUPS, "groups": [{"key": "a", "count": 2}]}
    outcome, _ = answered(
        {AGGREGATE: body}, "aggregate", stream="messages", metric="count", group_by="sender"
    )
    assert outcome.text == "count of messages by sender · 1 group, others unknown\na 2"
    known, _ = answered(
        {AGGREGATE: {**body, "other_count": 0}},
        "aggregate",
        stream="messages",
        metric="count",
        group_by="sender",
    )
    assert known.text == "count of messages by sender · all 1 group\na 2"


@pytest.mark.parametrize(
    ("path", "body", "tool", "arguments"),
    [
        (RECORDS, page(record()), "query_records", {"stream": "messages"}),
        ("/v1/search", found(hit()), "search", {"q": "bridge"}),
    ],
)
def test_warnings_are_printed_and_no_cursor_is_advised_that_is_not_there(
    path: str, body: dict[str, Any], tool: str, arguments: dict[str, Any]
):
    warning = {"code": "partial_results", "message": "One source did not answer."}
    sent = {**body, "has_more": True, "meta": {"warnings": [warning, None]}}
    outcome, _ = answered({path: sent}, tool, **arguments)
    assert 'warning=partial_results "One source did not answer."' in outcome.text
    assert "the server gave no cursor" in outcome.text
    assert "cursor=next_cursor" not in outcome.text
    whole, _ = answered({path: {**sent, "next_cursor": "c1"}}, tool, **arguments)
    assert "the server gave no cursor" not in whole.text


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_a_search_that_the_server_offers_is_sent_to_it(mode: str):
    path = f"/v1/search/{mode}"
    outcome, asked = answered({path: found(hit())}, "search", q="bridge", mode=mode)
    assert asked == [f"{path}?q=bridge&limit=10"]
    assert not outcome.is_error
    assert outcome.structured


@pytest.mark.parametrize(
    ("path", "body", "tool", "arguments"),
    [
        ("/v1/search", {"hits": [hit()]}, "search", {"q": "bridge"}),
        ("/v1/search", {"results": [hit()]}, "search", {"q": "bridge"}),
        ("/v1/search", {"data": {"hits": []}}, "search", {"q": "bridge"}),
        (RECORDS, {"records": [record()]}, "query_records", {"stream": "messages"}),
        (RECORDS, [record()], "query_records", {"stream": "messages"}),
        ("/v1/schema", {"data": {"object": "schema", "connectors": []}}, "schema", {}),
        ("/v1/schema", {"schema": {"connectors": []}}, "schema", {}),
        (RECORD, {"record": record()}, "fetch", {"id": ID}),
        (FIELD, {"text": "abc"}, "read_record_field", {"id": ID, "field_path": "text"}),
        (AGGREGATE, {"result": 4}, "aggregate", {"stream": "messages", "metric": "count"}),
    ],
)
def test_an_answer_in_an_unknown_form_is_an_error_and_not_an_empty_answer(
    path: str, body: Any, tool: str, arguments: dict[str, Any]
):
    outcome, _ = answered({path: body}, tool, **arguments)
    assert outcome.is_error
    assert '"code":"resource_server_answer_unknown"' in outcome.text
    assert '"request_id":"req_7"' in outcome.text


def test_a_cursor_that_the_server_ignores_is_an_error_and_not_the_first_window_again():
    body = window("abc")
    for member in ("next_cursor", "previous_cursor"):
        del body["window"][member]
    arguments = {"id": ID, "field_path": "text"}
    outcome, _ = answered({FIELD: body}, "read_record_field", **arguments, cursor="fw1.x")
    assert outcome.is_error
    assert '"code":"invalid_cursor"' in outcome.text
    assert "offset_chars" in outcome.text
    first, _ = answered({FIELD: body}, "read_record_field", **arguments)
    assert not first.is_error
    assert '"offset_chars":3' in first.text


def test_a_connector_is_named_by_its_former_name_or_not_at_all():
    old, unnamed = hit(connection="cin_a"), hit("m2", connection="cin_b")
    for one in (old, unnamed):
        del one["connector_key"]
    del unnamed["connector_id"]
    outcome, _ = answered({"/v1/search": found(old, unnamed)}, "search", q="bridge")
    assert 'sources: "Work Slack" (slack) 1 · "Work Slack" (cin_b) 1' in outcome.text
    assert "null" not in outcome.text
