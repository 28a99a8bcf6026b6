"""Disclosures, and the journal: a file that holds each before its answer is sent; the pump moves it into the chain.

A disclosure says what was sent to whom, or what was refused: ids and counts, never values of records. Lines are written through a memory map into disk space that was reserved when the file was made. So writing
one takes no system call and cannot fail for lack of space, and the line survives the end of the process.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import secrets
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from headgate.errors import StorageFull, StorageReadOnly
from headgate.home import Home, opening_reserve
from headgate.model.grant import TokenKind
from headgate.model.ids import (
    ClientId,
    ConnectionId,
    FieldName,
    GrantId,
    PackageId,
    RecordId,
    RequestId,
    StreamName,
)
from headgate.model.instants import DAY_US
from headgate.model.ledger import ChainHead, SealedBlock, ShownRecords
from headgate.model.record import Record, Tombstone
from headgate.store.ledger.ledger import Ledger
from headgate.system import NO_SPACE, lock, open_private

_DIRECTORY = "journals"
_SUFFIX = ".journal"
#: Disk space reserved for a file; a longer line gets a file of the line's size.
_FILE_BYTES = 1024 * 1024
_encode = msgspec.json.Encoder().encode
ANSWERED = "answered"
#: The call of a remote tool is about to be sent. Its end is a second entry with the same request id.
SENT = "sent"
_BYTES_A_TOKEN = 4


class Disclosed(msgspec.Struct, frozen=True):
    """Records of one stream of one connection, and the fields of them that were shown."""

    connection_id: ConnectionId
    stream: StreamName
    fields: tuple[FieldName, ...]
    #: Empty where only numbers were given.
    record_ids: tuple[RecordId, ...] = ()


#: A record wherever it is shown: by connection, stream and id.
ShownRecord = tuple[ConnectionId, StreamName, RecordId]


def shown_records(parts: Iterable[Disclosed]) -> set[ShownRecord]:
    """Name the records that parts show, each once: a related record may be in an answer several times."""
    return {(part.connection_id, part.stream, record) for part in parts for record in part.record_ids}


def count_records(parts: Sequence[Disclosed]) -> int:
    return len({*parts[0].record_ids}) if len(parts) == 1 else len(shown_records(parts))


class Called(msgspec.Struct, frozen=True):
    """An operation of a remote server that a client called."""

    operation: str
    #: SHA-256 of the arguments as JSON with sorted keys; the log never has their values.
    arguments_digest: str


class AskedFor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a refused read asked for, of the names that the home has: what else a caller writes is not logged."""

    streams: tuple[StreamName, ...] = ()
    connection_id: ConnectionId | None = None
    fields: tuple[FieldName, ...] = ()


class Disclosure(msgspec.Struct, frozen=True):
    """One read: who asked, through which tool or route, and what the answer held."""

    #: Microseconds since 1970.
    at: int
    request_id: RequestId
    token_kind: str
    client_id: ClientId | None
    grant_ids: tuple[GrantId, ...]
    package_id: PackageId | None
    #: The tool or route, such as ``search`` or ``GET /v1/streams``.
    via: str
    #: ``answered``, or the code of the refusal.
    outcome: str
    size_bytes: int = 0
    parts: tuple[Disclosed, ...] = ()
    #: The words of a search, where the owner has them logged; otherwise the entry has no such member.
    words: str | msgspec.UnsetType = msgspec.UNSET
    #: How many refusals it stands for, where there were too many to log each; otherwise the entry has no such member.
    refusals: int | msgspec.UnsetType = msgspec.UNSET
    #: What a refused read asked for; where that is not known the entry has no such member.
    asked: AskedFor | msgspec.UnsetType = msgspec.UNSET
    #: SHA-256 of the file that pruned entries were moved to; only the line that stands for them has it.
    file_digest: str | msgspec.UnsetType = msgspec.UNSET
    #: What was called through the gateway; a read has no such member.
    called: Called | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_refused(self) -> bool:
        """Whether nothing was answered but an error."""
        return self.outcome not in {ANSWERED, SENT}

    @property
    def tokens(self) -> int:
        """About how many tokens of a language model the answer takes."""
        return -(-self.size_bytes // _BYTES_A_TOKEN)

    @property
    def record_count(self) -> int:
        """How many records were shown; one that is in the answer several times was read once."""
        return count_records(self.parts)

    @property
    def stream_counts(self) -> Mapping[StreamName, int]:
        """How many records of each stream were shown."""
        none = {part.stream: 0 for part in self.parts}
        return {**none, **Counter(stream for _, stream, _ in shown_records(self.parts))}

    @property
    def read_count(self) -> int:
        """How many reads it stands for."""
        return 1 if self.refusals is msgspec.UNSET else self.refusals


def owner_event(
    at: int, request_id: RequestId, via: str, *, outcome: str = ANSWERED, parts: tuple[Disclosed, ...] = ()
) -> Disclosure:
    """Describe what the owner saw or did."""
    return Disclosure(at, request_id, TokenKind.OWNER.value, None, (), None, via, outcome, parts=parts)


class Discloser(Protocol):
    """Takes disclosures. One that was taken survives the end of the process."""

    def write(self, disclosure: Disclosure) -> None:
        """Write a disclosure; it returns when the disclosure is safe."""
        ...


def disclosed(entries: Sequence[Record | Tombstone], fields: tuple[FieldName, ...]) -> tuple[Disclosed, ...]:
    """Group records by connection and stream; the children of a record are not included.

    Of a deleted record no field is shown, only that it was there.
    """
    if len(entries) == 1:
        only = entries[0]
        return (Disclosed(only.connection_id, only.stream, _fields_of(only, fields), (only.id,)),)
    groups: dict[tuple[ConnectionId, StreamName, tuple[FieldName, ...]], list[RecordId]] = {}
    for entry in entries:
        key = entry.connection_id, entry.stream, _fields_of(entry, fields)
        groups.setdefault(key, []).append(entry.id)
    return tuple(Disclosed(*key, tuple(ids)) for key, ids in groups.items())


def _fields_of(entry: Record | Tombstone, fields: tuple[FieldName, ...]) -> tuple[FieldName, ...]:
    return () if isinstance(entry, Tombstone) else fields


def journals(home: Home) -> Path:
    """Make the directory of journals, if it is not there.

    Raises:
        StorageReadOnly: it cannot be made.
    """
    directory = home.path / _DIRECTORY
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    return directory


@dataclass(slots=True)
class _Batch:
    """Lines that enter the chain together, and how many records they show."""

    count: int = 0
    #: By the grants under which they were shown, and the day.
    shown: defaultdict[tuple[tuple[GrantId, ...], int], int] = field(default_factory=lambda: defaultdict(int))

    def by_grant(self) -> ShownRecords:
        """Count the records that are shown under each grant on each day."""
        counts: defaultdict[tuple[GrantId, int], int] = defaultdict(int)
        for (grant_ids, day), count in self.shown.items():
            for grant_id in grant_ids:
                counts[grant_id, day] += count
        return counts


@dataclass(slots=True)
class _JournalFile:
    """A journal file that this process writes: how long it is, and how much of it is in the chain."""

    path: Path
    handle: int
    #: The file's pages. Zeros follow the last line.
    pages: mmap.mmap
    capacity: int
    size: int = 0
    taken: int = 0
    #: The batch that is being written to the chain, and the offset where it ends.
    moving: tuple[_Batch, int] | None = None
    #: The lines written since.
    filling: _Batch = field(default_factory=_Batch)

    @property
    def batches(self) -> tuple[_Batch, ...]:
        """The batches that are not in the chain yet."""
        return (self.filling,) if self.moving is None else (self.moving[0], self.filling)

    @property
    def waiting(self) -> int:
        """How many lines are not in the chain yet."""
        return sum(batch.count for batch in self.batches)


#: Seals lines as the block after a head, with how many records they show, if that is known.
SealLines = Callable[[ChainHead | None, bytes, ShownRecords | None], SealedBlock]


class Journal:
    """Writes the disclosures of this process; a Discloser."""

    __slots__ = ("_directory", "_files")

    def __init__(self, home: Home) -> None:
        self._directory = home.path / _DIRECTORY
        #: The last one is being written; those before it are full, and are removed once they are in the chain.
        self._files: deque[_JournalFile] = deque()
        with contextlib.suppress(StorageReadOnly, StorageFull):
            # If it cannot be made now, each disclosure tries again, and is refused until one succeeds.
            self._files.append(_open_new(journals(home), _FILE_BYTES))

    def write(self, disclosure: Disclosure) -> None:
        """Write a disclosure; it returns when the disclosure is safe.

        Raises:
            StorageFull: there is no disk space; the answer must not be sent.
            StorageReadOnly: it cannot be written; the same.
        """
        line = _encode(disclosure) + b"\n"
        file = self._files[-1] if self._files else self._next(len(line))
        start, end = file.size, file.size + len(line)
        if end > file.capacity:
            file = self._next(len(line))
            start, end = 0, len(line)
        file.pages[start:end] = line
        file.size = end
        batch = file.filling
        batch.count += 1
        if disclosure.parts:
            batch.shown[disclosure.grant_ids, disclosure.at // DAY_US] += disclosure.record_count

    def _next(self, length: int) -> _JournalFile:
        size = max(_FILE_BYTES, length)
        try:
            opened = _open_new(self._directory, size)
        except StorageFull:
            # Reading needs little: it has what is reserved for it, and nothing else gets that.
            if not opening_reserve(self._directory.parent).release():
                raise
            opened = _open_new(self._directory, size)
        self._files.append(opened)
        return opened

    @property
    def waiting(self) -> int:
        """How many lines are not in the chain yet."""
        return sum(file.waiting for file in self._files)

    def unwritten(self, grant_id: GrantId) -> int:
        """Count the records shown under a grant that are not in the ledger yet."""
        return sum(
            count
            for file in self._files
            for batch in file.batches
            for (shown_to, _), count in batch.shown.items()
            if grant_id in shown_to
        )

    async def flush(self, ledger: Ledger, seal: SealLines) -> tuple[ChainHead, int] | None:
        """Move lines into the chain; returns its head and how many moved, or None if none waited."""
        file = next((file for file in self._files if file.waiting), None)
        if file is None:
            return None
        if file.moving is None:
            # Lines that are written meanwhile go with the next batch.
            file.moving, file.filling = (file.filling, file.size), _Batch()
        batch, end = file.moving
        lines = file.pages[file.taken : end]

        def seal_new(head: ChainHead | None, new: bytes) -> SealedBlock:
            # The batch counted all its lines; if some were taken before, the rest is counted anew.
            return seal(head, new, batch.by_grant() if len(new) == len(lines) else None)

        head = await ledger.append(file.path.name, file.taken, lines, seal_new)
        file.taken, file.moving = end, None
        while len(self._files) > 1 and not self._files[0].waiting:
            await self._end(self._files.popleft(), ledger)
        return head, batch.count

    async def close(self, ledger: Ledger) -> None:
        """Remove the files; everything in them must have been flushed."""
        while self._files:
            await self._end(self._files.popleft(), ledger)

    async def _end(self, file: _JournalFile, ledger: Ledger) -> None:
        await remove_journal(file.path, ledger)
        _close_file(file)

    def leave(self) -> None:
        """Close the files without removing them; another process takes them over."""
        while self._files:
            _close_file(self._files.popleft())


def abandoned_journals(home: Home) -> Iterator[tuple[Path, int]]:
    """Find the journals that no process writes; each comes locked, with the handle that holds the lock.

    The caller closes the handle.

    Raises:
        StorageReadOnly: one cannot be opened.
    """
    for path in sorted(journals(home).glob(f"*{_SUFFIX}")):
        handle = _lock(path)
        if handle is not None:
            yield path, handle


def _lock(path: Path) -> int | None:
    """Lock a journal; None if a process is writing it."""
    try:
        handle = open_private(path, os.O_RDWR)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    try:
        lock(handle)
    except OSError:
        os.close(handle)
        return None
    return handle


def _open_new(directory: Path, size: int) -> _JournalFile:
    """Make a journal, with its disk space reserved.

    Raises:
        StorageFull: there is no disk space.
        StorageReadOnly: nothing can be written there.
    """
    path = directory / f"{os.getpid()}-{secrets.token_hex(6)}{_SUFFIX}"
    try:
        handle = open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    try:
        lock(handle)
        _reserve(handle, size)
        return _JournalFile(path, handle, mmap.mmap(handle, size), size)
    except OSError as error:
        os.close(handle)
        path.unlink(missing_ok=True)
        if error.errno in NO_SPACE | {errno.EFBIG}:
            raise StorageFull("The disclosure log cannot grow.") from error
        raise StorageReadOnly("The disclosure log cannot be written.") from error


def _reserve(handle: int, size: int) -> None:
    """Write zeros to the end: a page of a sparse file can be filled in memory and fail to reach the disk."""
    taken = 0
    while taken < size:
        taken += os.write(handle, bytes(size - taken))


def _close_file(file: _JournalFile) -> None:
    file.pages.close()
    os.close(file.handle)


async def remove_journal(path: Path, ledger: Ledger) -> None:
    """Remove a journal that is in the chain."""
    path.unlink(missing_ok=True)  # noqa: ASYNC240 - one entry of a directory is quicker than a thread for it
    await ledger.forget_journal(path.name)


def whole_lines(content: bytes) -> bytes:
    """Cut content after its last complete line; the answer of a torn one was never sent."""
    written, _, _ = content.partition(b"\0")
    return written[: written.rfind(b"\n") + 1]
