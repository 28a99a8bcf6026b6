"""Prune the log: move its oldest blocks to a file, and put one sealed line in their place.

The chain goes on across that line, which has the seal of the last block that was moved and the digest of the file. So
the rest of the log is verified without the file, and the file by the log.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from headgate.audit.chain import GENESIS, all_blocks, has_its_seal, read_head, seal_pruned
from headgate.audit.journal import ANSWERED, Disclosure
from headgate.errors import Conflict, IntegrityBroken, LogUnverifiable, NotFound
from headgate.home import Home
from headgate.model.grant import TokenKind
from headgate.model.ids import RequestId
from headgate.model.ledger import AuditBlock, ChainHead
from headgate.store.ledger.ledger import Ledger
from headgate.system import open_private, sync_directory

#: Of the line that stands for what was moved.
PRUNE_ROUTE = "audit prune"
_PIECE_BYTES = 1024 * 1024

_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Disclosure).decode


class _MovedBlock(msgspec.Struct):
    """A block of the chain as a line of the file."""

    last: int
    seal: str
    events: list[str]

    def block(self) -> AuditBlock:
        return AuditBlock(self.last, "\n".join(self.events).encode(), bytes.fromhex(self.seal))


_read_moved = msgspec.json.Decoder(_MovedBlock).decode


@dataclass(frozen=True, slots=True)
class PruneReport:
    """Which entries were moved, and the digest of the file that has them; no entries: nothing is that old."""

    first: int = 0
    last: int = 0
    file_digest: str = ""

    @property
    def entries(self) -> int:
        """How many entries were moved."""
        return self.last - self.first + 1 if self.last else 0


class _BlockFile:
    """The file while blocks are written to it."""

    def __init__(self, file: BinaryIO, key: bytes, start: ChainHead) -> None:
        self._file = file
        self._key = key
        self._digest = hashlib.sha256()
        self.head = start

    def write(self, blocks: Sequence[AuditBlock]) -> None:
        """Check and write blocks."""
        for block in blocks:
            if block.first != self.head.seq + 1 or not has_its_seal(self._key, self.head, block):
                raise LogUnverifiable(f"Entries {block.first} to {block.last} are not as they were sealed.")
            moved = _MovedBlock(block.last, block.seal.hex(), block.events.decode().split("\n"))
            line = _encode(moved) + b"\n"
            self._digest.update(line)
            self._file.write(line)
            self.head = block.head

    def finish(self) -> str:
        """Put the file on the disk, and return its digest."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()


async def prune(home: Home, ledger: Ledger, key: bytes, *, before: int, path: Path, now: int) -> PruneReport:
    """Move the blocks whose events are all older than a time to a new file."""
    noted = read_head(home)
    start = await _pruned_head(ledger)
    with await asyncio.to_thread(_new_file, path) as file:
        moved = _BlockFile(file, key, start)
        async for blocks in _old_blocks(ledger, start.seq, before, noted):
            await asyncio.to_thread(moved.write, blocks)
        digest = await asyncio.to_thread(moved.finish)
    if moved.head == start:
        await asyncio.to_thread(path.unlink)
        return PruneReport()
    await asyncio.to_thread(sync_directory, path.parent)
    line = _encode(_line(start.seq + 1, moved.head.seq, digest, now))
    # From here on the file stays, whatever happens: a lost answer may hide that the log was pruned.
    await ledger.prune(seal_pruned(key, start, moved.head, line))
    return PruneReport(start.seq + 1, moved.head.seq, digest)


async def verify_file(ledger: Ledger, key: bytes, path: Path) -> PruneReport:
    """Check a file of moved blocks against the line of the log that stands for them."""
    digest = await asyncio.to_thread(_digest_of, path)
    start = GENESIS
    async for blocks in all_blocks(ledger, 0):
        for block in blocks:
            if block.pruned is not None and _read(block.events).file_digest == digest:
                end = await asyncio.to_thread(_end_of_file, path, key, start)
                if end != block.head:
                    raise IntegrityBroken(f"The entries in {path} are not as they were sealed.")
                return PruneReport(block.first, block.last, digest)
            start = block.head
    raise NotFound(
        f"The log has no place for {path}: the file was changed, or belongs to another log.",
        hint="Compare it with a backup.",
    )


async def _pruned_head(ledger: Ledger) -> ChainHead:
    """Return the end of what was pruned before."""
    head = GENESIS
    async for blocks in all_blocks(ledger, 0):
        pruned = [block for block in blocks if block.pruned is not None]
        head = pruned[-1].head if pruned else head
        if len(pruned) < len(blocks):
            break
    return head


async def _old_blocks(
    ledger: Ledger, after: int, before: int, noted: ChainHead | None
) -> AsyncIterator[list[AuditBlock]]:
    """Read the oldest blocks, as far as all their events are of before a time and their end was noted."""
    async for blocks in all_blocks(ledger, after):
        old: list[AuditBlock] = []
        for block in blocks:
            # What was noted outside the store must stay a place in the chain: within a pruned range there is no seal.
            if noted is None or block.last > noted.seq or not _is_old(block, before):
                break
            old.append(block)
        if old:
            yield old
        if len(old) < len(blocks):
            return


def _is_old(block: AuditBlock, before: int) -> bool:
    return all(_read(line).at < before for line in block.events.split(b"\n"))


def _line(first: int, last: int, file_digest: str, now: int) -> Disclosure:
    return Disclosure(
        at=now,
        request_id=RequestId(f"prune_{first}_{last}"),
        token_kind=TokenKind.OWNER.value,
        client_id=None,
        grant_ids=(),
        package_id=None,
        via=PRUNE_ROUTE,
        outcome=ANSWERED,
        file_digest=file_digest,
    )


def _new_file(path: Path) -> BinaryIO:
    try:
        return os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
    except FileExistsError as error:
        raise Conflict(
            f"There is a file at {path} already.", hint="Name a file that is not there."
        ) from error


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _end_of_file(path: Path, key: bytes, start: ChainHead) -> ChainHead | None:
    """Return the head after the last block of a file; None if a seal does not fit."""
    head = start
    with path.open("rb") as file:
        for line in file:
            block = _read_moved(line).block()
            if block.first != head.seq + 1 or not has_its_seal(key, head, block):
                return None
            head = block.head
    return head
