"""``headgate audit prune``: old entries move to a file, and every other command of the log goes on."""

from __future__ import annotations

import json
from pathlib import Path

from headgate.audit.journal import Journal
from headgate.auth.clock import now
from headgate.home import open_home
from headgate.model.instants import DAY_US
from tests.audit.test_pruning import read
from tests.on_socket import Outcome, headgate


def run(place: Path, *words: str) -> Outcome:
    return headgate(place, "--home", str(place / "home"), *words)


def log(place: Path, *reads: tuple[int, str]) -> None:
    """Write reads of so many days ago, as a server does, and let a command take them into the log."""
    journal, today = Journal(open_home(place / "home")), now() // DAY_US * DAY_US
    for days, record in reads:
        journal.write(read(today - days * DAY_US, record, fields=("id", "body")))
    journal.leave()
    assert run(place, "audit", "verify").code == 0


def test_old_entries_move_to_a_file_and_every_command_of_the_log_goes_on(tmp_path: Path):
    log(tmp_path, (500, "r1"), (500, "r1"), (400, "r2"))
    log(tmp_path, (10, "r1"))
    file = tmp_path / "log before 2026.jsonl"
    done = run(tmp_path, "audit", "prune", "--before", "100d", "--to", str(file))
    assert (done.code, done.out.startswith("3 entries were moved to ")) == (0, True), done
    assert f"headgate audit verify --pruned '{file}'" in done.out
    again = run(tmp_path, "audit", "prune", "--before", "100d", "--to", str(tmp_path / "more"))
    assert again.out == "Nothing in the log is that old.\n"
    assert run(tmp_path, "audit", "verify").out == "The log is whole: 4 entries.\n"
    assert run(tmp_path, "audit", "verify", "--pruned", str(file)).out == (
        "The file is whole: entries 1 to 3 of the log.\n"
    )
    listed = json.loads(run(tmp_path, "audit", "list", "--json").out)
    assert [one["via"] for one in listed] == ["mcp:fetch", "audit prune"]
    assert len(json.loads(run(tmp_path, "audit", "who-read", "r1", "--json").out)) == 1
    file.write_text(file.read_text().replace("r2", "r3"))
    changed = run(tmp_path, "audit", "verify", "--pruned", str(file))
    assert (changed.code, "was changed" in changed.err) == (1, True), changed


def test_what_cannot_work_is_one_line_that_says_what_to_do(tmp_path: Path):
    log(tmp_path, (500, "r1"))
    refused = run(tmp_path, "audit", "prune", "--before", "soon", "--to", "old")
    assert (refused.code, "'soon' is no time." in refused.err) == (1, True)
    (tmp_path / "old").write_text("mine")
    refused = run(tmp_path, "audit", "prune", "--before", "1d", "--to", "old")
    assert (refused.code, refused.err.count("\n")) == (1, 1), refused
    missing = run(tmp_path, "audit", "verify", "--pruned", "nothing")
    assert (missing.code, "nothing" in missing.err) == (1, True), missing
