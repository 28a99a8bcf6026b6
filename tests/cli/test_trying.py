"""``headgate try``: what an agent would be shown, on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests.on_socket import Outcome, headgate, line, served_program


def run(place: Path, *words: str) -> Outcome:
    return headgate(place, "--home", str(place / "home"), *words)


def test_a_tool_is_tried_as_a_client_and_logged_as_a_look_of_the_owner(tmp_path: Path):
    with served_program(tmp_path) as program:
        program.ingest(
            program.connect(), [line("m1", subject="Roof", body="secret"), line("m2", subject="Boat")]
        )
        program.grant("--fields", "messages=id,subject")
    tried = run(tmp_path, "try", "--as", "agent", "search", "roof")
    assert tried.code == 0, tried.err
    assert "Roof" in tried.out
    whole = json.loads(run(tmp_path, "try", "--as", "agent", "fetch", "m1", "--json").out)
    assert whole["structuredContent"]
    records = json.loads(
        run(tmp_path, "try", "--as", "agent", "query_records", "messages", "limit=1", "--json").out
    )
    assert "secret" not in json.dumps(records)
    logged = json.loads(run(tmp_path, "audit", "list", "--json").out)
    looks = [one for one in logged if one["via"].startswith("look:")]
    assert [one["via"] for one in looks][-1] == "look:search as agent"
    assert {(one["client_id"], one["token_kind"]) for one in looks} == {(None, "owner")}
    for words, reported in (
        (("--as", "stranger", "search", "x"), "There is no client 'stranger'. See 'headgate --home"),
        (("--as", "agent", "drop"), "There is no tool 'drop'."),
        (("--as", "agent", "search", "{x"), "The arguments are not JSON."),
    ):
        done = run(tmp_path, "try", *words)
        assert done.code != 0
        assert reported in done.err
        assert done.err.count("\n") == 1
