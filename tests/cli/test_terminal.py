"""What a newcomer sees on a terminal: progress while something takes long, and a log in words."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.terminal import Terminal, empty_machine
from tests.on_socket import headgate

READY = re.compile("a password of your choice")
ADDRESS = re.compile(r"serves (http://\S+)")


def test_the_first_start_shows_that_it_starts_and_logs_in_words(tmp_path: Path):
    machine = {**empty_machine(tmp_path), "HEADGATE_PORT": "0"}
    with Terminal(tmp_path, machine) as server, Terminal(tmp_path, machine) as other:
        shown = server.start("headgate", READY)
        assert shown.partition("serves")[0].strip().startswith("Starting ...")
        address = ADDRESS.search(shown)[1]
        assert other.run(f"curl -sS -o /dev/null {address}/healthz")[0] == 0
        assert server.interrupt() == 0
        lines = [line for line in server.printed.splitlines() if "/healthz" in line or "stopped" in line]
    assert len(lines) == 2
    assert not [line for line in lines if line.lstrip().startswith("{")]


def test_the_demonstration_shows_how_far_it_is(tmp_path: Path):
    machine = {**empty_machine(tmp_path), "HEADGATE_PORT": "0"}
    with Terminal(tmp_path, machine) as server:
        shown = server.start("headgate demo", re.compile("Ask, for instance"))
        assert server.interrupt() == 0
    steps = [int(step) for step in re.findall(r"Writing an invented person's year: (\d+) %", shown)]
    assert len(steps) > 5
    assert steps == sorted(steps)
    assert steps[-1] == 100


def test_without_a_terminal_there_is_no_progress(tmp_path: Path):
    (tmp_path / "people.csv").write_text("id,name\n1,Ada\n", encoding="utf-8")
    done = headgate(tmp_path, "--home", "home", "import", "--yes", "people.csv")
    assert (done.code, done.err) == (0, "")
