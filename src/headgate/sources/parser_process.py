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
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

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


# Messages: the limits, then a request; to each request values and an end.


class _Value(msgspec.Struct, tag=True):
    value: msgspec.Raw


class _End(msgspec.Struct, tag=True):
    pass


class _ParserRefused(msgspec.Struct, tag=True):
    """An error with a name: one of the tree, or one of two of Python's."""

    kind: str
    message: str
    hint: str = ""
    param: str | None = None
    data: dict[str, Any] = {}

    def error(self) -> Exception:
        if self.kind == "OSError":
            return OSError(self.message)
        if self.kind == "ModuleNotFoundError":
            return ModuleNotFoundError(self.message, name=self.param)
        kind = getattr(errors, self.kind, None)
        if (
            not isinstance(kind, type)
            or not issubclass(kind, HeadgateError)
            or issubclass(kind, OperationError)
        ):
            kind = HeadgateError
        return kind(self.message, hint=self.hint, param=self.param, data=self.data)


class _ParserFailed(msgspec.Struct, tag=True):
    """A mistake of a parser, after which the process ends."""

    kind: str

    @property
    def reason(self) -> str:
        if self.kind == "MemoryError":
            return f"Reading it needs more than {MEMORY_BYTES // 1024**2:,} MB of memory."
        return f"The parser failed: {self.kind}."


_ANSWER = msgspec.msgpack.Decoder(_Value | _End | _ParserRefused | _ParserFailed)


def _send(pipe: IO[bytes], message: object) -> None:
    body = msgspec.msgpack.encode(message)
    pipe.write(len(body).to_bytes(_LENGTH_BYTES))
    pipe.write(body)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """Read a message; None if the other side has ended, or says what cannot be meant."""
    length = pipe.read(_LENGTH_BYTES)
    size = int.from_bytes(length)
    if len(length) < _LENGTH_BYTES or size > _MAX_MESSAGE_BYTES:
        return None
    body = pipe.read(size)
    return body if len(body) == size else None


class ParserProcess:
    """A process for one import, preview or fetch; it is started when it is needed, and again after it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._is_closed = False

    def ask(self, request: ParserRequest, answer: type[_T], note: Path | None = None) -> Iterator[_T]:
        """Send a request, and give the values of the answer as they come.

        What is being read is noted in a file, here in one that goes with this object.

        Raises:
            ParserEnded: the process ended.
            HeadgateError: the request is refused.
            OSError: what it names cannot be read.
        """
        process = self._started()
        note = note or Path(self._temporary()) / "note"
        is_whole = False
        try:
            with suppress(BrokenPipeError):
                _send(cast("IO[bytes]", process.stdin), (os.fsencode(note), request))
            decoder = msgspec.msgpack.Decoder(answer)
            while (value := self._received(process, note)) is not None:
                yield decoder.decode(value)
            is_whole = True
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ParserEnded("The parser's answer cannot be understood.", None) from None
        finally:
            if not is_whole:
                self.end()

    def one(self, request: ParserRequest, answer: type[_T], note: Path | None = None) -> _T:
        """Send a request that is answered with one value; raises what `ask` does."""
        (value,) = self.ask(request, answer, note)
        return value

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
            with suppress(BrokenPipeError):
                _send(cast("IO[bytes]", self._process.stdin), (MEMORY_BYTES, IDLE_SECONDS))
        return self._process

    def _temporary(self) -> str:
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="headgate-")
        return self._directory.name

    def _received(self, process: subprocess.Popen[bytes], note: Path) -> msgspec.Raw | None:
        """Read the next value; None at the end of the answer."""
        message = _receive(cast("IO[bytes]", process.stdout))
        answer = None if message is None else _ANSWER.decode(message)
        if isinstance(answer, _Value):
            return answer.value
        if isinstance(answer, _End):
            return None
        if isinstance(answer, _ParserRefused):
            raise answer.error()
        if self._is_closed:
            # By the caller, while a thread of it waited here.
            raise ParserEnded(_CLOSED, None)
        read = last_read(note)
        self.end()
        if answer is not None:
            raise ParserEnded(answer.reason, read)
        if was_ended_by_time(process.returncode):
            raise ParserEnded(f"Reading it made no progress for {IDLE_SECONDS:.0f} seconds.", read)
        raise ParserEnded("The parser crashed while it read it.", read)

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


# In the process


def main() -> None:
    """Answer requests until there are no more."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    # A key that interrupts a command reaches this process too; it ends with its pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limits = _receive(requests)
    if limits is None:
        return
    memory_bytes, idle_seconds = msgspec.msgpack.decode(limits, type=tuple[int, float])
    limit_process(memory_bytes)
    NOTE.end_when_idle(idle_seconds)
    with suppress(BrokenPipeError):
        _answer_all(requests, answers)
    # What parsers began in threads is not waited for.
    os._exit(0)


def _answer_all(requests: IO[bytes], answers: IO[bytes]) -> None:
    from headgate.sources.parser_requests import ParserRequest, ParserState  # noqa: PLC0415 - parsers

    decoder, state = msgspec.msgpack.Decoder(tuple[bytes, ParserRequest]), ParserState()
    while True:
        NOTE.rest()
        received = _receive(requests)
        if received is None:
            return
        NOTE.step()
        last: _End | _ParserRefused | _ParserFailed = _End()
        try:
            note, request = decoder.decode(received)
            NOTE.begin(Path(os.fsdecode(note)), request.refused)
            for value in request.answer(state):
                _give(answers, _Value(msgspec.Raw(msgspec.msgpack.encode(value))))
        except HeadgateError as error:
            last = _ParserRefused(
                type(error).__name__, error.message, error.hint, error.param, dict(error.data)
            )
        except BrokenPipeError:
            raise
        except OSError as error:
            last = _ParserRefused("OSError", error.strerror or str(error))
        except ModuleNotFoundError as error:
            last = _ParserRefused("ModuleNotFoundError", str(error), param=error.name)
        except Exception as error:  # noqa: BLE001 - a mistake of a parser costs what it read, not the import
            last = _ParserFailed(type(error).__name__)
        _give(answers, last)
        if isinstance(last, _ParserFailed):
            return


def _give(answers: IO[bytes], message: object) -> None:
    NOTE.rest()
    _send(answers, message)
    NOTE.step()


if __name__ == "__main__":
    main()
