"""``headgate rules`` beside a server: what it hides is gone from the next answer of every client."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.http_clients import HttpAnswer
from tests.on_socket import MAIL, Outcome, headgate, line, served_program


def run(place: Path, *words: str) -> Outcome:
    return headgate(place, "--home", str(place / "home"), *words)


def test_rules_are_added_listed_and_removed_while_a_server_runs(tmp_path: Path):
    with served_program(tmp_path) as program:
        lines = [line("m1", subject="Roof", sender="Ada <ada@bank.example>"), line("m2", subject="Boat")]
        program.ingest(program.connect(), lines)
        token = program.grant()

        def get(path: str) -> HttpAnswer:
            return program.ask("GET", path, token)

        assert [one["id"] for one in get(MAIL).body["data"]] == ["m2", "m1"]
        counted = run(tmp_path, "rules", "add", "--words", "boat", "--count", "--json")
        assert json.loads(counted.out)["found"] == 1
        added = run(tmp_path, "rules", "add", "--value", "*@bank.example", "--field", "sender", "--json")
        assert json.loads(added.out)["hidden"] == 1, added.err
        assert [one["id"] for one in get(MAIL).body["data"]] == ["m2"]
        assert get(f"{MAIL}/m1").status == 404
        assert get(f"/v1/search?q={quote('roof')}").body["data"] == []
        (rule,) = json.loads(run(tmp_path, "rules", "list", "--json").out)
        assert (rule["kind"], rule["field"], rule["hidden"]) == ("value", "sender", 1)
        assert "hides 1  value *@bank.example in sender" in run(tmp_path, "rules", "list").out
        removed = run(tmp_path, "rules", "remove", rule["id"], "--json")
        assert json.loads(removed.out) == {"id": rule["id"], "shown": 1}
        assert [one["id"] for one in get(MAIL).body["data"]] == ["m2", "m1"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("add",), "give one of --value, --words, --pattern and --set"),
        (("add", "--words", "a", "--set", "one-time-codes"), "give one of --value"),
        (("add", "--pattern", "("), "not a regular expression"),
        (("add", "--value", "x", "--field", "nothing"), "No stream has a field 'nothing'."),
        (("remove", "rul_x"), "There is no such rule."),
    ],
)
def test_what_cannot_work_is_one_line(tmp_path: Path, words: tuple[str, ...], reported: str):
    done = run(tmp_path, "rules", *words)
    assert done.code != 0
    assert reported in done.err
    assert done.err.count("\n") == 1


def test_no_rule_is_an_empty_list(tmp_path: Path):
    assert json.loads(run(tmp_path, "rules", "list", "--json").out) == []
    assert "There is no rule" in run(tmp_path, "rules", "list").err
