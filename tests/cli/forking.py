"""Many commands, each in a child of one process that has imported the program: most of a command's time is its start.

Run as a module it reads the calls as JSON from standard input, and writes how each one ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headgate.cli.main import run
from tests.on_socket import Outcome, environment

ROOT = Path(__file__).parents[2]


def headgate_each(calls: Sequence[tuple[Path, Sequence[str]]], **extra: str) -> list[Outcome]:
    """Run commands one after the other, each in its own place, as `tests.on_socket.headgate` does."""
    sent = [
        {"place": str(place), "words": list(words), "variables": environment(place, extra)}
        for place, words in calls
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.forking"],
        cwd=ROOT,
        input=json.dumps(sent),
        capture_output=True,
        text=True,
        check=True,
    )
    return [Outcome(*one) for one in json.loads(done.stdout)]


def _run(call: dict[str, Any]) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _become(call, out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, _text(out), _text(err)


def _become(call: dict[str, Any], out: int, err: int) -> None:
    """Run the command in this process, and end it."""
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    os.chdir(call["place"])
    os.environ.clear()
    os.environ.update(call["variables"])
    sys.argv = ["headgate", *call["words"]]
    code: object = 1
    try:
        run()
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


def main() -> None:
    # What most commands import when they need it.
    import headgate.sources.registry  # noqa: PLC0415 - only in the process that runs them
    import headgate.wiring  # noqa: F401, PLC0415 - the same

    print(json.dumps([_run(call) for call in json.load(sys.stdin)]))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
