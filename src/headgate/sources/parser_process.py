"""A process that parses what strangers wrote, so that what a parser does to its process ends neither a server nor an import.

It is this interpreter, started again with a fixed argument; what it reads, and all that it answers, are messages of a
closed set of types over its standard input and output. It may use a bounded amount of memory, ends itself when it makes
no step for a minute, and ends when the other side of its pipe is closed. This is the only module that starts a process.
"""

from __future__ import annotations

import os
import signal
import subprocess  # noqa: TID251 - this module alone, and this interpreter alone
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import msgspec

from headgate import errors
from headgate.errors import HeadgateError, OperationError
from headgate.sources.reading_note import NOTE, LastRead, last_read
from headgate.system import limit_process, was_ended_by_time

if TYPE_CHECKING:
    from headgate.sources.parser_requests import ParserRequest

MEMORY_BYTES = 1024**3
IDLE_SECONDS = 60.0
#: A part of an import is much smaller, unless one file alone is as large as files of records may be.
_MAX_MESSAGE_BYTES = 512 * 1024**2
_LENGTH_BYTES = 4
_VALUE, _END, _ERROR, _FAILURE = b"v", b".", b"e", b"f"
#: What the parsers of this interpreter need of the environment; secrets stay here.
_PASSED_ON = ("PYTHON", "LC_", "LD_", "DYLD_")
_PASSED_ON_NAMES = frozenset({"PATH", "LANG", "TZ", "TZDIR", "HOME", "SYSTEMROOT", "VIRTUAL_ENV"})
#: Libraries that would reserve address space for each of many threads.
_ONE_THREAD = {
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
}

_CLOSED = "Reading was ended."

_T = TypeVar("_T")


class ParserEnded(Exception):
    """The process ended before it answered; the text says why, as a reason for a reject."""

    def __init__(self, reason: str, read: LastRead | None) -> None:
        super().__init__(reason)
        self.reason = reason
        #: What was being read.
        self.read = read


class _Refusal(NamedTuple):
    """An error with a name, on its way to the other process."""

    kind: str
    message: str
    hint: str
    param: str | None
    data: dict[str, Any]


class ParserProcess:
    """A process for one import, preview or fetch; it is started when it is needed, and again after it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        #: Of the last request.
        self._note: Path | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether it remembers what it was asked before."""
        return self._process is not None

    def ask(self, request: ParserRequest, answer: type[_T], note: Path | None = None) -> Iterator[_T]:
        """Send a request, and give the values of the answer as they come.

        What is being read is noted in a file, here in one that goes with this object.

        Raises:
            ParserEnded: the process ended.
        """
        process = self._started()
        self._note = note or Path(self._temporary()) / "note"
        noted = msgspec.structs.replace(request, note=os.fsencode(self._note))
        is_whole = False
        try:
            with suppress(BrokenPipeError):
                _send(_input(process), b"", msgspec.msgpack.encode(noted))
            decoder = msgspec.msgpack.Decoder(answer)
            while (message := self._received(process)) is not None:
                yield decoder.decode(message)
            is_whole = True
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ParserEnded("The parser's answer cannot be understood.", None) from None
        finally:
            if not is_whole:
                self.end()

    def one(self, request: ParserRequest, answer: type[_T], note: Path | None = None) -> _T:
        """Send a request that is answered with one value; raises what `ask` does."""
        (found,) = self.ask(request, answer, note)
        return found

    def _started(self) -> subprocess.Popen[bytes]:
        if self._is_closed:
            raise ParserEnded(_CLOSED, None)
        if self._process is None:
            # Never a shell, never a name that is looked up, and nothing of the data among the arguments.
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(self._temporary()),
            )
            limits = msgspec.msgpack.encode((MEMORY_BYTES, IDLE_SECONDS))
            with suppress(BrokenPipeError):
                _send(_input(self._process), b"", limits)
        return self._process

    def _temporary(self) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="headgate-")
        return self._directory.name

    def _received(self, process: subprocess.Popen[bytes]) -> bytes | None:
        """Read the next message; None at the end of the answer."""
        kind, body = _receive(_output(process))
        if kind == _VALUE:
            return body
        if kind == _END:
            return None
        if kind == _ERROR:
            raise _error(msgspec.msgpack.decode(body, type=_Refusal))
        if self._is_closed:
            # By the caller, while a thread of it waited here.
            raise ParserEnded(_CLOSED, None)
        read = None if self._note is None else last_read(self._note)
        self.end()
        raise ParserEnded(_why_failed(body) if kind == _FAILURE else _why_ended(process.returncode), read)

    def end(self) -> None:
        """End the process; the next request starts another one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait()

    def close(self) -> None:
        """End the process for good, and remove what it wrote beside its answers."""
        self._is_closed = True
        self.end()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


def _environment(temporary: str) -> dict[str, str]:
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PASSED_ON) or name in _PASSED_ON_NAMES
    }
    return {**passed, **_ONE_THREAD, "TMPDIR": temporary, "TEMP": temporary}


def _input(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _why_failed(kind: bytes) -> str:
    if kind == b"MemoryError":
        return f"Reading it needs more than {MEMORY_BYTES // 1024**2:,} MB of memory."
    return f"The parser failed: {kind.decode('ascii', 'replace')}."


def _why_ended(code: int | None) -> str:
    if was_ended_by_time(code):
        return f"Reading it made no progress for {IDLE_SECONDS:.0f} seconds."
    return "The parser crashed while it read it."


def _error(refusal: _Refusal) -> Exception:
    """Make the error that was raised in the other process; only those of the tree, and two of Python's."""
    if refusal.kind == "OSError":
        return OSError(refusal.message)
    if refusal.kind == "ModuleNotFoundError":
        return ModuleNotFoundError(refusal.message, name=refusal.param)
    kind = getattr(errors, refusal.kind, None)
    if not isinstance(kind, type) or not issubclass(kind, HeadgateError) or issubclass(kind, OperationError):
        kind = HeadgateError
    return kind(refusal.message, hint=refusal.hint, param=refusal.param, data=refusal.data)


# Messages


def _send(pipe: IO[bytes], kind: bytes, body: bytes) -> None:
    pipe.write(len(body).to_bytes(_LENGTH_BYTES) + kind)
    pipe.write(body)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    """Read a message; an empty kind stands for the end of the process."""
    begin = pipe.read(_LENGTH_BYTES + 1)
    length = int.from_bytes(begin[:_LENGTH_BYTES])
    if len(begin) <= _LENGTH_BYTES or length > _MAX_MESSAGE_BYTES:
        return b"", b""
    body = pipe.read(length)
    return (begin[_LENGTH_BYTES:], body) if len(body) == length else (b"", b"")


def _received_request(pipe: IO[bytes]) -> bytes | None:
    begin = pipe.read(_LENGTH_BYTES)
    return pipe.read(int.from_bytes(begin)) if len(begin) == _LENGTH_BYTES else None


# In the process


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    # A key that interrupts a command reaches this process too; it ends with its pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    started = _received_request(requests)
    if started is None:
        return
    memory_bytes, idle_seconds = msgspec.msgpack.decode(started, type=tuple[int, float])
    limit_process(memory_bytes)
    NOTE.end_when_idle(idle_seconds)
    with suppress(BrokenPipeError):
        _answer_all(requests, answers)
    # What parsers began in threads is not waited for.
    os._exit(0)


def _answer_all(requests: IO[bytes], answers: IO[bytes]) -> None:
    from headgate.sources.parser_requests import ParserRequest, ParserState  # noqa: PLC0415 - parsers

    decoder, state = msgspec.msgpack.Decoder(ParserRequest), ParserState()
    while True:
        NOTE.rest()
        request = _received_request(requests)
        if request is None:
            return
        NOTE.step()
        try:
            for value in decoder.decode(request).answer(state):
                _give(answers, _VALUE, msgspec.msgpack.encode(value))
        except HeadgateError as error:
            data = dict(error.data)
            refusal = _Refusal(type(error).__name__, error.message, error.hint, error.param, data)
            _give(answers, _ERROR, msgspec.msgpack.encode(refusal))
        except BrokenPipeError:
            raise
        except OSError as error:
            refusal = _Refusal("OSError", error.strerror or str(error), "", None, {})
            _give(answers, _ERROR, msgspec.msgpack.encode(refusal))
        except ModuleNotFoundError as error:
            missing = _Refusal("ModuleNotFoundError", str(error), "", error.name, {})
            _give(answers, _ERROR, msgspec.msgpack.encode(missing))
        except Exception as error:  # noqa: BLE001 - a mistake of a parser costs what it read, not the import
            _give(answers, _FAILURE, type(error).__name__.encode("ascii", "replace"))
            return
        else:
            _give(answers, _END, b"")


def _give(answers: IO[bytes], kind: bytes, body: bytes) -> None:
    NOTE.rest()
    _send(answers, kind, body)
    NOTE.step()


if __name__ == "__main__":
    main()
