"""``headgate audit fold``: old reads become sums, and every other command of the log goes on."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.audit.journal import Journal
from headgate.home import open_home
from headgate.model.instants import DAY_US
from headgate.wiring import now
from tests.audit.test_folding import read
from tests.on_socket import Outcome, headgate


def run(place: Path, *words: str) -> Outcome:
    return headgate(place, "--home", str(place / "home"), *words)


def test_old_reads_are_folded_and_every_command_of_the_log_goes_on(tmp_path: Path):
    journal, today = Journal(open_home(tmp_path / "home")), now() // DAY_US * DAY_US
    for days, record in ((500, "r1"), (500, "r1"), (500, "r2"), (10, "r1")):
        journal.write(read(today - days * DAY_US, record, fields=("id", "body")))
    journal.leave()
    would = json.loads(run(tmp_path, "audit", "fold", "--dry-run", "--json").out)
    assert (would["dry_run"], would["reads"]) == (True, 0), "a block goes when all of it is old"
    journal = Journal(open_home(tmp_path / "home"))
    journal.write(read(today, "r3"))
    journal.leave()

    would = json.loads(run(tmp_path, "audit", "fold", "--older-than", "5d", "--dry-run", "--json").out)
    assert (would["reads"], would["bytes_after"] < would["bytes_before"]) == (4, True)
    assert "4 reads would be folded" in run(tmp_path, "audit", "fold", "--older-than", "5d", "--dry-run").out
    before = json.loads(run(tmp_path, "audit", "list", "--json").out)
    assert len(before) == 5
    done = run(tmp_path, "audit", "fold", "--older-than", "5d")
    assert (done.code, done.out.startswith("4 reads were folded: ")) == (0, True), done
    assert run(tmp_path, "audit", "fold", "--older-than", "5d").out == "Nothing in the log is that old.\n"

    assert run(tmp_path, "audit", "verify").out == "The log is whole: 6 entries.\n"
    listed = json.loads(run(tmp_path, "audit", "list", "--json").out)
    assert [(one["via"], one.get("reads")) for one in listed] == [
        ("audit fold", None), ("mcp:fetch", None), ("mcp:fetch", 1), ("mcp:fetch", 3),
    ]  # fmt: skip
    assert "3 times" in run(tmp_path, "audit", "list").out
    found = json.loads(run(tmp_path, "audit", "who-read", "r1", "--json").out)
    assert [one["times"] for one in found] == [2, 1], "of three reads of the first day two showed it"
    assert ", 2 times  agent" in run(tmp_path, "audit", "who-read", "r1").out
    parts = [part for one in found for part in one["parts"] if "r1" in part["record_ids"]]
    assert [(part["fields"], part.get("times")) for part in parts] == [
        (["body", "id"], 2),
        # Once is not written.
        (["body", "id"], None),
    ]
    assert len(run(tmp_path, "audit", "export").out.splitlines()) == 4


def test_a_time_that_is_none_is_explained(tmp_path: Path):
    open_home(tmp_path / "home")
    refused = run(tmp_path, "audit", "fold", "--older-than", "soon")
    assert refused.code != 0
    assert "'soon' is no time." in refused.err
