"""Run the real program as a newcomer would: in a new process with a clean environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "headgate")
WAIT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Served:
    address: str
    announcement: str
    process: subprocess.Popen[str]


def environment(place: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """Everything the program may read lies in the test's own directory."""
    return {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_CONFIG_HOME": str(place / "etc"), **extra}


def headgate(place: Path, *arguments: str, **extra: str) -> Outcome:
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=place,
        env=environment(place, extra),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(place: Path, *arguments: str, log: Path | None = None, **extra: str) -> Iterator[Served]:
    """Start `headgate serve` on a free port and give its address once it answers.

    A server that logs more than a pipe holds needs a file for it, or it waits for a reader.
    """
    with nullcontext(subprocess.PIPE) if log is None else log.open("a") as err:
        process = subprocess.Popen(
            [*COMMAND, "--home", str(place / "home"), "serve", "--port", "0", *arguments],
            cwd=place,
            env=environment(place, extra),
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    try:
        assert process.stdout is not None
        announcement = [process.stdout.readline() for _ in range(3)]
        address = re.search(r"http://\S+", announcement[0])
        assert address, process.communicate()
        yield Served(address.group(), "".join(announcement), process)
    finally:
        process.kill()
        process.communicate()
