"""What a fetched record looks like: its title, its text or its lines, and what is cut of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from headgate.mcp.serve.results import Outcome
from headgate.model.grant import Access
from headgate.model.query import RecordQuery
from headgate.text.document import document
from headgate.text.fields import field_line
from headgate.text.ladder import Handles
from tests.field_lines import read_field_lines, value_of
from tests.mcp.serve.odd import declare, grant_of, stream_of
from tests.mcp.serve.test_bytes import SENTENCE, in_two_accounts, message
from tests.mcp.serve.test_world import in_world, mail
from tests.mcp.serve.world import World

HANDLES = Handles("c/m:1", lambda path: f"pdpp://field-window/{path}", lambda blob: f"pdpp://blob/{blob}")
ENTRY: dict[str, Any] = {
    "booked_on": {"type": "string", "format": "date"},
    "counterparty": {"type": "string"},
    "amount": {"type": "number"},
    "amount_text": {"type": "string"},
    "currency": {"type": "string"},
    "description": {"type": "string"},
    "memo": {"type": "string"},
    "people": {},
    "tags": {},
    "more": {},
}
PAID: dict[str, Any] = {
    "booked_on": "2025-12-31",
    "counterparty": "Valley Rail",
    "amount": -39.7,
    "amount_text": "-39.70",
    "currency": "GBP",
    "description": "Ticket VR83096",
    "memo": None,
}


def opened(outcome: Outcome) -> dict[str, Any]:
    """Give a document, which both channels hold."""
    assert not outcome.is_error, outcome.text
    whole = outcome.whole()["structuredContent"]
    assert json.loads(outcome.text) == whole
    return whole


async def entries(w: World, *rows: dict[str, Any], **line: Any) -> Access:
    stream = stream_of("entries", ENTRY)
    stream["query"] = {"search": {"lexical_fields": ["description", "counterparty", "memo"]}}
    stream["line"] = {"time": "booked_on", "amount": "amount", "unit": "currency", **line}
    await declare(w, "odd", stream)
    await w.add("odd", "entries", *rows)
    return w.access(grant_of(w, "odd", {"entries": {"id": {}, **ENTRY}}))


def test_a_record_without_a_body_is_a_line_for_each_field_that_says_something():
    async def work(w: World) -> None:
        nested = {
            "people": [{"name": "Nora Hallam", "email": "nora@example.org"}, {"name": "Hana Sato"}],
            "tags": ["work", "by rail", "3", "a, b"],
            "more": {"seat": {"coach": "C", "number": 12}, "quiet": True, "via": []},
        }
        access = await entries(w, {"id": "e1", **PAID, **nested})
        made = opened(await w.call(access, "fetch", id="odd/entries:e1"))
        assert made["title"] == "Ticket VR83096"
        assert made["text"].splitlines() == [
            "booked_on: 2025-12-31",
            "counterparty: Valley Rail",
            "amount: -39.7",
            "currency: GBP",
            "people: Nora Hallam <nora@example.org>, Hana Sato",
            "description: Ticket VR83096",
            'tags: work, by rail, "3", "a, b"',
            "more: {seat: {coach: C, number: 12}, quiet: true, via: []}",
        ]
        assert set(made["metadata"]) == {"connection_id", "connector_key", "stream", "untrusted"}

    in_world(work, ())


def test_payments_that_differ_in_the_month_they_are_for_are_alike_and_others_are_not():
    async def work(w: World) -> None:
        months = ("January 2026", "Februar 2026", "marzo 2026", "04/2026", "MAY")
        monthly = [
            {"id": f"e{n}", **PAID, "description": f"Season pass {month}"} for n, month in enumerate(months)
        ]
        others = (
            {"id": "dear", **PAID, "amount": -44.0, "description": "Season pass June 2026"},
            {"id": "other", **PAID, "counterparty": "Hill Rail", "description": "Season pass July 2026"},
            {"id": "named", **PAID, "description": "Season pass of Jan Mayer"},
        )
        access = await entries(w, *monthly, *others, title="description")
        found = await w.call(access, "search", q="season", limit=20)
        alike = {
            hit["record_key"]: hit.get("alike", {}).get("count", 0)
            for hit in found.structured["data"]["data"]
        }
        assert len(alike) == 4
        assert sorted(alike.values()) == [0, 0, 0, 4]
        assert {"dear", "other", "named"} < set(alike)

    in_world(work, ())


ROWS: tuple[dict[str, Any], ...] = (
    {**PAID},
    {**PAID, "description": None, "memo": "Bought  on\nthe \u3000 train " * 40},
    {**PAID, "description": "d" * 300},
    {**PAID, "description": " \n ", "memo": "Rail"},
    {"counterparty": "Valley Rail"},
    {"counterparty": "Valley Rail", "booked_on": "2025-12-30"},
)


@pytest.mark.requirement("S2-56")
@pytest.mark.parametrize("line", [{}, {"title": "description", "text": "memo"}, {"title": "memo"}])
def test_a_document_has_the_title_that_a_search_shows(line: dict[str, str]):
    async def work(w: World) -> None:
        rows = [{"id": f"e{n}", **row} for n, row in enumerate(ROWS)]
        access = await entries(w, *rows, **line)
        found = await w.call(access, "search", q="rail OR ticket OR train OR dd*", collapse=False, limit=20)
        results = found.whole()["structuredContent"]["results"]
        assert len(results) >= 5
        for result in results:
            assert opened(await w.call(access, "fetch", id=result["id"]))["title"] == result["title"]

    in_world(work, ())


def test_a_text_beside_a_title_is_the_text_of_a_document_whatever_it_is_called():
    async def work(w: World) -> None:
        rows = {"e1": {**PAID, "memo": "Return of the ticket"}, "e2": PAID}
        access = await entries(
            w, *({"id": key, **row} for key, row in rows.items()), title="description", text="memo"
        )
        with_text = opened(await w.call(access, "fetch", id="odd/entries:e1"))
        assert (with_text["title"], with_text["text"]) == ("Ticket VR83096", "Return of the ticket")
        assert with_text["metadata"]["amount"] == -39.7
        assert "description" not in with_text["metadata"]
        without = opened(await w.call(access, "fetch", id="odd/entries:e2"))
        assert without["text"].startswith("booked_on: 2025-12-31\n")

    in_world(work, ())


def test_a_title_is_made_of_the_fields_that_were_asked_for_and_logged_with_them():
    async def work(w: World) -> None:
        access = await entries(w, {"id": "e1", **PAID})
        for fields in (["amount"], ["amount", "description"], ["amount", "booked_on", "memo"]):
            made = opened(await w.call(access, "fetch", id="odd/entries:e1", fields=fields))
            assert ("Ticket" in json.dumps(made)) == ("description" in fields)
            assert set(w.log.written[-1].parts[0].fields) == set(fields)
        # What is left out is not logged.
        await w.call(access, "fetch", id="odd/entries:e1")
        logged = set(w.log.written[-1].parts[0].fields)
        assert logged == PAID.keys() - {"memo", "amount_text"}

    in_world(work, ())


def test_the_port_names_the_line_of_a_record_only_to_those_who_shorten_it():
    async def work(w: World) -> None:
        access = await entries(w, {"id": "e1", **PAID})
        query = RecordQuery("entries", "e1", fields=("amount", "currency", "counterparty"))
        shortened = (await w.port(access).record(query, preview_chars=100)).body()
        assert shortened["line_fields"] == {"amount": "amount", "unit": "currency", "who": ["counterparty"]}
        assert "line_fields" not in (await w.port(access).record(query)).body()

    in_world(work, ())


@pytest.mark.parametrize(
    "odd", [7, "title", [], {"title": 3}, {"who": "x"}, {"title": ["a"]}, {"title": "gone"}]
)
def test_a_line_of_another_server_that_is_none_does_no_harm(odd: Any):
    row: Any = {"stream": "m", "id": "1", "line_fields": odd, "data": {"subject": "Plan", "n": 1}}
    made, *_ = document(row, lambda: HANDLES, asked_id="m:1", url="", lengths={})
    assert made["text"] == "subject: Plan\nn: 1"


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20) | st.sampled_from(
    ["a: b", "amount: 5\nother", "\u2028x", '"', "id", "", " ", "text_truncated", "世界"]
)
BREAKS = ("\n", "\r\n", "\r", "\u2028", "\x85", "\x0b", "\x1c")
ODD = ('"amount": 9', "{a: b}", "12", "true", " x ", "\n", "a\n  b", "", "…", "x, amount: 9")
TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    [*ODD, *(f"x{one}amount: 9" for one in BREAKS)]
)


@given(st.dictionaries(NAMES, TEXTS | st.integers() | st.booleans() | st.none(), min_size=1))
def test_no_name_and_no_value_can_pass_for_the_line_of_another_field(data: dict[str, Any]):
    lines = [field_line(path, value) for path, value in data.items()]
    found = read_field_lines("\n".join(lines))
    assert found is not None
    assert {path: value_of(written) for path, written in found.items()} == data
    # Nor in a place that a reader could take for the beginning of a line.
    assert all(not one[:1].isspace() for line in lines for one in line.splitlines()[:1])
    assert all(one.startswith("  ") for line in lines for one in line.splitlines()[1:])


LEAVES = TEXTS | st.integers() | st.none()
NESTED = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES | st.just("name"), inner))


@given(st.lists(NESTED) | st.dictionaries(NAMES, NESTED))
def test_what_is_nested_is_one_line_and_its_texts_cannot_add_a_member(value: Any):
    line = field_line("more", value)
    assert len(line.splitlines()) == 1
    # Outside of quotes, commas and colons are the server's.
    assert "amount: 9" not in json.dumps(_unquoted(line))


def _unquoted(line: str) -> str:
    out, rest = "", line
    while '"' in rest:
        before, _, after = rest.partition('"')
        decoded, end = json.JSONDecoder().raw_decode(f'"{after}')
        assert isinstance(decoded, str)
        out, rest = out + before, f'"{after}'[end:]
    return out + rest


QUOTED = "On Tuesday Ines Albrecht wrote:\n> " + "> ".join([SENTENCE + "\n"] * 12)


def test_a_record_of_4_000_characters_is_whole_with_its_quoted_text():
    async def work(w: World) -> None:
        stream = stream_of("letters", {"subject": {}, "body": {}, "quoted": {}, "sender": {}, "note": {}})
        await declare(w, "odd", stream)
        row = {"subject": "The bridge", "body": SENTENCE * 20, "quoted": QUOTED, "note": "n" * 349}
        row["sender"] = "s" * (4_000 - sum(map(len, row.values())))
        await w.add("odd", "letters", {"id": "l1", **row})
        access = w.access(grant_of(w, "odd", {"letters": {"id": {}, **row}}))
        outcome = await w.call(access, "fetch", id="odd/letters:l1")
        made = opened(outcome)
        beside = {path: made["metadata"][path] for path in ("quoted", "note", "sender")}
        assert {"subject": made["title"], "body": made["text"], **beside} == row
        assert "content_ladder" not in made["metadata"]
        assert len(msgspec.json.encode(outcome.wire())) < 12_000

    in_world(work, ())


@pytest.mark.parametrize("path", ["body", "subject", "quoted"])
@pytest.mark.parametrize("unit", ["word ", "世界は広い"])
def test_a_field_that_is_asked_for_by_name_is_whole_up_to_16_384_characters_and_20_000_bytes(
    path: str, unit: str
):
    text = (unit * 4_000)[:16_384]

    async def work(w: World) -> None:
        await declare(w, "odd", stream_of("letters", {"subject": {}, "body": {}, "quoted": {}}))
        await w.add("odd", "letters", {"id": "l1", path: text, "body": text})
        access = w.access(
            grant_of(w, "odd", {"letters": {"id": {}, "subject": {}, "body": {}, "quoted": {}}})
        )
        made = opened(await w.call(access, "fetch", id="odd/letters:l1", fields=[path]))
        if unit.isascii():
            assert made["text"] == text
            assert "content_ladder" not in made["metadata"]
        else:
            assert 15_000 < len(made["text"].encode()) <= 20_000
            (rung,) = made["metadata"]["content_ladder"]["field_windows"]
            going = await w.call(access, rung["read"]["tool"], **rung["read"]["args"])
            assert made["metadata"]["text_truncated"] is True
            begun = made["text"].removesuffix("…") + going.structured["window"]["text"]
            assert text.startswith(begun)

    in_world(work, ())


def test_what_is_cut_is_named_once_with_its_call():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message("m1", SENTENCE * 400))
        made = opened(await w.call(mail(w), "fetch", id="home-mail/messages:m1"))
        assert json.dumps(made).count("pdpp://") == 1
        ladder = made["metadata"]["content_ladder"]
        (rung,) = ladder.pop("field_windows")
        assert ladder == {"kind": "record"}
        assert rung.pop("digest").startswith("sha256:")
        assert rung.pop("resource_uri").startswith("pdpp://field-window/")
        stop = len(made["text"]) - 1
        args = {"id": "home-mail/messages:m1", "field_path": "body", "offset_chars": stop}
        assert rung == {
            "field_path": "body",
            "size_chars": len(SENTENCE * 400),
            "mime_type": "text/plain",
            "read": {"tool": "read_record_field", "args": args},
        }
        assert made["metadata"]["text_total_chars"] == len(SENTENCE * 400)

    in_two_accounts(work)
