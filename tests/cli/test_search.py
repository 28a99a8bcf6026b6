"""``headgate search``: one's own records on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.on_socket import Outcome, headgate, line, served_program


def run(place: Path, *words: str) -> Outcome:
    return headgate(place, "--home", str(place / "home"), *words)


def _filled(place: Path) -> None:
    with served_program(place) as program:
        where = program.connect()
        rows = [
            line(f"m{n}", subject=f"Roof {n}", sender="Ada", body="The lead\x1b[2J leaks.") for n in range(12)
        ]
        program.ingest(where, [*rows, line("other", subject="Boat")])


def test_a_person_finds_records_in_lines_without_what_a_terminal_would_obey(tmp_path: Path):
    _filled(tmp_path)
    shown = run(tmp_path, "search", "leaks")
    assert shown.code == 0, shown.err
    first, second, *_ = shown.out.splitlines()
    assert "Ada" in first
    assert "Roof" in first
    assert second.startswith("    ")
    assert "messages: The lead" in second
    assert "\x1b" not in shown.out
    assert "Boat" not in shown.out


def test_the_number_of_records_is_limited_and_more_are_announced(tmp_path: Path):
    _filled(tmp_path)
    shown = run(tmp_path, "search", "roof", "--limit", "3", "--json")
    found = json.loads(shown.out)
    assert len(found) == 3
    assert {row["stream"] for row in found} == {"messages"}
    assert {"id", "connection_id", "source", "text", "title"} <= found[0].keys()
    assert "--limit 15" in run(tmp_path, "search", "roof", "--limit", "3").err


def test_nothing_found_ends_with_1_and_a_wrong_name_says_what_there_is(tmp_path: Path):
    _filled(tmp_path)
    for words, code, reported in (
        (("search", "zebra"), 1, "Nothing found."),
        (("search", "roof", "--stream", "mails"), 1, "Streams are "),
        (("search", "roof", "--source", "Nowhere"), 1, "There is no connection 'Nowhere'."),
        (("search", "roof", "--limit", "0"), 64, "--limit"),
        (("search",), 64, "WORD"),
    ):
        shown = run(tmp_path, *words)
        assert (shown.code, reported in shown.err) == (code, True), (words, shown)
        assert shown.out == ""
    assert json.loads(run(tmp_path, "search", "zebra", "--json").out) == []
    looks = json.loads(run(tmp_path, "audit", "list", "--json").out)
    assert {look["client_id"] for look in looks} == {None}
