"""Every page, followed command by command by a reader with an empty machine: what it needs it says, and it works."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.brought import FILES, SERVERS, ReachedServer
from tests.docs.terminal import Terminal, empty_machine
from tests.docs.walks import (
    Commands,
    ShownFile,
    hidden_commands,
    missing_lines,
    needs_of,
    ready_sign,
    saved,
    steps_of,
)

ROOT = Path(__file__).parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
}
WALKED = sorted(name for name, text in PAGES.items() if any(True for _ in steps_of(text)))
#: One page of each kind; the others are walked by `make soak`.
ALWAYS_WALKED = {"README.md", "docs/how-to/connect-claude-code.md", "docs/tutorial/first-agent.md"}
#: The only commands that are not run here, by how they begin, and why.
NOT_RUN = {
    "make ": "the tree is set up and tested by it; tests/cli/test_demo.py compares `make run` with `headgate demo`",
    "docker compose ": "needs a container engine and an image from a registry",
    "systemctl --user ": "needs a session of systemd",
    "uv tool install ": "installs packages from a registry; tests/test_wheel.py installs the wheel",
    "pipx install ": "the same",
    "pip install ": "the same",
    "python -m hatchling build": "builds the tree; tests/test_wheel.py does it",
    "tools/bundle": "builds the tree; tests/test_distribution.py does it",
    "age -d ": "the program `age` is not among the locked packages; tests/cli/test_encrypted_backup.py reads the format",
}
#: What a reader copies from what was printed before, by the word that stands for it in a command.
COPIED = {
    "grt_...": re.compile(r"\bgrt_\w+"),
    "CONNECTION_ID": re.compile(r"\b([a-z0-9-]+)/messages:"),
    "rul_...": re.compile(r"\brul_\w+"),
    "hg_...": re.compile(r"\bhg_[\w-]+"),
    "RECORD": re.compile(r"\bmessages:(\w+)"),
    "MARK": re.compile(r"(\w+)  prometheus"),
}
#: What `make run` does once the tree is set up.
SAME_AS = {"make run": "headgate demo"}


class Reader:
    """A person who follows a page: one terminal for commands, and one for what goes on until Ctrl-C."""

    def __init__(
        self, place: Path, stack: ExitStack, machine: Mapping[str, str], reached: ReachedServer
    ) -> None:
        self._place, self._stack, self._machine, self._reached = place, stack, machine, reached
        self._terminal = self._open()
        #: By the program that goes on.
        self._serving: dict[str, Terminal] = {}

    def follow(self, step: ShownFile | Commands) -> None:
        """Save a file of the page, or give its commands and compare what they print."""
        if isinstance(step, ShownFile):
            saved(self._place, step, self._changed(step.content))
            return
        printed = "".join(self._give(command) for command in step.lines)
        if step.output is not None:
            assert missing_lines(self._changed(step.output), printed) == [], printed

    def stop(self, program: str) -> None:
        """Press Ctrl-C in the terminal of a program that goes on."""
        terminal = self._serving.pop(program, None)
        if terminal is not None:
            code = terminal.interrupt()
            assert code == 0 or program == "python", terminal.printed

    def leave(self) -> None:
        """Stop everything that goes on."""
        for program in reversed([*self._serving]):
            self.stop(program)

    def run(self, command: str) -> str:
        """Give a command that has to succeed, and give what it printed."""
        code, printed = self._terminal.run(command)
        # An import that left something out, and lists it, is done.
        assert code == 0 or (code == 65 and " import " in command), f"{command}\n{printed}"
        return printed

    def _give(self, command: str) -> str:
        command = self._copied(self._changed(SAME_AS.get(command, command)))
        if any(command.startswith(known) for known in NOT_RUN):
            return ""
        sign = ready_sign(command)
        if sign is None:
            return self.run(command)
        program = "python" if command.startswith("python") else "headgate"
        self.stop(program)
        self._serving[program] = self._open()
        return self._serving[program].start(command, sign)

    def _open(self) -> Terminal:
        return self._stack.enter_context(Terminal(self._place, self._machine, self._reached.password))

    def _changed(self, text: str) -> str:
        for old, new in self._reached.changes.items():
            text = text.replace(old, new)
        return text

    def _copied(self, command: str) -> str:
        for word in (one for one in COPIED if one in command):
            found = list(COPIED[word].finditer(self._terminal.printed))
            assert found, f"nothing was printed that {word} could stand for"
            command = command.replace(word, found[-1][found[-1].lastindex or 0])
        return command


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def reader_of(place: Path, name: str) -> Iterator[Reader]:
    """Give a reader with an empty machine, and with the servers that the page names."""
    ports = {port: free_port() for port in ("8321", "8322", "9000")}
    with ExitStack() as stack:
        server = SERVERS.get(name)
        reached = ReachedServer() if server is None else stack.enter_context(server(place))
        # A page that sets the port shows where it came from, so that no variable may be set.
        variables = {} if "9000" in PAGES[name] else {"HEADGATE_PORT": ports["8321"]}
        machine = {**empty_machine(place), **variables}
        reader = Reader(
            place,
            stack,
            machine,
            replace(reached, changes={**reached.changes, **ports, "/home/you": str(place)}),
        )
        yield reader
        reader.leave()


@pytest.mark.parametrize(
    "name", [name if name in ALWAYS_WALKED else pytest.param(name, marks=pytest.mark.soak) for name in WALKED]
)
def test_a_reader_with_an_empty_machine_can_follow_the_page(name: str, tmp_path: Path):
    needs, brought = needs_of(PAGES[name]), FILES.get(name, {})
    assert needs - {"records"} == brought.keys()
    for bring in brought.values():
        bring(tmp_path)
    with reader_of(tmp_path, name) as reader:
        if "records" in needs:
            reader.run(f"headgate import --yes {ROOT / 'examples' / 'letters.mbox'}")
        for step in steps_of(PAGES[name]):
            reader.follow(step)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_command_of_a_page_stands_in_a_block_that_is_run(name: str):
    assert hidden_commands(PAGES[name]) == []


def test_every_reason_not_to_run_a_command_is_still_needed():
    given = [
        command
        for text in PAGES.values()
        for step in steps_of(text)
        if isinstance(step, Commands)
        for command in step.lines
    ]
    assert [known for known in NOT_RUN if not any(command.startswith(known) for command in given)] == []


def test_what_readers_bring_is_needed_by_a_page():
    assert {*FILES, *SERVERS} <= {*WALKED}
