"""Commands in children of one process that has imported the program: most of a command's time is its start.

Run as a module it reads calls from standard input, one JSON object a line, and writes how each one ended.
"""

from __future__ import annotations

import atexit
import functools
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
from typing import IO, Any

ROOT = Path(__file__).parents[1]


class ForkingParent:
    """A process that has imported the program and forks for each command."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forking"],
            cwd=ROOT,
            # What the interpreter itself reads at its start: the same as for a command that is started alone.
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def run(
        self, place: Path, words: Sequence[str], variables: Mapping[str, str], limit_seconds: float
    ) -> tuple[int, str, str]:
        """Return exit code, output and errors of a command."""
        call = {"place": str(place), "words": list(words), "variables": dict(variables)}
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        with self._lock:
            requests.write(json.dumps(call).encode() + b"\n")
            requests.flush()
            if not select.select([answers], [], [], limit_seconds)[0]:
                self.stop()
                raise subprocess.TimeoutExpired(list(words), limit_seconds)
            code, out, err = json.loads(answers.readline())
        return code, out, err

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


def _become(call: dict[str, Any], out: int, err: int) -> None:
    """Run the command in this process, and end it as the interpreter would."""
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
        os.dup2(source, target)
    os.chdir(call["place"])
    os.environ.clear()
    os.environ.update(call["variables"])
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
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


def main() -> None:
    # What most commands import when they need it.
    import headgate.cli.main  # noqa: PLC0415 - only in the process that forks
    import headgate.sources.registry  # noqa: PLC0415 - the same
    import headgate.wiring  # noqa: F401, PLC0415 - the same

    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
