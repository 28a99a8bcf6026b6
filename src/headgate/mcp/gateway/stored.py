"""The calls of the last hour and their answers, each in a private file that is written before the call is sent.

So an answer that is too long for a model, or was lost on its way, can be read in parts, and a call whose answer never
came is known as one that may have run. A handle is random, is valid for its caller alone, and ends after an hour.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from headgate.errors import CallError, StorageFull, StorageReadOnly
from headgate.home import write_private

KEPT_SECONDS = 3600
#: Of one caller's answers, and of all; the oldest go first.
CALLER_BYTES, ALL_BYTES = 64 * 1024 * 1024, 512 * 1024 * 1024
CALLER_CALLS = 1000
_SWEEP_SECONDS = 60.0
_HANDLE_BYTES = 9
_HANDLE_CHARS = 12
_HANDLE_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_SUFFIX = ".json"
SENT, ANSWERED = "sent", "answered"


def _seconds() -> float:
    # Applications offer a registry without a home, so this reads the clock itself; a server passes its own.
    return time.time_ns() / 1e9


class StoredCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call and, once it has ended, its answer."""

    operation: str
    #: Seconds since 1970.
    at: float
    #: ``sent``, ``answered``, or the code of the error.
    outcome: str = SENT
    content: Sequence[Mapping[str, Any]] = ()
    structured: Any = None
    has_structure: bool = False
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ListedCall:
    """A stored call in a list: its handle, what was called, how it ended, and the bytes of its file."""

    handle: str
    operation: str
    at: float
    outcome: str
    size: int


class _Summary(msgspec.Struct):
    """What a list needs of a call; decoding skips the rest."""

    operation: str
    at: float
    outcome: str = SENT


@dataclass(slots=True)
class StoredCalls:
    """Stores calls in a directory; without one, in a temporary directory of this process."""

    directory: Path | None = None
    clock: Callable[[], float] = _seconds
    _next_sweep: float = field(default=0.0, init=False)

    async def begin(self, caller: str | None, operation: str) -> str:
        """Note a call that is about to be sent, and return its handle.

        Raises:
            CallError: it cannot be noted, so it must not be sent.
        """
        handle = secrets.token_urlsafe(_HANDLE_BYTES)
        await asyncio.to_thread(self._write, caller, handle, StoredCall(operation, self.clock()))
        return handle

    async def end(self, caller: str | None, handle: str, call: StoredCall) -> bool:
        """Store the end of a call; return whether there was room for it."""
        try:
            await asyncio.to_thread(self._write, caller, handle, call)
        except CallError:
            return False
        return True

    async def find(self, caller: str | None, handle: str) -> StoredCall:
        """Read a call.

        Raises:
            CallError: there is none of that handle for this caller.
        """
        call = await asyncio.to_thread(self._read, caller, handle)
        if call is None:
            raise CallError(
                "NOT_FOUND",
                "There is no such answer: it is not yours, or older than an hour. Call read without one.",
            )
        return call

    async def calls(self, caller: str, limit: int) -> list[ListedCall]:
        """List a caller's calls, newest first."""
        return await asyncio.to_thread(self._list, caller, limit)

    def _write(self, caller: str | None, handle: str, call: StoredCall) -> None:
        content = msgspec.json.encode(call)
        if len(content) > CALLER_BYTES // 2:
            raise CallError("RESOURCE_LIMIT", f"The answer has {len(content)} bytes.")
        try:
            folder = self._folder(caller)
            # Each by itself: parents that mkdir makes are open to other users.
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            self._make_room(folder, len(content))
            write_private(folder / f"{handle}{_SUFFIX}", content)
        except (OSError, StorageFull, StorageReadOnly) as error:
            raise CallError("RESOURCE_LIMIT", "There is no room to note the call.") from error

    def _read(self, caller: str | None, handle: str) -> StoredCall | None:
        if len(handle) != _HANDLE_CHARS or not _HANDLE_SIGNS.issuperset(handle):
            return None
        try:
            call = msgspec.json.decode(
                (self._folder(caller) / f"{handle}{_SUFFIX}").read_bytes(), type=StoredCall
            )
        except (OSError, msgspec.MsgspecError):
            return None
        return call if self.clock() - call.at < KEPT_SECONDS else None

    def _list(self, caller: str, limit: int) -> list[ListedCall]:
        calls: list[ListedCall] = []
        for path, size in _files(self._folder(caller)):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                summary = msgspec.json.decode(path.read_bytes(), type=_Summary)
                calls.append(ListedCall(path.stem, summary.operation, summary.at, summary.outcome, size))
        recent = [call for call in calls if self.clock() - call.at < KEPT_SECONDS]
        return sorted(recent, key=lambda call: call.at, reverse=True)[:limit]

    def _make_room(self, folder: Path, size: int) -> None:
        """Remove what is too old, and then the oldest until there is room."""
        now = self.clock()
        _drop(_by_age(_files(folder), now), CALLER_BYTES - size, CALLER_CALLS - 1)
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_SECONDS
            everything = [file for other in folder.parent.iterdir() for file in _files(other)]
            _drop(_by_age(everything, now), ALL_BYTES - size, None)

    def _folder(self, caller: str | None) -> Path:
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix="headgate-calls-"))
            atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        name = "anyone" if caller is None else sha256(caller.encode()).hexdigest()[:32]
        return self.directory / name


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    with contextlib.suppress(OSError):
        for path in folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):
                yield path, path.stat().st_size


def _by_age(files: Iterator[tuple[Path, int]] | list[tuple[Path, int]], now: float) -> list[tuple[Path, int]]:
    """Return the files, newest first; those of before the last hour are removed."""
    dated: list[tuple[float, Path, int]] = []
    for path, size in files:
        with contextlib.suppress(OSError):
            changed = path.stat().st_mtime
            if now - changed < KEPT_SECONDS:
                dated.append((changed, path, size))
            else:
                path.unlink()
    return [(path, size) for _, path, size in sorted(dated, reverse=True)]


def _drop(newest_first: list[tuple[Path, int]], most_bytes: int, most_files: int | None) -> None:
    left = most_bytes
    for place, (path, size) in enumerate(newest_first):
        left -= size
        if left < 0 or (most_files is not None and place >= most_files):
            path.unlink(missing_ok=True)
