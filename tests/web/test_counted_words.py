"""Numbers over the records that hold words: by REST, by MCP and through a remote resource server alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx2
import pytest

from headgate.audit.activity import read_event
from headgate.errors import RemoteRefused, Unsupported
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.query import AggregateQuery, ExactFilter, Extraction, ExtractType, Metric, SearchQuery
from headgate.reading.remote import RemoteResourceServer
from headgate.store.search import counting, extracting
from tests import postgres
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
MESSAGES = "/v1/streams/messages/aggregate"
SINCE = 1_772_323_200_000_000  # 2026-03-01
BEFORE, AFTER = "2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z"
#: Key, sender, subject, body, size; all are in time.
HOME_MAIL = (
    ("m1", "ann", "Boat insurance", "The cover is paid.", 1),
    ("m2", "bob", "Boat", "The insurance of the boat is due.", 20),
    ("m3", "ann", "Boat", "Ready to be launched.", 300),
    ("m4", "bob", "Insurance", "The cover of the house.", 4_000),
)
WORK_MAIL = (("m5", "ann", "The boat of the firm", "Its insurance is not paid.", 50_000),)
LONG = "The story goes on. " * 1_500
BILLS = (
    ("b1", "cy", "Bill of May", "Dear Ann, the TOTAL is £12.50, due on 4 March 2026.", 0),
    ("b2", "cy", "Bill of June", "The total\n  is: 1.234,50 EUR, due on 2026-04-01.", 0),
    ("b3", "cy", "Bill of July", "The total is not known yet. It was due on 05/03/2026.", 0),
    ("b4", "dan", "Bill of fish", "A refund: the total is -3. The total is 99.", 0),
    # The phrase stands beyond the first pieces of a long text, and across two of them.
    ("b5", "dan", "Bill, long", LONG[:8184] + " the total is 0.10. " + LONG, 0),
    ("b6", "dan", "The total is 40.20", "The total is 41.20 in the body.", 0),
)
WORK_BILLS = (("b7", "cy", "Bill of the firm", "Here the total is 100", 0),)
TOTAL = {"after": "the total is", "type": "number"}
DUE = {"after": "due on", "type": "date"}
ENGINES = ("file", *(("database",) if postgres.programs() else ()))


class Counted(NamedTuple):
    """A program with mail of two accounts, and what a client may read of it."""

    program: LocalProgram
    token: str
    connections: tuple[str, str]

    async def rest(self, path: str = MESSAGES, **params: str) -> dict[str, Any]:
        answer = await self.program.get(f"{path}?{urlencode(params)}", self.token)
        return answer.body

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        answer = await self.program.ask("POST", "/mcp", self.token, body=body, headers=headers)
        return answer.body["result"]

    async def aggregate(self, **arguments: Any) -> tuple[dict[str, Any], str]:
        """Ask by both surfaces, which answer the same; returns the body, and the text of the tool."""
        arguments = {"metric": "count"} | arguments
        result = await self.tool("aggregate", stream="messages", **arguments)
        body = await self.rest(**_written(arguments))
        if "error" in body:
            assert result["isError"]
            return body, result["content"][0]["text"]
        path = f"{MESSAGES}?{urlencode(_written(arguments))}"
        asked = await self.program.ask("GET", path, self.token, headers=[("prefer", "page-bytes=6800")])
        short, whole = asked.body, dict(body)
        assert result["structuredContent"]["data"] == short
        # The short form leaves out what says nothing, and the address.
        assert short.pop("meta", {}).items() <= whole.pop("meta").items()
        assert short.items() <= whole.items()
        left = whole.keys() - short.keys() - {"links", "limit"}
        assert not any(whole[name] for name in left)
        return body, result["content"][0]["text"]

    def remote(self) -> RemoteResourceServer:
        """Read through HTTP, as another program would."""
        transport = httpx2.ASGITransport(app=self.program.app)
        headers = {"Authorization": f"Bearer {self.token}"}
        return RemoteResourceServer(
            "http://127.0.0.1", httpx2.AsyncClient(transport=transport, headers=headers)
        )

    async def logged(self) -> Any:
        await self.program.services.pump.flush()
        (newest,) = await self.program.services.ledger.newest(None, 1)
        return read_event(newest)


def _written(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Write the arguments of a tool as parameters."""
    written: dict[str, str] = {}
    for name, value in arguments.items():
        if isinstance(value, list):
            written[name] = ",".join(value)
        elif isinstance(value, dict):
            written |= {f"{name}[{member}]": str(text) for member, text in value.items()}
        else:
            written[name] = str(value)
    return written


def mail(*rows: tuple[str, str, str, str, int], sent_at: str = AFTER) -> list[dict[str, Any]]:
    return [
        record(key, sender=sender, subject=subject, body=body, size=size, sent_at=sent_at)
        for key, sender, subject, body, size in rows
    ]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=ENGINES)
async def counted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Counted]:
    place = tmp_path_factory.mktemp("counted")
    flags = (
        {} if request.param == "file" else {"store_url": postgres.database_url(), "store_home": str(place)}
    )
    async with local_program(place, log_queries="true", **flags) as program:
        document = declaration()
        document["streams"].append(
            {
                "name": "notes",
                "semantics": "mutable_state",
                "schema": {"properties": {"id": {"type": "string"}, "text": {"type": "string"}}},
                "primary_key": ["id"],
                "selection": {"fields": True, "resources": False},
                "query": {"search": {"lexical_fields": ["text"]}, "aggregations": {"count": True}},
            }
        )
        await program.declare("mail", document)
        home, work, hidden = [await program.connect("mail", name) for name in ("Home", "Work", "Hidden")]
        await program.ingest(home, "messages", mail(*HOME_MAIL))
        await program.ingest(work, "messages", mail(*WORK_MAIL))
        secret = ("x1", "ann", "Boat insurance", "Boat insurance", 7_000_000)
        await program.ingest(hidden, "messages", mail(secret))
        await program.ingest(home, "messages", mail(secret, sent_at=BEFORE))
        await program.ingest(home, "messages", mail(*BILLS))
        await program.ingest(work, "messages", mail(*WORK_BILLS))
        bill = ("x2", "ann", "Bill", "The total is 1,000,000.00, due on 1 January 2020.", 0)
        await program.ingest(hidden, "messages", mail(bill))
        await program.ingest(home, "messages", mail(bill, sent_at=BEFORE))
        await program.ingest(home, "notes", [record("n1", text="The boat")])
        both = (ConnectionId(home), ConnectionId(work))
        token = await program.grant(
            grant(
                stream_grant(
                    "messages", "id", "sender", "subject", "body", "size", "sent_at",
                    connections=both, time=TimeConstraint(FieldName("sent_at"), SINCE),
                ),
                stream_grant("notes", "id", connections=both),
            )
        )  # fmt: skip
        yield Counted(program, token, (home, work))


async def test_records_count_that_hold_all_the_words_over_all_connections(counted: Counted):
    for q, count in (
        ("boat", 4),
        ("boat insurance", 3),
        ('"boat insurance"', 1),
        ("boat -paid", 2),
        ("launched OR house", 2),
        ("boat launched insurance", 0),
        ("insur*", 4),
    ):
        body, _ = await counted.aggregate(q=q)
        assert (body["value"], body["filtered_record_count"], body["q"]) == (count, count, q)
        found = await counted.rest("/v1/search", q=q, limit="0", **{"streams[]": "messages"})
        assert found["meta"]["count"] - found["meta"].get("partial_count", 0) == count


async def test_every_metric_and_every_group_is_of_the_records_that_hold_the_words(counted: Counted):
    for metric, field, value in (
        ("sum", "size", 50_021),
        ("max", "sent_at", AFTER),
        ("count_distinct", "sender", 2),
    ):
        body, _ = await counted.aggregate(metric=metric, field=field, q="boat insurance")
        assert (body["value"], body["filtered_record_count"]) == (value, 3)
    body, text = await counted.aggregate(q="boat insurance", group_by="sender")
    assert [(group["key"], group["count"]) for group in body["groups"]] == [("ann", 2), ("bob", 1)]
    assert "words: boat, insurance" in text
    body, _ = await counted.aggregate(
        metric="sum", field="size", q="boat", group_by_time="sent_at", granularity="month"
    )
    assert [(group["key"], group["value"]) for group in body["groups"]] == [("2026-03-01", 50_321)]


async def test_filters_and_a_connection_narrow_what_holds_the_words(counted: Counted):
    body, _ = await counted.aggregate(q="boat insurance", filter={"sender": "ann"})
    assert body["value"] == 2
    body, _ = await counted.aggregate(
        q="boat", metric="sum", field="size", connection_id=counted.connections[0]
    )
    assert body["value"] == 321


async def test_words_are_looked_for_in_the_named_fields_alone(counted: Counted):
    body, _ = await counted.aggregate(q="boat insurance", **{"in": ["subject"]})
    assert (body["value"], body["in"]) == (1, ["subject"])
    body, _ = await counted.aggregate(q="boat insurance", **{"in": ["subject", "body"]})
    assert body["value"] == 3
    page = await counted.rest("/v1/search", q="insurance", **{"in": "body"})
    assert {row["record_key"] for row in page["data"]} == {"m2", "m5"}
    assert {row["snippet"]["field"] for row in page["data"]} == {"body"}
    assert {field for row in page["data"] for field in row["matched_fields"]} == {"body"}
    result = await counted.tool("search", q="insurance", **{"in": ["body"]})
    assert [one["id"].rpartition(":")[2] for one in result["structuredContent"]["results"]] == [
        row["record_key"] for row in page["data"]
    ]


@pytest.mark.parametrize("name", ["weight", "headers", "nope"])
async def test_a_field_that_is_hidden_or_unknown_is_refused_in_the_same_words(counted: Counted, name: str):
    errors = [
        (await counted.aggregate(q="boat", **{"in": [name]}))[0]["error"],
        (await counted.rest("/v1/search", q="boat", **{"in": f"subject,{name}"}))["error"],
        (await counted.tool("search", q="boat", **{"in": [name]}))["structuredContent"]["error"],
    ]
    assert {(error["code"], error["param"]) for error in errors} == {("field_not_granted", "in")}
    near = " Near: sender." if name == "headers" else ""
    words = f'messages has no field "?" that you may read.{near} Searched fields: sender, subject, body.'
    assert {error["message"].replace(name, "?") for error in errors} == {words}


async def test_what_cannot_be_searched_or_makes_no_sense_is_refused(counted: Counted):
    for arguments, param in (
        ({"q": "boat", "in": ["size"]}, "in"),
        ({"in": ["subject"]}, "in"),
        ({"q": "-boat"}, "q"),
        ({"q": "x" * 600}, "q"),
    ):
        body, _ = await counted.aggregate(**arguments)
        assert (body["error"]["code"], body["error"]["param"]) == ("invalid_request", param)
    for arguments in ({"q": ""}, {"q": "boat", "in": []}, {"q": "boat", "in": [""]}):
        result = await counted.tool("aggregate", stream="messages", metric="count", **arguments)
        assert result["structuredContent"]["error"]["code"] == "invalid_request"
    assert (await counted.rest(metric="count", q="boat", **{"in": ""}))["error"]["param"] == "in"
    # None of the fields that are granted of it can be searched.
    refused = await counted.rest("/v1/streams/notes/aggregate", metric="count", q="boat")
    assert (refused["error"]["code"], refused["error"]["param"]) == ("invalid_request", "q")


async def test_an_answer_says_how_the_words_were_understood_and_that_nothing_matched(counted: Counted):
    body, text = await counted.aggregate(q="insurrance")
    assert body["meta"]["understood"]["words"] == [{"word": "insurrance", "corrected_to": ["insurance"]}]
    assert body["value"] == 4
    assert "insurrance 0 (taken for insurance)" in text
    body, text = await counted.aggregate(q="zeppelin")
    assert (body["value"], body["filtered_record_count"]) == (0, 0)
    assert "Nothing matched." in text
    body, text = await counted.aggregate(q="zeppelin", metric="max", field="sent_at")
    assert body["value"] is None
    assert "Nothing matched." in text
    body, text = await counted.aggregate(q="zeppelin", group_by="sender")
    assert (body["groups"], body["other_count"]) == ([], 0)


async def test_a_search_without_hits_only_counts_and_discloses_no_record(counted: Counted):
    page = await counted.rest("/v1/search", q="boat insurance", limit="0")
    assert (page["data"], page["has_more"], page["meta"]["count"]) == ([], False, 3)
    assert [word["word"] for word in page["meta"]["understood"]["words"]] == ["boat", "insurance"]
    assert not (await counted.logged()).parts
    result = await counted.tool("search", q="boat insurance", limit=0)
    assert result["structuredContent"]["results"] == []
    text = result["content"][0]["text"]
    assert "count=exact:3" in text
    assert "words: boat 4, insurance 4; 3 matched all" in text
    assert "Counted only" in text
    assert not (await counted.logged()).parts
    partly = await counted.rest("/v1/search", q="launched house", limit="0")
    assert (partly["meta"]["count"], partly["meta"]["partial_count"]) == (2, 2)
    nothing = await counted.tool("search", q="zeppelin", limit=0)
    assert "Nothing matched." in nothing["content"][0]["text"]
    # A negative limit is one that cannot be used, as before.
    assert (await counted.rest("/v1/search", q="boat", limit="-1"))["data"]
    cursor = (await counted.rest("/v1/search", q="boat", limit="1"))["next_cursor"]
    refused = await counted.rest("/v1/search", q="boat", limit="0", cursor=cursor)
    assert refused["error"]["param"] == "cursor"


async def test_the_log_names_the_fields_that_were_searched_and_holds_the_words(counted: Counted):
    await counted.rest(metric="sum", field="size", q="boat", **{"in": "subject"})
    event = await counted.logged()
    assert event.words == "boat"
    assert [set(part.fields) for part in event.parts] == [{"size", "subject"}] * 2
    await counted.rest(metric="count", q="boat")
    assert [set(part.fields) for part in (await counted.logged()).parts] == [
        {"subject", "body", "sender"}
    ] * 2
    await counted.rest(metric="count")
    assert not (await counted.logged()).words


async def test_numbers_after_a_phrase_are_added_up_exactly(counted: Counted):
    body, text = await counted.aggregate(metric="sum", extract=TOTAL, q="bill OR total")
    assert body["value"] == "1384.30"
    assert (body["filtered_record_count"], body["value_count"], body["missing_value_count"]) == (7, 6, 1)
    assert body["extract"] == TOTAL
    about = 'sum of the first number after "the total is" of messages holding "bill OR total"'
    assert text.splitlines()[0] == f"{about}: 1384.30 · 7 records · 6 with a value"
    for metric, value in (("min", "-3"), ("max", "1234.50"), ("count", 6)):
        body, _ = await counted.aggregate(metric=metric, extract=TOTAL)
        assert (body["value"], body["filtered_record_count"], body["value_count"]) == (value, 12, 6)


async def test_dates_after_a_phrase_have_a_first_and_a_last(counted: Counted):
    for metric, value in (("min", "2026-03-04"), ("max", "2026-04-01"), ("count", 3)):
        body, text = await counted.aggregate(metric=metric, extract=DUE, q="bill")
        assert (body["value"], body["value_count"], body["missing_value_count"]) == (value, 3, 3)
    assert "the first date" in text


async def test_values_of_texts_are_grouped_filtered_and_read_in_named_fields(counted: Counted):
    body, text = await counted.aggregate(metric="sum", extract=TOTAL, group_by="sender", q="bill OR total")
    assert body["groups"] == [
        {"key": "cy", "count": 4, "value": "1347.00", "missing_value_count": 1},
        {"key": "dan", "count": 3, "value": "37.30"},
    ]
    assert "\ncy 1347.00 of 4 records, 1 without a value\ndan 37.30 of 3 records" in text
    body, _ = await counted.aggregate(
        metric="sum", extract=TOTAL, filter={"sender": "dan"}, **{"in": ["body"]}
    )
    assert body["value"] == "38.30"
    body, _ = await counted.aggregate(
        metric="max", extract=DUE, group_by_time="sent_at", granularity="month", q="bill"
    )
    assert [(group["key"], group["value"]) for group in body["groups"]] == [("2026-03-01", "2026-04-01")]
    body, _ = await counted.aggregate(
        metric="sum", extract=TOTAL, connection_id=counted.connections[1], group_by="sender", limit=1
    )
    assert (body["groups"], body["other_count"]) == ([{"key": "cy", "count": 1, "value": "100"}], 1)


async def test_without_a_value_the_answer_is_nothing_and_says_so(counted: Counted):
    wanted = {"after": "no such phrase", "type": "number"}
    for metric, value in (("sum", "0"), ("min", None), ("count", 0)):
        body, text = await counted.aggregate(metric=metric, extract=wanted)
        assert (body["value"], body["value_count"], body["missing_value_count"]) == (value, 0, 12)
        assert "No record has a value there." in text
        body, text = await counted.aggregate(metric=metric, extract=TOTAL, q="zeppelin")
        assert (body["value"], body["value_count"], body["missing_value_count"]) == (value, 0, 0)
        assert "Nothing matched." in text


@pytest.mark.parametrize(
    ("arguments", "param"),
    [
        ({"metric": "sum", "extract": TOTAL, "field": "size"}, "field"),
        ({"metric": "count_distinct", "extract": TOTAL}, "metric"),
        ({"metric": "sum", "extract": DUE}, "metric"),
        ({"metric": "sum", "extract": {"after": "x", "type": "word"}}, "extract"),
        ({"metric": "sum", "extract": {"after": "x"}}, "extract"),
        ({"metric": "sum", "extract": {"after": "", "type": "number"}}, "extract"),
        ({"metric": "sum", "extract": {"after": "£", "type": "number"}}, "extract"),
        ({"metric": "sum", "extract": {"after": "x" * 101, "type": "number"}}, "extract"),
        ({"metric": "sum", "extract": TOTAL | {"before": "x"}}, "extract"),
    ],
)
async def test_an_extraction_that_makes_no_sense_is_refused(
    counted: Counted, arguments: dict[str, Any], param: str
):
    body, _ = await counted.aggregate(**arguments)
    assert (body["error"]["code"], body["error"]["param"]) == ("invalid_request", param)
    result = await counted.tool("aggregate", stream="messages", **arguments)
    assert result["structuredContent"]["error"]["param"] == param


async def test_a_field_that_is_hidden_gives_no_value_and_is_refused_like_an_unknown_one(counted: Counted):
    for name in ("anything", "nope"):
        body, _ = await counted.aggregate(metric="sum", extract=TOTAL, **{"in": [name]})
        assert body["error"]["code"] == "field_not_granted"
        assert body["error"]["message"].startswith(f'messages has no field "{name}" that you may read.')
        assert "Searched fields:" in body["error"]["message"]


@pytest.mark.parametrize("bound", ["RECORDS_MOST", "CHARS_MOST"])
async def test_more_texts_than_are_read_are_refused_with_what_to_narrow(
    counted: Counted, monkeypatch: pytest.MonkeyPatch, bound: str
):
    for module in (counting, extracting):
        if hasattr(module, bound):
            monkeypatch.setattr(module, bound, 3)
    body, _ = await counted.aggregate(metric="sum", extract=TOTAL)
    assert (body["error"]["code"], body["error"]["param"]) == ("resource_limit", "extract")
    assert "filter" in body["error"]["hint"]
    if bound == "RECORDS_MOST":
        body, _ = await counted.aggregate(metric="sum", extract=TOTAL, filter={"sender": "dan"})
        assert body["value"] == "37.30"


async def test_the_log_names_the_fields_that_values_were_read_from_and_holds_the_phrase(counted: Counted):
    await counted.rest(metric="sum", q="bill", **_written({"extract": TOTAL, "in": ["body"]}))
    event = await counted.logged()
    assert event.words == 'bill "the total is"'
    assert [set(part.fields) for part in event.parts] == [{"body"}] * 2


async def test_a_remote_resource_server_is_asked_the_same(counted: Counted):
    remote = counted.remote()
    words = AggregateQuery(
        StreamName("messages"),
        Metric.SUM,
        FieldName("size"),
        q='"boat insurance" OR launched',
        in_fields=(FieldName("subject"), FieldName("body")),
        filters=(ExactFilter(FieldName("sender"), "ann"),),
    )
    assert (await remote.aggregate(words)).body()["value"] == 301
    total = AggregateQuery(
        StreamName("messages"), Metric.SUM, extract=Extraction("the total is", ExtractType.NUMBER), q="bill"
    )
    assert (await remote.aggregate(total)).body()["value"] == "1344.10"
    only = SearchQuery("insurance", in_fields=(FieldName("body"),), limit=0)
    assert (await remote.search(only)).body()["meta"]["count"] == 2
    with pytest.raises(RemoteRefused) as refused:
        await remote.aggregate(
            AggregateQuery(StreamName("messages"), Metric.COUNT, q="a", in_fields=("nope",))
        )
    assert (refused.value.code, refused.value.param) == ("field_not_granted", "in")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        (AggregateQuery(StreamName("messages"), Metric.COUNT, q="boat"), "q"),
        (
            AggregateQuery(StreamName("messages"), Metric.SUM, extract=Extraction("is", ExtractType.NUMBER)),
            "extract",
        ),
        (SearchQuery("boat", in_fields=(FieldName("body"),)), "in"),
        (SearchQuery("boat", limit=0), "limit"),
    ],
)
async def test_a_remote_server_that_ignores_what_was_asked_is_not_believed(
    query: AggregateQuery | SearchQuery, param: str
):
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        number = {"object": "aggregation", "metric": "count", "value": 7}
        hits = {"object": "list", "data": [{"stream": "messages"}], "meta": {}}
        body = json.dumps(number if "aggregate" in scope["path"] else hits).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as client:
        port = RemoteResourceServer("http://127.0.0.1", client)
        with pytest.raises(Unsupported) as refused:
            await (port.search(query) if isinstance(query, SearchQuery) else port.aggregate(query))
    assert refused.value.param == param
