"""A terminal as a person has one: a shell on a pseudo-terminal, in an empty directory, with an empty environment."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

#: Printed before each command that the shell waits for, with the exit code of the last one.
_PROMPT = re.compile(r"<done (\d+)>")
# A question ends in a blank once the program reads; what is typed before may be discarded.
_QUESTION = re.compile(r"\[[yY]/[nN]\]: $")
_PASSPHRASE = re.compile(r"(?:[Pp]assphrase|Repeat for confirmation)[^\n]*: $")
_PASSWORD = re.compile(r"[Pp]assword[^\n]*: $")
#: Only a program that hangs takes as long.
WAIT_SECONDS = 120
VENV = Path(__file__).parents[2] / ".venv" / "bin"


def empty_machine(place: Path) -> dict[str, str]:
    """Make a directory of programs with `headgate` and `python` in it; give the environment of a new user."""
    programs = place / ".local" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in ("headgate", "python"):
        (programs / name).write_text(f'#!/bin/sh\nexec "{VENV / name}" "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    return {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        # Without a model: making vectors would take the processor from what a page is about.
        "HEADGATE_SEMANTIC_MODEL": "off",
    }


class Terminal:
    """One shell. `run` waits for the end of a command, `start` for what it prints."""

    def __init__(self, directory: Path, environment: Mapping[str, str], password: str = "") -> None:
        self._answers = (
            (_QUESTION, "y\n"),
            (_PASSPHRASE, "six green boats at noon\n"),
            (_PASSWORD, f"{password}\n"),
        )
        self._master, slave = os.openpty()
        self._printed = ""
        self._seen = 0
        self._changed = threading.Condition()
        self._shell = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"],
            cwd=directory,
            env={**environment, "PS1": "<done $?>", "PS2": ""},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._until(_PROMPT)
        self.run("stty -echo cols 200; set -u")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._shell.kill()
        self._shell.wait()
        self._reader.join(WAIT_SECONDS)
        os.close(self._master)

    @property
    def printed(self) -> str:
        """Everything that was printed so far."""
        return self._printed

    def run(self, command: str) -> tuple[int, str]:
        """Type a command, answer its questions, and give its exit code and what it printed."""
        self._type(f"{command}\n")
        text, found = self._until(_PROMPT)
        return int(found[1]), text

    def start(self, command: str, until: re.Pattern[str]) -> str:
        """Type a command that goes on, and give what it printed up to a pattern."""
        self._type(f"{command}\n")
        text, found = self._until(re.compile(f"{until.pattern}|{_PROMPT.pattern}", until.flags))
        assert not _PROMPT.fullmatch(found[0]), text
        return text + found[0]

    def interrupt(self) -> int:
        """Press Ctrl-C, and give the exit code."""
        self._type("\x03")
        return int(self._until(_PROMPT)[1][1])

    def _type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _read(self) -> None:
        # The end of the shell is an error of the pseudo-terminal.
        with contextlib.suppress(OSError):
            while piece := os.read(self._master, 65536):
                with self._changed:
                    self._printed += piece.decode(errors="replace").replace("\r\n", "\n")
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def _until(self, wanted: re.Pattern[str]) -> tuple[str, re.Match[str]]:
        """Wait for a pattern, and answer questions meanwhile; give what came before it."""
        start = answered = self._seen
        while True:
            with self._changed:
                found = wanted.search(self._printed, start)
                if found:
                    self._seen = found.end()
                    return self._printed[start : found.start()], found
                for question, answer in self._answers:
                    if question.search(self._printed, answered):
                        answered = len(self._printed)
                        self._type(answer)
                length = len(self._printed)
                has_more = self._changed.wait_for(
                    lambda length=length: len(self._printed) > length, WAIT_SECONDS
                )
            assert has_more, f"it printed nothing more in {WAIT_SECONDS} s:\n{self._printed[start:]}"
