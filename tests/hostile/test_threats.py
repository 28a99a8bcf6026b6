"""What threatens a grant, tried one by one against the whole program; the rows are in rows.py."""

from __future__ import annotations

import random
import string
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import pytest

from headgate.model.grant import Grant, TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.instants import instant
from tests.conftest import Figure
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
RECORDS = "/v1/streams/messages/records"
AGGREGATE = "/v1/streams/messages/aggregate"
SINCE = "2026-03-01T00:00:00Z"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    """One granted connection with hidden fields, one hidden connection, a client and its twin."""

    def __init__(self, program: LocalProgram, seen: str, hidden: str) -> None:
        self.program, self.seen, self.hidden = program, seen, hidden
        self.token = ""

    def granted(self, name: str, *fields: str) -> Grant:
        where = (ConnectionId(self.seen),)
        shown = fields or ("id", "sender", "subject", "sent_at")
        time_ = TimeConstraint(FieldName("sent_at"), instant(SINCE))
        return grant(stream_grant("messages", *shown, connections=where, time=time_), id_=name)

    async def get(self, path: str, token: str | None = None) -> HttpAnswer:
        return await self.program.get(path, token or self.token)

    async def put(self, key: str, *, to: str | None = None, **data: Any) -> None:
        values = {"sent_at": "2026-03-05T00:00:00Z", **data}
        await self.program.ingest(to or self.seen, "messages", [record(key, **values)])

    async def status_and_body(self, path: str, token: str | None = None) -> tuple[int, bytes]:
        """Give an answer without what is new in every answer."""
        answer = await self.get(path, token)
        head, _, rest = answer.content.partition(b'"request_id":"')
        return answer.status, head + rest.partition(b'"')[2]


def document() -> dict[str, Any]:
    """A declaration in which a message need not have a time."""
    made = declaration()
    messages = made["streams"][0]
    messages["schema"]["required"] = ["id"]
    messages["schema"]["properties"]["sent_at"] = {"type": ["string", "null"], "format": "date-time"}
    messages["query"]["aggregations"] |= {"sum": ["size"], "group_by": ["sender", "is_read", "body"]}
    return made


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", document())
        made = Scene(program, await program.connect("mail"), await program.connect("mail"))
        for n in range(6):
            await made.put(f"m{n}", sender=f"s{n % 2}", subject=f"plan {n}", body=f"secret {n}", size=n)
        await made.put("only", to=made.hidden, subject="hidden plan")
        made.token = await program.grant(made.granted("grt_client"))
        yield made


def mutated(text: str, dice: random.Random) -> str:
    """Change, drop, repeat or add something."""
    at = dice.randrange(len(text))
    piece = dice.choice(string.ascii_letters + string.digits + "-_.~")
    return dice.choice(
        [text[:at] + piece + text[at + 1 :], text[:at] + text[at + 1 :], text[:at] + piece + text[at:], text + text]
    )  # fmt: skip


@pytest.mark.hostile("T1", "46")
@pytest.mark.parametrize("forgeries", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_forged_handles_open_nothing_and_all_sound_alike(scene: Scene, forgeries: int):
    first = (await scene.get(f"{RECORDS}?limit=1")).body
    bookmark = (await scene.get(f"{RECORDS}?changes_since=beginning")).body["next_changes_since"]
    window = (await scene.get(f"{RECORDS}/m1/field-window?field=subject&limit_chars=2")).body["window"]
    good = {
        f"{RECORDS}/%s": "only",
        f"{RECORDS}?connection_id=%s": scene.hidden,
        f"{RECORDS}?limit=1&cursor=%s": first["next_cursor"],
        f"{RECORDS}?changes_since=%s": bookmark,
        f"{RECORDS}/m1/field-window?field=subject&limit_chars=2&cursor=%s": window["next_cursor"],
        "/v1/blobs/%s": f"blob_{'0' * 64}",
    }
    own = {"m0", "m1", "m2", "m3", "m4", "m5", *good.values()}
    dice, answers_of = random.Random(1), dict[str, set[tuple[int, bytes]]]()
    for path, handle in good.items():
        for _ in range(forgeries // len(good) + 1):
            forged = mutated(handle, dice)
            if forged not in own:
                answers_of.setdefault(path, set()).add(
                    await scene.status_and_body(path % quote(forged, safe=""))
                )
    assert {path: len(answers) for path, answers in answers_of.items()} == dict.fromkeys(good, 1)
    assert {status for answers in answers_of.values() for status, _ in answers} <= {400, 404}


SPELLINGS = ("[{}]=x", "[{}][gte]=x", "[{}][lt]=x", "[{}][in]=x", "[{}][prefix]=x", "[{}][]=x", "[{}.x]=x",
             "[{}]=", "[{}]=null", "[%20{}]=x", "%5B{}%5D=x", "[/{}]=x")  # fmt: skip


@pytest.mark.hostile("47", "T3")
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_filter_on_a_hidden_field_is_refused_like_one_on_no_field_in_every_spelling(
    scene: Scene, spelling: str
):
    for path in (
        f"{RECORDS}?filter",
        f"{AGGREGATE}?metric=count&filter",
        "/v1/search?q=plan&streams=messages&filter",
    ):
        for hidden, missing in (("body", "bodx"), ("BODY", "BODX"), ("Body", "Bodx"), ("bod%79", "bod%78")):
            status, one = await scene.status_and_body(path + spelling.format(hidden))
            other = await scene.status_and_body(path + spelling.format(missing))
            assert status in {400, 403}
            swapped = other[1].replace(b"bodx", b"body").replace(b"BODX", b"BODY").replace(b"Bodx", b"Body")
            assert (status, one) == (other[0], swapped)


@pytest.mark.hostile("48", "T4")
async def test_the_order_does_not_move_when_hidden_values_do(scene: Scene):
    asked = (RECORDS, f"{RECORDS}?order=asc", f"{RECORDS}?limit=2", "/v1/search?q=plan")
    before = [await scene.status_and_body(path) for path in asked]
    for n in range(6):
        await scene.put(f"m{n}", sender=f"s{n % 2}", subject=f"plan {n}", body="z" * (9 - n), size=-n)
    assert [await scene.status_and_body(path) for path in asked] == before
    for name in ("body", "bodx"):
        assert (await scene.get(f"{RECORDS}?sort={name}")).code == "field_not_granted"


TOUCHING = ("metric=count&group_by={}", "metric=sum&field={}", "metric=min&field={}", "metric=max&field={}",
            "metric=count_distinct&field={}", "metric=count&filter[{}]=x",
            "metric=count&group_by_time={}&granularity=day")  # fmt: skip


@pytest.mark.hostile("49", "T5")
async def test_no_aggregate_touches_a_hidden_field(scene: Scene):
    for question in TOUCHING:
        for hidden in ("body", "size", "weight", "day", "nope"):
            answer = await scene.get(f"{AGGREGATE}?{question.format(hidden)}")
            assert (answer.status, answer.code) == (403, "field_not_granted"), question


@pytest.mark.hostile("T6")
async def test_groups_tell_what_the_client_could_count_itself_and_the_documents_say_so(scene: Scene):
    rows = (await scene.get(RECORDS)).body["data"]
    groups = (await scene.get(f"{AGGREGATE}?metric=count&group_by=sender")).body["groups"]
    senders = [row["data"]["sender"] for row in rows]
    assert {one["key"]: one["count"] for one in groups} == {
        name: senders.count(name) for name in set(senders)
    }
    text = (ROOT / "docs" / "explanation" / "pdpp.md").read_text(encoding="utf-8")
    assert "Counts of small groups are not rounded" in text


@pytest.mark.hostile("50", "51", "T7")
async def test_hidden_text_neither_finds_nor_ranks_nor_shows_anything(scene: Scene):
    assert (await scene.get("/v1/search?q=secret")).body["data"] == []
    before = await scene.status_and_body("/v1/search?q=plan")
    await scene.put("m3", sender="s1", subject="plan 3", body="plan " * 500, size=3)
    await scene.put("more", to=scene.hidden, subject="plan " * 50)
    assert await scene.status_and_body("/v1/search?q=plan") == before
    assert b"secret" not in before[1]


@pytest.mark.hostile("55", "T9")
async def test_what_has_no_time_is_not_shown_and_the_edges_are_exact(scene: Scene):
    times = {
        "none": None, "early": "2026-02-28T23:59:59.999999Z", "edge": SINCE, "late": "2026-03-01T00:00:00.000001Z",
        "zone-in": "2026-03-01T01:00:00+01:00", "zone-out": "2026-03-01T00:59:59+01:00",
        "behind": "2026-02-28T20:00:00-04:00", "last": "9999-12-31T23:59:59Z", "gap": "2026-03-29T02:30:00+01:00",
    }  # fmt: skip
    for key, at in times.items():
        await scene.put(key, sent_at=at, subject="edges")
    await scene.program.ingest(scene.seen, "messages", [record("absent", subject="edges")])
    expected = {"edge", "late", "zone-in", "behind", "last", "gap"}
    rows = (await scene.get(f"{RECORDS}?limit=100")).body["data"]
    assert {row["id"] for row in rows if not row["id"].startswith("m")} == expected
    hits = (await scene.get("/v1/search?q=edges&limit=100")).body["data"]
    assert {hit["record_key"] for hit in hits} == expected
    assert (await scene.get(f"{AGGREGATE}?metric=count")).body["value"] == len(rows)
    for key in ("none", "absent", "early", "zone-out"):
        assert (await scene.get(f"{RECORDS}/{key}")).status == 404
    changed = (await scene.get(f"{RECORDS}?changes_since=beginning&limit=100")).body["data"]
    assert {row["id"] for row in changed} == {row["id"] for row in rows}


@pytest.mark.hostile("T9")
async def test_a_grant_ends_just_before_its_end(scene: Scene):
    where = (ConnectionId(scene.seen),)
    until = TimeConstraint(FieldName("sent_at"), instant(SINCE), instant("2026-03-05T00:00:00Z"))
    bounded = grant(stream_grant("messages", "id", "sent_at", connections=where, time=until), id_="grt_until")
    token = await scene.program.grant(bounded)
    await scene.put("before", sent_at="2026-03-04T23:59:59.999999Z")
    rows = (await scene.get(RECORDS, token)).body["data"]
    assert [row["id"] for row in rows] == ["before"]


@pytest.mark.hostile("56", "T12")
async def test_the_end_of_an_invisible_record_is_not_reported(scene: Scene):
    await scene.put("old", sent_at="2026-01-01T00:00:00Z")
    mark = (await scene.get(f"{RECORDS}?changes_since=beginning")).body["next_changes_since"]
    for key, connection in (("old", scene.seen), ("only", scene.hidden)):
        path = f"{RECORDS}/{key}?connection_id={connection}"
        assert (await scene.program.ask("DELETE", path, scene.program.owner)).status == 204
    assert (await scene.get(f"{RECORDS}?changes_since={quote(mark)}")).body["data"] == []


@pytest.mark.hostile("58", "T10")
async def test_a_relation_to_an_ungranted_stream_is_refused_like_no_relation(scene: Scene):
    before = await scene.status_and_body(f"{RECORDS}/m1")
    child = {"key": ["m1", "1"], "data": {"id": "1", "message_id": "m1"}, "emitted_at": SINCE}
    await scene.program.ingest(scene.seen, "attachments", [child])
    for path in (f"{RECORDS}/m1", RECORDS):
        hidden, missing = (
            await scene.status_and_body(f"{path}?expand=attachments"),
            await scene.status_and_body(f"{path}?expand=attachmentz"),
        )
        assert hidden[0] == 403
        assert hidden == (missing[0], missing[1].replace(b"attachmentz", b"attachments"))
    assert await scene.status_and_body(f"{RECORDS}/m1") == before


@pytest.mark.hostile("61", "T20")
async def test_a_field_that_is_added_after_the_grant_is_not_shown(scene: Scene):
    before = [await scene.status_and_body(path) for path in (RECORDS, "/v1/streams/messages", "/v1/schema")]
    grown = document()
    grown["declaration_version"] = "2026-09-01"
    grown["streams"][0]["schema"]["properties"]["mood"] = {"type": "string"}
    await scene.program.declare("mail", grown)
    await scene.put("m1", sender="s1", subject="plan 1", body="secret 1", size=1, mood="canary")
    after = [await scene.status_and_body(path) for path in (RECORDS, "/v1/streams/messages", "/v1/schema")]
    assert after[0] == before[0]
    assert not [one for _, one in after if b"mood" in one or b"canary" in one]
    assert (await scene.get(f"{RECORDS}?fields=mood")).code == "field_not_granted"


@pytest.mark.hostile("63", "T15")
async def test_a_hidden_id_takes_as_long_as_a_missing_one(scene: Scene, figure: Figure):
    """Pairs are asked in turn, so that whatever else the machine does falls on both alike."""
    await scene.program.ingest(
        scene.seen,
        "messages",
        [record(f"h{n}", sent_at="2026-01-01T00:00:00Z", body="x" * 2000) for n in range(1000)],
    )
    seconds: dict[str, list[float]] = {"h": [], "x": []}
    for n in range(1000):
        for kind in ("h", "x") if n % 2 else ("x", "h"):
            begun = time.perf_counter()
            answer = await scene.get(f"{RECORDS}/{kind}{n}")
            seconds[kind].append(time.perf_counter() - begun)
            assert answer.status == 404
    hidden, missing = median(seconds["h"]) * 1000, median(seconds["x"]) * 1000
    figure("T15", f"2000 paired reads: a hidden id {hidden:.3f} ms, a missing one {missing:.3f} ms")
    assert abs(hidden - missing) < max(1.0, 0.05 * missing)


@pytest.mark.hostile("T16", "60")
async def test_two_grants_that_take_turns_get_each_their_own(scene: Scene):
    narrow = await scene.program.grant(scene.granted("grt_narrow", "id", "sent_at"))
    paths = (RECORDS, "/v1/schema", "/v1/streams/messages", f"{RECORDS}/m1", "/v1/search?q=plan")
    first = {
        (who, path): await scene.status_and_body(path, who) for who in (scene.token, narrow) for path in paths
    }
    for path in paths:
        assert first[scene.token, path] != first[narrow, path]
    for _ in range(100):
        for (who, path), expected in first.items():
            assert await scene.status_and_body(path, who) == expected


@pytest.mark.hostile("T17")
async def test_a_grant_that_ends_between_two_pages_gives_no_second_page(scene: Scene):
    page = (await scene.get(f"{RECORDS}?limit=2")).body
    ended = await scene.program.ask("POST", "/grants/grt_client/revoke", scene.program.owner)
    assert ended.status == 200
    refused = await scene.get(page["links"]["next"])
    assert (refused.status, refused.code) == (403, "grant_revoked")


@pytest.mark.hostile("65")
@pytest.mark.parametrize("given", ["*", "", "id,*", "**", "%2A", "id,id", "all"])
async def test_no_spelling_of_everything_shows_more_than_was_granted(scene: Scene, given: str):
    answer = await scene.get(f"{RECORDS}?fields={given}")
    assert answer.status in {200, 400, 403}
    assert b"secret" not in answer.content
    if answer.status == 200:
        assert all(
            row["data"].keys() <= {"id", "sender", "subject", "sent_at"} for row in answer.body["data"]
        )
