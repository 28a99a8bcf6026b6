"""The journal: disclosures that are safe in a file before their answers are sent, and in the chain soon after.

A line in the file outlives the process: it is put into the file's own pages, whose room on the disk was taken
before, so that neither a system call nor a full disk stands between a read and its answer. A task moves lines
into the chain in blocks; what a process that died left behind, the next one takes over. Each event enters the
chain once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import mmap
import os
import secrets
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from headgate.errors import StorageFull, StorageReadOnly, StorageUnusable
from headgate.home import Home, read_or_create_private, read_private, write_private
from headgate.model.disclosure import DAY, Disclosure
from headgate.model.ids import GrantId
from headgate.model.ledger import ChainHead
from headgate.store.ledger import Ledger, Spent

HEAD_FILE = "audit-head.json"
_DIRECTORY = "journals"
_SUFFIX = ".journal"
_KEY_FILE = "audit"
_KEY_BYTES = 32
#: Room that is taken on the disk at once; a line that needs more gets a file of its own size.
_FILE_BYTES = 1024 * 1024
PAUSE_SECONDS = 0.2
#: Every commit makes readers forget the pages they hold, so a busy server makes fewer and larger ones.
_BUSY_PAUSE_SECONDS = 1.0
_BUSY_LINES = 200
_encode = msgspec.json.Encoder().encode


def load_audit_key(home: Home) -> bytes:
    """Read the key that seals the chain, or make one for a new home."""
    return read_or_create_private(home.keys / _KEY_FILE, lambda: secrets.token_bytes(_KEY_BYTES))


def journals(home: Home) -> Path:
    """Say where journals lie, and make the place.

    Raises:
        StorageReadOnly: it cannot be made.
    """
    place = home.path / _DIRECTORY
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    return place


@dataclass(slots=True)
class _Batch:
    """Lines that enter the chain together, and how many records they show."""

    count: int = 0
    #: By the grants of whoever they were shown to, and the day.
    shown: defaultdict[tuple[tuple[GrantId, ...], int], int] = field(default_factory=lambda: defaultdict(int))

    def spent(self) -> Spent:
        """Say how many records are shown under each grant on each day."""
        found: defaultdict[tuple[GrantId, int], int] = defaultdict(int)
        for (grant_ids, day), count in self.shown.items():
            for grant_id in grant_ids:
                found[grant_id, day] += count
        return found


@dataclass(slots=True)
class _JournalFile:
    """A journal file that this process writes: how long it is, and how much of it is in the chain."""

    path: Path
    handle: int
    #: The file's pages. Zeros follow the last line.
    pages: mmap.mmap
    room: int
    size: int = 0
    taken: int = 0
    #: What is on its way into the chain, and where it ends; there till it has arrived.
    moving: tuple[_Batch, int] | None = None
    #: What has come since.
    filling: _Batch = field(default_factory=_Batch)

    @property
    def batches(self) -> tuple[_Batch, ...]:
        """What is not in the chain yet."""
        return (self.filling,) if self.moving is None else (self.moving[0], self.filling)

    @property
    def waiting(self) -> int:
        """How many lines are not in the chain yet."""
        return sum(batch.count for batch in self.batches)


class Journal:
    """Writes disclosures to files of its own; implements headgate.reading.disclose.Discloser."""

    __slots__ = ("_directory", "_files")

    def __init__(self, home: Home) -> None:
        self._directory = home.path / _DIRECTORY
        #: The last one is written; those before it are full, and go when all of them is in the chain.
        self._files: deque[_JournalFile] = deque()
        with contextlib.suppress(StorageReadOnly, StorageFull):
            # Where it cannot be made now, it is tried again for each disclosure, which is refused till then.
            self._files.append(_open_new(journals(home), _FILE_BYTES))

    def write(self, disclosure: Disclosure) -> None:
        """Take a disclosure, quickly and for good.

        Raises:
            StorageFull: there is no room; then nothing may be shown.
            StorageReadOnly: it cannot be written; the same.
        """
        line = _encode(disclosure) + b"\n"
        file = self._files[-1] if self._files else self._next(len(line))
        start, end = file.size, file.size + len(line)
        if end > file.room:
            file = self._next(len(line))
            start, end = 0, len(line)
        file.pages[start:end] = line
        file.size = end
        batch = file.filling
        batch.count += 1
        if disclosure.parts:
            batch.shown[disclosure.grant_ids, disclosure.at // DAY] += disclosure.record_count

    def _next(self, length: int) -> _JournalFile:
        self._files.append(_open_new(self._directory, max(_FILE_BYTES, length)))
        return self._files[-1]

    @property
    def waiting(self) -> int:
        """How many lines are not in the chain yet."""
        return sum(file.waiting for file in self._files)

    def unwritten(self, grant_id: GrantId) -> int:
        """Say how many records were shown under a grant that the ledger does not know of yet."""
        return sum(
            count
            for file in self._files
            for batch in file.batches
            for (shown_to, _), count in batch.shown.items()
            if grant_id in shown_to
        )

    async def flush(self, ledger: Ledger, key: bytes) -> tuple[ChainHead, int] | None:
        """Move lines into the chain; gives its new end and how many moved, or None if none waited."""
        file = next((file for file in self._files if file.waiting), None)
        if file is None:
            return None
        if file.moving is None:
            # What comes in while this is written goes with the next.
            file.moving, file.filling = (file.filling, file.size), _Batch()
        batch, end = file.moving
        lines = file.pages[file.taken : end]
        head = await ledger.append(file.path.name, file.taken, lines, key=key, spent=batch.spent())
        file.taken, file.moving = end, None
        while len(self._files) > 1 and not self._files[0].waiting:
            await self._end(self._files.popleft(), ledger)
        return head, batch.count

    async def close(self, ledger: Ledger) -> None:
        """Remove the files; everything in them must have been flushed."""
        while self._files:
            await self._end(self._files.popleft(), ledger)

    async def _end(self, file: _JournalFile, ledger: Ledger) -> None:
        await _remove(file.path, ledger)
        _let_go(file)

    def leave(self) -> None:
        """Let go of the files and leave them, for a process that can take them over."""
        while self._files:
            _let_go(self._files.popleft())


class Pump:
    """Keeps moving a journal into the chain, and its end into a file of its own."""

    def __init__(
        self, home: Home, journal: Journal, ledger: Ledger, *, on_trouble: Callable[[Exception], None]
    ) -> None:
        self._home = home
        self._journal = journal
        self._ledger = ledger
        self._key = load_audit_key(home)
        self._on_trouble = on_trouble
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Take over what others left behind, then keep up with this process."""
        try:
            await take_over(self._home, self._ledger, self._key)
        except StorageReadOnly as trouble:
            self._on_trouble(trouble)
        self._task = asyncio.create_task(self._keep_up(), name="headgate-journal")

    async def stop(self) -> None:
        """Move everything that waits, and remove the journal; one that cannot be moved is left for the next."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        try:
            await self.flush()
        except StorageUnusable as trouble:
            self._on_trouble(trouble)
            self._journal.leave()
        else:
            await self._journal.close(self._ledger)

    async def flush(self) -> None:
        """Move everything that waits now."""
        async with self._turn:
            # What comes in meanwhile is for the next time: else a busy server would commit without end.
            head, left = None, self._journal.waiting
            while left > 0 and (moved := await self._journal.flush(self._ledger, self._key)) is not None:
                head, left = moved[0], left - moved[1]
            if head is not None:
                # It waits for the disk, and must not let requests wait for it.
                await asyncio.to_thread(write_head, self._home, head)

    async def _keep_up(self) -> None:
        while True:
            before = self._journal.waiting
            await asyncio.sleep(PAUSE_SECONDS)
            if self._journal.waiting - before >= _BUSY_LINES:
                await asyncio.sleep(_BUSY_PAUSE_SECONDS - PAUSE_SECONDS)
            try:
                await asyncio.shield(self.flush())
            except Exception as trouble:  # noqa: BLE001 - the lines are safe in the file; the next round tries again
                self._on_trouble(trouble)


async def take_over(home: Home, ledger: Ledger, key: bytes) -> int:
    """Move into the chain what processes that died left in their journals; gives how many journals.

    Raises:
        StorageReadOnly: it cannot be moved; nothing is lost.
    """
    count = 0
    for path in sorted(journals(home).glob(f"*{_SUFFIX}")):
        handle = _lock(path)
        if handle is None:
            continue
        try:
            start = ledger.taken(path.name)
            lines = _whole_lines(path.read_bytes()[start:])
            if lines:
                write_head(home, await ledger.append(path.name, start, lines, key=key))
        except BaseException:
            os.close(handle)
            raise
        try:
            await _remove(path, ledger)
        finally:
            os.close(handle)
        count += 1
    return count


def _lock(path: Path) -> int | None:
    """Open a journal that no process is writing; None: one is."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def write_head(home: Home, head: ChainHead) -> None:
    """Note the end of the chain outside the store, so that a shortened chain is noticed."""
    known = read_head(home)
    if known is None or head.seq > known.seq:
        document = {"seq": head.seq, "count": head.seq, "seal": head.seal.hex()}
        write_private(home.path / HEAD_FILE, json.dumps(document).encode())


def read_head(home: Home) -> ChainHead | None:
    """Read the end of the chain as it was last noted."""
    content = read_private(home.path / HEAD_FILE)
    if content is None:
        return None
    document = json.loads(content)
    return ChainHead(document["seq"], bytes.fromhex(document["seal"]))


def _open_new(directory: Path, size: int) -> _JournalFile:
    """Open a journal with all the room it will ever need.

    Raises:
        StorageFull: there is no such room.
        StorageReadOnly: nothing can be written there.
    """
    path = directory / f"{os.getpid()}-{secrets.token_hex(6)}{_SUFFIX}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageReadOnly("The disclosure log cannot be written.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _take_room(handle, size)
        return _JournalFile(path, handle, mmap.mmap(handle, size), size)
    except OSError as error:
        os.close(handle)
        path.unlink(missing_ok=True)
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise StorageFull("The disclosure log cannot grow.") from error
        raise StorageReadOnly("The disclosure log cannot be written.") from error


def _take_room(handle: int, size: int) -> None:
    """Write zeros to the end: a page without room on the disk could be filled, but not kept."""
    taken = 0
    while taken < size:
        taken += os.write(handle, bytes(size - taken))


def _let_go(file: _JournalFile) -> None:
    file.pages.close()
    os.close(file.handle)


async def _remove(path: Path, ledger: Ledger) -> None:
    path.unlink(missing_ok=True)  # noqa: ASYNC240 - one entry of a directory is quicker than a thread for it
    await ledger.forget_journal(path.name)


def _whole_lines(content: bytes) -> bytes:
    """Give the lines that were written to their end; a torn one was never answered."""
    written, _, _ = content.partition(b"\0")
    return written[: written.rfind(b"\n") + 1]
