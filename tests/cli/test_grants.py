"""``headgate grants``, ``owner`` and ``audit`` as somebody meets them who has just begun."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

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
        (("grants", "create", "--client", "a", "--connection", "nope"), 1, "Connections are Home (cin_"),
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
    assert "headgate import PATH" in nothing.err


def test_fields_of_two_options_are_all_granted_and_saving_prints_json(filled: Path):
    fields = ("--fields", "messages=subject", "--fields", "messages=body")
    made = json.loads(run(filled, "grants", "create", "--client", "a", *fields, "--json").out)
    shown = json.loads(run(filled, "grants", "show", made["grant_ids"][0], "--json").out)
    assert shown["streams"][0]["fields"] == ["body", "id", "sent_at", "subject"]
    saved = json.loads(run(filled, "grants", "create", "--client", "a", "--save", "--yes", "--json").out)
    assert Path(saved["saved"]).is_relative_to(filled)
    assert run(filled, "grants", "show", saved["grant_ids"][0]).out.startswith("a may read from ")
