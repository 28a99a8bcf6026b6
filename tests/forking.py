"""Commands in children of one process that has imported the program: most of a command's time is its start.

Run as a module it reads calls from standard input, one JSON object a line, and writes how each one ended; or, of a
command that goes on, that it was started.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from tests.forked_process import ForkedProcess

ROOT = Path(__file__).parents[1]
#: How long the process that forks may take to start a command.
_START_SECONDS = 60


class ForkingParent:
    """A process that has imported the program and forks for each command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking"],
            cwd=ROOT,
            # What the interpreter itself reads at its start: the same as for a command that is started alone. A
            # process with threads cannot be forked safely.
            env={"PATH": os.environ["PATH"], "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(
        self, place: Path, words: Sequence[str], variables: Mapping[str, str], limit_seconds: float
    ) -> tuple[int, str, str]:
        """Return exit code, output and errors of a command."""
        call = {"place": str(place), "words": list(words), "variables": dict(variables)}
        code, out, err = self._answer(call, limit_seconds)
        return code, out, err

    def start(
        self, place: Path, words: Sequence[str], variables: Mapping[str, str], log: Path | None = None
    ) -> ForkedProcess:
        """Start a command that goes on; its errors are written to a log, if there is one, and can be read if not."""
        process = ForkedProcess(words, log)
        call = {"place": str(place), "words": list(words), "variables": dict(variables), **process.ends}
        self._answer(call, _START_SECONDS)
        process.begin()
        return process

    def _answer(self, call: dict[str, Any], limit_seconds: float) -> Any:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with self._lock:
            requests.write(json.dumps(call).encode() + b"\n")
            requests.flush()
            if not select.select([answers], [], [], limit_seconds)[0]:
                self.stop()
                raise subprocess.TimeoutExpired(call["words"], limit_seconds)
            return json.loads(answers.readline())

    def stop(self) -> None:
        """End the process, and a command that still runs with it."""
        shared_parent.cache_clear()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@functools.cache
def shared_parent() -> ForkingParent:
    """Return the one parent of this process."""
    parent = ForkingParent()
    atexit.register(parent.stop)
    return parent


def _run(call: dict[str, Any]) -> tuple[int, str, str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _become(call, out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return code, _text(out), _text(err)


def _start(call: dict[str, Any]) -> None:
    """Fork a command, and a process beside it that waits for its end and says how it ended."""
    while _has_ended():
        pass
    out, err, ended = (os.open(call[name], os.O_WRONLY | os.O_APPEND) for name in ("out", "err", "ended"))
    if not os.fork():
        child = os.fork()
        if not child:
            os.close(ended)
            _become(call, out, err)
        for end in (0, 1, out, err):
            os.close(end)
        os.write(ended, f"{child}\n".encode())
        os.write(ended, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
        os._exit(0)
    for end in (out, err, ended):
        os.close(end)


def _has_ended() -> bool:
    """Say whether a process that waited for a command has ended, and let go of it."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _become(call: dict[str, Any], out: int, err: int) -> NoReturn:
    """Run the command in this process, and end it as the interpreter would."""
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(source, target)
        os.close(source)
    os.chdir(call["place"])
    os.environ.clear()
    os.environ.update(call["variables"])
    # It was found in the environment of the process that forks.
    tempfile.tempdir = None
    # As `python -m headgate` does.
    sys.argv = [str(ROOT / "src" / "headgate" / "__main__.py"), *call["words"]]
    code: object = 1
    try:
        from headgate.cli.main import run  # noqa: PLC0415 - only in the process that forks

        run()
    except SystemExit as end:
        code = 0 if end.code is None else end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does at its end
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


def main() -> None:
    from headgate.cli.main import COMMANDS  # noqa: PLC0415 - only in the process that forks

    # What commands import when they need it.
    needed = ("headgate.hosting", "headgate.sources.accounts", "headgate.sources.registry", "structlog")
    for name in (*(f"headgate.cli.{entry.module}" for entry in COMMANDS.values()), *needed):
        importlib.import_module(name)
    # A collection in a child would copy every page of what was imported.
    gc.freeze()
    for line in sys.stdin.buffer:
        call = json.loads(line)
        sys.stdout.write(json.dumps(_start(call) if "ended" in call else _run(call)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
