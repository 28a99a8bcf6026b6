"""``headgate grants``, ``owner`` and ``audit`` as somebody meets them who has just begun."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.in_process import local_program, record
from tests.on_socket import Outcome, headgate
from tests.schema.declarations import declaration


async def _fill(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        lines = [record(f"m{n}", sent_at="2026-03-01T00:00:00Z", subject="x") for n in range(3)]
        await program.ingest(connection, "messages", lines)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("filled")
    asyncio.run(_fill(place))
    # It was filled by a later clock than that of the commands.
    (place / "home" / "latest-time").unlink()
    yield place
    shutil.rmtree(place)


def run(place: Path, *arguments: str) -> Outcome:
    return headgate(place, "--home", "home", *arguments)


def is_one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.startswith("headgate: ") and text.endswith(".\n")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("grants",), 64, "Missing command"),
        (("grants", "create"), 64, "'--client'"),
        (("grants", "create", "--client", ""), 64, "'--client'"),
        (("grants", "create", "--client", "a", "--days", "0"), 64, "'--days'"),
        (("grants", "create", "--client", "a", "--days", "99999999999"), 64, "'--days'"),
        (("grants", "create", "--client", "a", "--budget", "5/week"), 64, "'--budget'"),
        (("grants", "create", "--client", "a", "--budget", "0/day"), 64, "'--budget'"),
        (("grants", "create", "--client", "a", "--budget", "9" * 30), 64, "'--budget'"),
        (("grants", "create", "--client", "a", "--since", "lately"), 64, "'--since'"),
        (("grants", "create", "--client", "a", "--fields", "messages"), 64, "STREAM=A,B"),
        (("grants", "create", "--client", "a", "--stream", "nope"), 1, "Streams are attachments, messages."),
        (("grants", "create", "--client", "a", "--fields", "messages=nope"), 1, "messages has anything, body, "),
        (("grants", "create", "--client", "a", "--connection", "nope"), 1, "Connections are Home (home)"),
        (("grants", "create", "--client", "a", "--since", "2026-05-01", "--until", "2026-04-01"), 1, "ends before"),
        (("grants", "show", "grt_nope"), 1, "grants list"),
        (("grants", "revoke", "grt_nope", "--json"), 1, "grants list"),
        (("owner", "tokenz"), 64, "No such command"),
        (("audit", "list", "--limit", "x"), 64, "'--limit'"),
        (("audit", "who-read"), 64, "'RECORD'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_a_wrong_option_is_reported_in_one_line_with_a_hint(
    filled: Path, arguments: tuple[str, ...], code: int, expected: str
):
    outcome = run(filled, *arguments)
    assert (outcome.code, outcome.out) == (code, "")
    assert is_one_line(outcome.err), outcome.err
    assert expected in outcome.err


def test_what_is_empty_says_so_and_is_an_empty_array_for_programs(tmp_path: Path):
    for arguments in (("grants", "list"), ("audit", "list"), ("audit", "who-read", "m1")):
        text, array = run(tmp_path, *arguments), run(tmp_path, *arguments, "--json")
        assert (text.code, text.out, text.err.count("\n")) == (0, "", 1)
        assert (array.code, json.loads(array.out), array.err) == (0, [], "")
    nothing = run(tmp_path, "grants", "create", "--client", "a")
    assert nothing.code == 78
    assert "headgate --home home import PATH" in nothing.err


def test_fields_of_two_options_are_all_granted_and_saving_prints_json(filled: Path):
    fields = ("--fields", "messages=subject", "--fields", "messages=body")
    made = json.loads(run(filled, "grants", "create", "--client", "a", *fields, "--json").out)
    shown = json.loads(run(filled, "grants", "show", made["grant_ids"][0], "--json").out)
    assert shown["streams"][0]["fields"] == ["body", "id", "sent_at", "subject"]
    saved = json.loads(run(filled, "grants", "create", "--client", "a", "--save", "--yes", "--json").out)
    assert Path(saved["saved"]).is_relative_to(filled)
    assert run(filled, "grants", "show", saved["grant_ids"][0]).out.startswith("a may read from ")


def _chat() -> dict[str, Any]:
    """A chat that calls its stream as the mail does, with other fields."""
    document = declaration()
    document["source"]["id"] = "https://registry.example/connectors/chat"
    document["selection_presets"] = []
    messages = document["streams"][0]
    properties = {"id": {"type": "string"}, "sent_at": {"type": "string", "format": "date-time"}}
    messages |= {"views": [], "relationships": [], "query": {}}
    messages["schema"] = {
        "type": "object",
        "properties": properties | {"sender": {"type": "string"}, "text": {"type": "string"}},
        "required": ["id", "sent_at"],
    }
    document["streams"] = [messages]
    return document


async def _fill_three(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("chat", _chat())
        await program.declare("mail", declaration())
        for key, name, count in (("chat", "Family chat", 5), ("mail", "Home", 3), ("mail", "Work", 2)):
            lines = [record(f"{name}{n}", sent_at="2026-03-01T00:00:00Z") for n in range(count)]
            await program.ingest(await program.connect(key, name), "messages", lines)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with two mail accounts and a chat; each has a stream ``messages``."""
    place = tmp_path_factory.mktemp("three")
    asyncio.run(_fill_three(place))
    (place / "home" / "latest-time").unlink()
    yield place
    shutil.rmtree(place)


def shared(place: Path, *options: str) -> tuple[str, dict[str, list[str]]]:
    """Grant what the options say, and return the preview and the granted fields by connection."""
    granted = run(place, "grants", "create", "--client", "a", "--save", *options)
    assert granted.code == 0, granted.err
    labels = {
        one["connection_id"]: one["display_name"]
        for one in json.loads(run(place, "sources", "list", "--json").out)["connections"]
    }
    newest = json.loads(run(place, "grants", "list", "--json").out)
    found = {
        labels[name]: stream["fields"]
        for grant in newest
        if grant["state"] == "active"
        for stream in grant["streams"]
        for name in stream["instance_ids"]
    }
    run(place, "grants", "revoke", "a")
    return granted.err, found


def test_a_stream_is_granted_in_every_source_that_has_it_and_the_preview_names_each(three: Path):
    preview, found = shared(three, "--stream", "messages")
    assert set(found) == {"Family chat", "Home", "Work"}
    assert "messages of Family chat  5 records" in preview
    assert re.search(r"messages of (Home, Work|Work, Home)   5 records", preview)


def test_fields_are_granted_in_each_source_that_has_them_and_a_source_without_any_is_left_out(three: Path):
    _, found = shared(three, "--fields", "messages=subject,sender")
    assert found == {
        "Family chat": ["id", "sender", "sent_at"],
        "Home": ["id", "sender", "sent_at", "subject"],
        "Work": ["id", "sender", "sent_at", "subject"],
    }
    preview, found = shared(three, "--fields", "messages=subject")
    assert set(found) == {"Home", "Work"}
    assert "chat" not in preview


def test_a_connection_narrows_a_stream_that_several_sources_have(three: Path):
    preview, found = shared(three, "--stream", "messages", "--connection", "Work")
    assert set(found) == {"Work"}
    assert "messages of Work  2 records" in preview
    chat_only = ("--connection", "Family chat", "--fields", "messages=subject")
    refused = run(three, "grants", "create", "--client", "a", *chat_only)
    assert refused.code == 1
    assert "'messages' has no field 'subject'. messages has id, sender, sent_at, text." in refused.err


def test_a_field_that_no_source_has_is_refused_with_the_fields_of_each(three: Path):
    refused = run(three, "grants", "create", "--client", "a", "--fields", "messages=subject,colour")
    assert refused.code == 1
    assert is_one_line(refused.err)
    assert "'messages' has no field 'colour'." in refused.err
    assert "messages of Family chat has id, sender, sent_at, text; messages of Home, Work has " in refused.err
