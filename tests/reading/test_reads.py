"""Reads over REST, from the request's bytes to the answer's, on a real store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

import headgate.home
from headgate.model.grant import Grant
from headgate.model.ids import ConnectionId
from headgate.model.plan import BOOKMARK_DAYS
from headgate.store.changes.retention import KEEP_DAYS, ChangeRetention
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import writing_store
from headgate.store.search import lexical as search
from tests.in_process import NOW, LocalProgram, local_program, record
from tests.policy.worlds import grant, shop_document, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Home:
    def __init__(self, program: LocalProgram, first: str, second: str, token: str) -> None:
        self.program, self.first, self.second, self.token = program, first, second, token

    async def get(self, path: str, **more):
        return await self.program.get(path, self.token, **more)


def granted(first: str, second: str) -> Grant:
    both = (ConnectionId(first), ConnectionId(second))
    return grant(
        stream_grant("messages", "id", "sender", "subject", "sent_at", "size", "headers", connections=both),
        stream_grant("attachments", "id", "message_id", connections=both[:1]),
    )


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        first, second = await program.connect("mail", "Home"), await program.connect("mail", "mail")
        for at, connection in enumerate((first, second)):
            await program.ingest(
                connection,
                "messages",
                [
                    record(
                        f"m{n}" if n else "shared",
                        sender=f"s{n % 3}",
                        subject=f"bridge plan {n} of {at}",
                        body="the hidden zanzibar",
                        sent_at=f"2026-03-{n + 1:02}T0{at}:00:00Z",
                        size=n,
                    )
                    for n in range(20)
                    if n % 2 == at or not n
                ],
            )
        await program.ingest(
            first, "attachments",
            [{"key": ["m2", str(n)], "data": {"id": str(n), "message_id": "m2"}, "emitted_at": "2026-03-01T00:00:00Z"}
             for n in range(7)],
        )  # fmt: skip
        yield Home(program, first, second, await program.grant(granted(first, second)))


async def test_a_page_merges_all_connections_in_one_order_under_one_limit_and_one_cursor(home: Home):
    seen: list[str] = []
    path = "/v1/streams/messages/records?limit=4&fields=id,sent_at&count=exact"
    while path:
        body = (await home.get(path)).body
        assert body["meta"]["count"] == {"kind": "exact", "value": 21}
        assert len(body["data"]) <= 4
        seen += [row["data"]["sent_at"] for row in body["data"]]
        path = body["links"]["next"]
    assert len(seen) == 21
    assert seen == sorted(seen, reverse=True)


async def test_rows_say_where_they_come_from_and_placeholder_names_are_left_out(home: Home):
    rows = (await home.get("/v1/streams/messages/records?limit=2")).body["data"]
    by_connection = {row["connection_id"]: row for row in rows}
    assert by_connection[home.first]["display_name"] == "Home"
    assert "display_name" not in by_connection[home.second]
    assert all(row["connector_key"] == "mail" for row in rows)
    assert all("body" not in row["data"] for row in rows)


@pytest.mark.hostile("T19")
async def test_a_key_that_two_connections_have_is_a_choice_for_the_caller(home: Home):
    answer = await home.get("/v1/streams/messages/records/shared")
    assert (answer.status, answer.code) == (409, "ambiguous_connection")
    error = answer.body["error"]
    assert error["retry_with"] == "connection_id"
    assert {one["connection_id"] for one in error["available_connections"]} == {home.first, home.second}
    chosen = await home.get(f"/v1/streams/messages/records/shared?connection_id={home.first}")
    assert chosen.body["data"]["subject"] == "bridge plan 0 of 0"


async def test_what_another_process_changes_is_so_for_the_next_request(home: Home):
    """Tokens, grants and the catalog are remembered between requests, but only while nothing was written."""
    for _ in range(2):
        assert (await home.get("/v1/streams/messages/records/shared")).code == "ambiguous_connection"
    other = SqliteStore(home.program.services.home, lambda: NOW)
    try:
        await other.rename_connection(ConnectionId(home.second), "Office")
        asked = f"/v1/streams/messages/records/shared?connection_id={home.second}"
        assert (await home.get(asked)).body["display_name"] == "Office"
        await other.delete_connection(ConnectionId(home.second))
        found = await home.get("/v1/streams/messages/records/shared")
        assert (found.status, found.body["connection_id"]) == (200, home.first)
        assert (await home.get(asked)).code == "connection_not_found"
        await other.delete_connection(ConnectionId(home.first))
        assert (await home.get("/v1/streams/messages/records/shared")).status == 403
    finally:
        await other.close()


async def test_filters_work_on_granted_declared_fields(home: Home):
    path = (
        "/v1/streams/messages/records?filter[sender]=s1&filter[sent_at][gte]=2026-03-10T00:00:00Z&fields=id"
    )
    assert {row["id"] for row in (await home.get(path)).body["data"]} == {"m10", "m13", "m16", "m19"}


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("filter[body]=x", 403, "field_not_granted"),
        ("filter[nope]=x", 403, "field_not_granted"),
        ("filter[size][gt]=x", 400, "invalid_request"),
        ("filter[size][gte]=1", 400, "invalid_request"),
        ("filter[size][between]=1", 400, "invalid_request"),
        ("filter=x", 400, "invalid_request"),
        ("sort=body", 403, "field_not_granted"),
        ("sort=size", 400, "invalid_sort"),
        ("sort=-sent_at&order=asc", 400, "invalid_sort"),
        ("order=up", 400, "invalid_request"),
        ("fields=body", 403, "field_not_granted"),
        ("fields=*", 400, "invalid_request"),
        ("view=nope", 400, "invalid_request"),
        ("view=subjects&fields=id", 400, "invalid_request"),
        ("expand=nope", 403, "insufficient_scope"),
        ("expand=attachments&expand_limit[attachments]=99", 400, "invalid_expand"),
        ("expand_limit[attachments]=1", 400, "invalid_request"),
        ("cursor=nonsense", 400, "invalid_cursor"),
        ("wat=1", 400, "invalid_request"),
        ("limit=1&limit=2", 400, "invalid_request"),
        ("connection_id=cin_nope", 404, "connection_not_found"),
        ("connection_id=a&connector_instance_id=b", 400, "invalid_argument"),
        ("changes_since=beginning", 400, "invalid_argument"),
        ("changes_since=beginning&sort=sent_at", 400, "invalid_request"),
        ("changes_since=beginning&expand=attachments", 400, "invalid_expand"),
        ("changes_since=2026-01-01T00:00:00Z&connection_id={first}", 400, "invalid_cursor"),
        ("count=many", 400, "invalid_request"),
    ],
)  # fmt: skip
@pytest.mark.hostile("47", "48", "58", "65")
async def test_a_list_refuses_what_it_does_not_take(home: Home, query: str, status: int, code: str):
    answer = await home.get("/v1/streams/messages/records?" + query.format(first=home.first))
    assert (answer.status, answer.code) == (status, code), answer.content


@pytest.mark.parametrize(
    ("given", "rows"), [("500", 21), ("0", 21), ("-1", 21), ("1e9", 21), ("NaN", 21), ("3", 3)]
)
@pytest.mark.hostile("66")
async def test_a_limit_that_is_too_large_is_cut_with_a_warning_and_never_an_error(
    home: Home, given: str, rows: int
):
    answer = await home.get(f"/v1/streams/messages/records?limit={given}&fields=id")
    assert answer.status == 200
    assert len(answer.body["data"]) == rows
    codes = [warning["code"] for warning in answer.body["meta"]["warnings"]]
    assert codes == {"500": ["limit_clamped"], "3": []}.get(given, ["compatibility_fallback"])


async def test_children_come_along_with_their_own_limit(home: Home):
    answer = await home.get(
        f"/v1/streams/messages/records/m2?expand=attachments&expand_limit[attachments]=4&connection_id={home.first}"
    )
    expanded = answer.body["expanded"]["attachments"]
    assert len(expanded["data"]) == 4
    assert expanded["has_more"] is True
    assert expanded["data"][0]["data"]["message_id"] == "m2"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("metric=count", {"value": 21}),
        ("metric=sum&field=size", {"value": 190}),
        ("metric=count_distinct&field=sender", {"value": 3}),
        ("metric=count&group_by=sender&limit=2", {"other_count": 6, "filtered_record_count": 21}),
        ("metric=max&field=sent_at", {"value": "2026-03-20T01:00:00Z", "missing_value_count": 0}),
    ],
)
async def test_aggregates_are_exact_over_all_connections(home: Home, query: str, expected: dict[str, object]):
    body = (await home.get(f"/v1/streams/messages/aggregate?{query}")).body
    assert {name: body[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 400),
        ("metric=median", 400),
        ("metric=sum", 400),
        ("metric=count&field=size", 400),
        ("metric=sum&field=weight", 403),
        ("metric=max&field=size", 400),
        ("metric=count&group_by=body", 403),
        ("metric=sum&field=size&group_by=body", 403),
        ("metric=sum&field=size&group_by=sender&group_by_time=sent_at", 400),
        ("metric=count&group_by_time=sent_at", 400),
        ("metric=count&group_by_time=sent_at&granularity=day&time_zone=Mars/Base", 400),
        ("metric=count&group_by=sender&limit=101", 400),
        ("metric=count&limit=x", 400),
        ("metric=count&granularity=day", 400),
    ],
)
async def test_an_aggregate_refuses_what_does_not_go_together(home: Home, query: str, status: int):
    answer = await home.get(f"/v1/streams/messages/aggregate?{query}")
    assert answer.status == status, answer.content


async def test_groups_have_a_value_beside_their_count_and_both_keys(home: Home):
    path = "/v1/streams/messages/aggregate?metric=sum&field=size"
    by_sender = (await home.get(f"{path}&group_by=sender")).body
    assert sum(group["value"] for group in by_sender["groups"]) == 190
    assert sum(group["count"] for group in by_sender["groups"]) == 21
    both = (await home.get(f"{path}&group_by=sender&group_by_time=sent_at&granularity=year&limit=100")).body
    assert both["time_zone"] == "UTC"
    assert [{**group, "time": "2026-01-01"} for group in by_sender["groups"]] == both["groups"]
    assert both["other_count"] == 0


@pytest.mark.hostile("50", "T7")
async def test_search_finds_granted_text_only_and_says_how_to_read_on(home: Home):
    hits = (await home.get("/v1/search?q=bridge+plan&limit=5")).body
    assert hits["meta"]["count"] == 21
    assert len(hits["data"]) == 5
    assert "score" not in hits["data"][0]
    first = hits["data"][0]
    assert first["snippet"]["text"].count("<mark>") == first["snippet"]["text"].count("</mark>") > 0
    follow = first["evidence_excerpts"][0]
    window = await home.get(
        f"{first['record_url']}/field-window?field={follow['field_path']}&connection_id={first['connection_id']}"
    )
    assert window.body["window"]["complete"] is True
    hidden = (await home.get("/v1/search?q=zanzibar")).body
    assert (hidden["data"], hidden["meta"]["count"]) == ([], 0)
    more = await home.get(hits["links"]["next"])
    assert not {
        hit["record_key"] for hit in more.body["data"] if hit["connection_id"] == first["connection_id"]
    } & {hit["record_key"] for hit in hits["data"] if hit["connection_id"] == first["connection_id"]}


async def test_an_excerpt_of_a_hit_can_be_used_without_the_hit(home: Home):
    long = record(
        "long", sender="s1", subject=f"quay {'and more ' * 40}", sent_at="2026-03-30T00:00:00Z", size=1
    )
    await home.program.ingest(home.first, "messages", [long])
    hit = (await home.get("/v1/search?q=quay")).body["data"][0]
    assert hit["evidence_excerpts"] == [
        {
            "object": "evidence_excerpt",
            "field_path": "subject",
            "preview_text": hit["snippet"]["text"],
            "truncated": True,
            "provenance": "lexical_match",
            "read": {
                "object": "field_window_read",
                "method": "GET",
                "route": "/v1/streams/messages/records/long/field-window",
                "stream": "messages",
                "record_id": "long",
                "field": "subject",
                "connection_id": home.first,
                "offset_chars": 0,
            },
        }
    ]
    short = (await home.get("/v1/search?q=%22plan+4%22")).body["data"][0]["evidence_excerpts"]
    assert [(one["preview_text"], one["truncated"]) for one in short] == [
        ("bridge <mark>plan 4</mark> of 0", False)
    ]


async def test_recall_is_complete_since_pages_lead_to_every_hit(home: Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "RANKED_MOST", 4)
    page = (await home.get("/v1/search?q=bridge&limit=3")).body
    recall = page["meta"]["recall"]
    assert (recall["complete"], recall["truncated"], recall["ranking_scope"]) == (
        True,
        False,
        "candidate_window",
    )
    hits = list(page["data"])
    while page["has_more"]:
        page = (await home.get(page["links"]["next"])).body
        hits += page["data"]
    assert len({(hit["connection_id"], hit["record_key"]) for hit in hits}) == len(hits) == 21


async def test_a_stream_has_the_schema_of_each_field_and_a_connector_objects_for_streams(home: Home):
    fields = (await home.get("/v1/streams/messages")).body["field_capabilities"]
    assert fields["subject"]["schema"]["type"] == ["string", "null"]
    assert all("schema" in one for one in fields.values())
    rows = (await home.get("/v1/connectors")).body["data"]
    assert {stream["object"] for row in rows for stream in row["streams"]} == {"stream"}


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
async def test_a_search_that_is_not_offered_says_so_and_names_the_one_that_is(home: Home, mode: str):
    answer = await home.get(f"/v1/search/{mode}?q=bridge")
    assert (answer.status, answer.code) == (404, "unsupported")
    assert "/v1/search" in answer.body["error"]["hint"]
    assert f"no {mode} search" in answer.body["error"]["message"]


@pytest.mark.parametrize("query", ["q=", "", "q=x&rank=1", "q=x&fields=id", "q=x&filter[sender]=s1"])
async def test_search_refuses_what_it_does_not_take(home: Home, query: str):
    assert (await home.get(f"/v1/search?{query}")).status == 400


async def test_windows_join_to_the_whole_text_and_end_when_the_text_changes(home: Home):
    path = f"/v1/streams/messages/records/m4/field-window?field=subject&connection_id={home.first}"
    joined, window = "", (await home.get(path + "&limit_chars=5")).body["window"]
    while True:
        joined += window["text"]
        cursor = window["next_cursor"]
        if cursor is None:
            break
        window = (await home.get(f"{path}&cursor={cursor}")).body["window"]
    assert joined == "bridge plan 4 of 0"
    before = (await home.get(path + "&limit_chars=5")).body["window"]["next_cursor"]
    changed = record("m4", sender="s1", subject="another text", sent_at="2026-03-05T00:00:00Z")
    await home.program.ingest(home.first, "messages", [changed])
    stale = await home.get(f"{path}&cursor={before}")
    assert (stale.status, stale.code) == (410, "cursor_expired")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "invalid_field_path"),
        ("field=", 400, "invalid_field_path"),
        ("field=body", 403, "field_not_granted"),
        ("field=size", 422, "field_not_text"),
        ("field=headers", 404, "field_not_found"),
        ("field=subject&offset_chars=-1", 400, "invalid_window"),
        ("field=subject&limit_chars=0", 400, "invalid_window"),
        ("field=subject&limit_chars=x", 400, "invalid_window"),
        ("field=subject&q=plan&offset_chars=1", 400, "invalid_window"),
        ("field=subject&before_chars=1", 400, "invalid_window"),
        ("field=subject&q=plan&before_chars=9000", 400, "invalid_window"),
        ("field=subject&q=absent", 404, "query_not_found"),
        ("field=subject&cursor=fw1.AAAA", 400, "invalid_cursor"),
        ("field=subject&wat=1", 400, "invalid_request"),
    ],
)
async def test_a_window_refuses_what_cannot_be_shown(home: Home, query: str, status: int, code: str):
    answer = await home.get(
        f"/v1/streams/messages/records/m2/field-window?connection_id={home.first}&{query}"
    )
    assert (answer.status, answer.code) == (status, code), answer.content


@pytest.mark.hostile("56", "T12")
async def test_changes_tell_visible_changes_once_and_hidden_ones_never(home: Home):
    base = f"/v1/streams/messages/records?connection_id={home.first}&fields=id,subject"
    first = (await home.get(base + "&changes_since=beginning&limit=100")).body
    mark = quote(first["next_changes_since"])
    for n in range(100):
        await home.program.ingest(
            home.first,
            "messages",
            [
                record(
                    "m2",
                    sender="s2",
                    subject="bridge plan 2 of 0",
                    body=f"v{n}",
                    sent_at="2026-03-03T00:00:00Z",
                )
            ],
        )
    unchanged = (await home.get(f"{base}&changes_since={mark}")).body
    assert unchanged["data"] == []
    await home.program.ingest(
        home.first, "messages", [record("m2", subject="now visible", sent_at="2026-03-03T00:00:00Z")]
    )
    path = f"/v1/streams/messages/records/m4?connection_id={home.first}"
    removed = await home.program.ask("DELETE", path, home.program.owner)
    assert removed.status == 204
    changed = (await home.get(f"{base}&changes_since={quote(unchanged['next_changes_since'])}")).body["data"]
    assert [(row["id"], row.get("deleted", False)) for row in changed] == [("m2", False), ("m4", True)]


async def test_schema_flags_are_what_is_enforced(home: Home):
    body = (await home.get(f"/v1/schema?stream=messages&connection_id={home.first}&detail=full")).body
    (stream,) = body["connectors"][0]["streams"]
    for name, flags in stream["field_capabilities"].items():
        exact = await home.get(f"/v1/streams/messages/records?filter[{name}]=2026-03-01T00:00:00Z")
        accepted = exact.status == 200 or "is compared with" in exact.body["error"]["message"]
        assert accepted is flags["exact_filter"]["usable"], name
        group = await home.get(f"/v1/streams/messages/aggregate?metric=count&group_by={name}")
        assert (group.status == 200) is flags["aggregation"]["group_by"]["usable"], name


@pytest.mark.hostile("59", "T13")
async def test_a_narrow_schema_names_nothing_hidden(home: Home):
    for path in (
        "/v1/schema",
        "/v1/schema?view=compact",
        "/v1/streams",
        "/v1/streams/messages",
        "/v1/connectors",
    ):
        text = (await home.get(path)).content.decode()
        for hidden in ("body", "is_read", "weight", "anything", "zanzibar"):
            assert f'"{hidden}"' not in text, (path, hidden)


async def test_full_detail_needs_one_stream_of_one_connection(home: Home):
    assert (await home.get("/v1/schema?detail=full")).body["error"]["param"] == "detail"
    several = await home.get("/v1/schema?detail=full&stream=messages")
    assert (several.status, several.code) == (409, "ambiguous_schema_detail")
    assert (await home.get("/v1/schema?stream=nope")).body["connectors"] == []


async def test_strict_core_restores_the_refusals_and_schema_says_so(tmp_path: Path):
    async with local_program(tmp_path, strict_core="true") as program:
        await program.declare("mail", declaration())
        first = await program.connect("mail")
        token = await program.grant(granted(first, first + "x"))
        for query, param in (
            ("filter[sender]=a", "filter"),
            ("expand=attachments", "expand"),
            ("view=subjects", "view"),
        ):
            answer = await program.get(f"/v1/streams/messages/records?{query}", token)
            assert (answer.status, answer.body["error"]["param"]) == (400, param)
        grouped = "group_by_time=sent_at&granularity=day"
        for query, param in (
            (f"metric=sum&field=size&{grouped}", "metric"),
            (f"metric=count&group_by=sender&{grouped}", "group_by"),
        ):
            answer = await program.get(f"/v1/streams/messages/aggregate?{query}", token)
            assert (answer.status, answer.body["error"]["param"]) == (400, param)
        stream = (await program.get("/v1/streams/messages", token)).body
        assert stream["field_capabilities"]["sender"]["exact_filter"] == {
            "declared": True, "usable": False, "reason": "strict_core",
        }  # fmt: skip
        assert (
            await program.get("/v1/streams/messages/records?filter[sender]=a", program.owner)
        ).status == 200


async def test_a_bookmark_lives_for_as_long_as_changes_are_kept(home: Home):
    base = f"/v1/streams/messages/records?connection_id={home.first}&fields=id"
    mark = quote((await home.get(base + "&changes_since=beginning&limit=100")).body["next_changes_since"])
    home.program.clock.at += BOOKMARK_DAYS * DAY - 1
    assert (await home.get(f"{base}&changes_since={mark}")).body["data"] == []
    # It ends with an hour.
    home.program.clock.at += 3_600_000_000
    stale = await home.get(f"{base}&changes_since={mark}")
    assert (stale.status, stale.code) == (410, "cursor_expired")
    assert (await home.get(base + "&changes_since=beginning")).status == 200


async def test_a_bookmark_from_before_the_store_forgot_its_changes_has_expired(home: Home):
    base = f"/v1/streams/messages/records?connection_id={home.first}&fields=id"
    mark = quote((await home.get(base + "&changes_since=beginning&limit=100")).body["next_changes_since"])
    # Another process with a clock that runs ahead: this one still takes the bookmark for a young one.
    await home.program.ingest(home.first, "messages", [record("new", sent_at="2026-03-03T00:00:00Z")])
    await asyncio.to_thread(forget_changes, home.program.services.home)
    stale = await home.get(f"{base}&changes_since={mark}")
    assert (stale.status, stale.code) == (410, "cursor_expired")
    assert (await home.get(base + "&changes_since=beginning")).status == 200


def forget_changes(place: headgate.home.Home) -> None:
    """Do what maintenance does on the day after a note, and again when that note is old."""
    with writing_store(place) as database:
        for day in (1, KEEP_DAYS + 2):
            retention = ChangeRetention(lambda day=day: NOW + day * DAY)
            while retention.plan(database):
                retention.step(database)


async def test_a_projection_is_exactly_the_fields_asked_for(home: Home):
    page = await home.get("/v1/streams/messages/records?fields=subject,size&limit=1")
    assert page.body["data"][0]["data"].keys() == {"subject", "size"}
    one = await home.get("/v1/streams/messages/records/m2?fields=size")
    assert one.body["data"] == {"size": 2}


async def test_a_connector_key_reads_all_connections_of_one_connector(home: Home):
    program, owner = home.program, home.program.owner
    await program.declare("shop", shop_document())
    shop = await program.connect("shop")
    await program.ingest(shop, "messages", [record("m1", sender="s0", subject="bridge shop")])
    messages = "/v1/streams/messages"
    for path in (f"{messages}/records", f"{messages}/aggregate?metric=count"):
        assert (await program.get(path, owner)).code == "ambiguous_connection"
    page = (await program.get(f"{messages}/records?connector_key=mail&limit=100", owner)).body
    assert {row["connection_id"] for row in page["data"]} == {home.first, home.second}
    old = (await program.get(f"{messages}/records?connector_id=mail&limit=100", owner)).body
    assert old["data"] == page["data"]
    assert [one["code"] for one in old["meta"]["warnings"]] == ["deprecated_alias_used"]
    both = await program.get(f"{messages}/records?connector_id=mail&connector_key=shop", owner)
    assert (both.status, both.code) == (400, "invalid_argument")
    first = (await program.get(f"{messages}/records?connector_key=mail&limit=1", owner)).body
    assert (await program.get(first["links"]["next"], owner)).body["data"] == page["data"][1:2]
    counts = (await program.get(f"{messages}/aggregate?metric=count&connector_key=mail", owner)).body
    assert counts["value"] == 21
    hits = (await program.get("/v1/search?q=bridge&connector_key=shop", owner)).body
    assert [hit["connection_id"] for hit in hits["data"]] == [shop]
    schema = (await program.get("/v1/schema?connector_key=shop", owner)).body
    assert [one["connector_key"] for one in schema["connectors"]] == ["shop"]
    both = await program.get(f"{messages}/records?connector_key=shop&connection_id={home.first}", owner)
    assert (both.status, both.body["error"]["param"]) == (404, "connection_id")
    # A connector outside the grant and one that does not exist are refused alike.
    for path in (f"{messages}/records?", f"{messages}/aggregate?metric=count&", "/v1/search?q=bridge&"):
        hidden, unknown = [await home.get(f"{path}connector_key={key}") for key in ("shop", "none")]
        words = unknown.body["error"]["message"].replace("none", "shop")
        assert hidden.body["error"] | {"request_id": ""} == unknown.body["error"] | {
            "request_id": "",
            "message": words,
        }
        assert (hidden.status, hidden.body["error"]["param"]) == (404, "connector_key")
    changes = await home.get(f"{messages}/records?changes_since=beginning&connector_key=mail")
    assert (changes.status, changes.body["error"]["param"]) == (400, "connector_key")
