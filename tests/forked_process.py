"""A command that goes on in a child of another process: what `subprocess.Popen` does for a child of our own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO


class ForkedProcess:
    """A command with pipes for what it prints and a pipe that says how it ended."""

    def __init__(self, words: Sequence[str], log: Path | None) -> None:
        self._words = list(words)
        self._folder = tempfile.TemporaryDirectory(prefix="headgate-forked-")
        folder = Path(self._folder.name)
        self.stdout: IO[str] = _reading_end(folder / "out")
        self.stderr: IO[str] | None = _reading_end(folder / "err") if log is None else None
        self._ended = _reading_end(folder / "ended")
        #: The names of the ends that the command, and who waits for it, write to.
        self.ends = {name: str(folder / name) for name in ("out", "err", "ended")}
        if log is not None:
            log.touch()
            self.ends["err"] = str(log)
        self.pid = 0
        self.returncode: int | None = None

    def begin(self) -> None:
        """Read the number of the process, now that somebody has opened the other ends."""
        self._folder.cleanup()
        for file in (self.stdout, self.stderr, self._ended):
            if file is not None:
                os.set_blocking(file.fileno(), True)
        self.pid = int(self._ended.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while the command goes on."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._words, timeout or 0)
            self.returncode = int(self._ended.readline())
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str | None]:
        """Wait for the end, and return what was printed and not yet read."""
        with ThreadPoolExecutor() as readers:
            out = readers.submit(_rest, self.stdout)
            err = readers.submit(_rest, self.stderr)
            self.wait(timeout)
            return out.result(timeout) or "", err.result(timeout)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if self.poll() is None:
            # It can end meanwhile.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the command to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the command at once."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes."""
        for file in (self.stdout, self.stderr, self._ended):
            if file is not None:
                file.close()


def _reading_end(path: Path) -> IO[str]:
    os.mkfifo(path)
    # The other end is opened later, and opening must not wait for it.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8")


def _rest(file: IO[str] | None) -> str | None:
    return None if file is None or file.closed else file.read()
