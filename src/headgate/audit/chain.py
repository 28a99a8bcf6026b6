"""The chain of the disclosure log: how a block is sealed, and how the seals are checked.

A seal is an HMAC over the seal before it and the events of the block, so that a block cannot be changed,
left out or moved without breaking every seal after it. One line stands for blocks that were pruned: it is sealed
after the seal before them, and carries the seal of the last of them, after which the chain goes on. A chain that was cut
at its end still fits together: so its last place and seal are also written to a file outside the store, and checked
against it. That file is made with the key, before there is an entry; and the store counts the entries beside the chain.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace

import msgspec

from headgate.audit.journal import Disclosed, count_records
from headgate.errors import LogUnverifiable
from headgate.home import AUDIT_HEAD, AUDIT_START, Home, read_or_create_private, read_private, write_private
from headgate.model.ids import GrantId
from headgate.model.instants import DAY_US
from headgate.model.ledger import AuditBlock, ChainHead, PrunedRange, SealedBlock, ShownRecords
from headgate.store.engines.opening import may_have_log
from headgate.store.ledger.ledger import Ledger

_KEY_FILE = "audit"
_KEY_BYTES = 32
#: What the first block is sealed after.
GENESIS = ChainHead(0, b"\0" * 32)
_BLOCKS_AT_ONCE = 16
_PRUNED = b"headgate pruned\0"
_BEGINNING = b"headgate chain without entries\0"
#: How often the chain may be pruned while it is checked.
_MOST_TRIES = 10


class _CountedEvent(msgspec.Struct):
    """The members of a disclosure that counting needs; decoding skips the others."""

    at: int
    grant_ids: tuple[GrantId, ...]
    parts: tuple[Disclosed, ...] = ()


class _HeadDocument(msgspec.Struct):
    seq: int
    seal: str


_read_counted = msgspec.json.Decoder(_CountedEvent).decode


def load_audit_key(home: Home) -> bytes:
    """Read the key that seals the chain, or make one; call it before a new store is made.

    If there is a log already, its key was lost, and that is noted: its entries can then not be checked. The home says
    where its records are, because the log is there too.
    """

    def create() -> bytes:
        key = secrets.token_bytes(_KEY_BYTES)
        if may_have_log(home):
            write_private(home.path / AUDIT_START, b'{"key": "made after the store"}')
        elif not (home.path / AUDIT_HEAD).exists() or _begins(read_head(home)):
            _note_head(home, ChainHead(0, _beginning(key)))
        return key

    return read_or_create_private(home.keys / _KEY_FILE, create, least_bytes=_KEY_BYTES)


def _begins(head: ChainHead | None) -> bool:
    return head is not None and head.seq == 0


def _beginning(key: bytes) -> bytes:
    """Return the seal of a chain without entries, which only the holder of the key can note."""
    return hmac.digest(key, _BEGINNING, "sha256")


# Sealing


def seal_block(
    key: bytes, head: ChainHead | None, lines: bytes, shown: ShownRecords | None = None
) -> SealedBlock:
    """Seal lines as the block after a head; None is the head of an empty chain.

    ``shown`` is how many records all the lines show, if that was counted when they were written.
    """
    before = head or GENESIS
    events = lines.removesuffix(b"\n")
    block = AuditBlock(before.seq + lines.count(b"\n"), events, _seal(key, before, events))
    return SealedBlock(block, _count_shown(events) if shown is None else shown)


def seal_pruned(key: bytes, start: ChainHead, end: ChainHead, line: bytes) -> AuditBlock:
    """Seal the line that stands for the blocks after one head and up to another."""
    unsealed = AuditBlock(end.seq, line, b"", PrunedRange(start.seq + 1, end.seal))
    return replace(unsealed, seal=_seal_of(key, start, unsealed))


def _seal(key: bytes, before: ChainHead, events: bytes) -> bytes:
    return hmac.digest(key, before.seal + events, "sha256")


def _seal_of(key: bytes, before: ChainHead, block: AuditBlock) -> bytes:
    if block.pruned is None:
        return _seal(key, before, block.events)
    # The beginning keeps the line from passing for a block, which begins with a seal.
    places = b"%d %d\0" % (block.pruned.first, block.last)
    return hmac.digest(key, _PRUNED + places + before.seal + block.pruned.end_seal + block.events, "sha256")


def has_its_seal(key: bytes, before: ChainHead, block: AuditBlock) -> bool:
    """Return whether a block that follows a head is as it was sealed."""
    return hmac.compare_digest(_seal_of(key, before, block), block.seal)


def _count_shown(events: bytes) -> ShownRecords:
    counts: Counter[tuple[GrantId, int]] = Counter()
    for line in events.split(b"\n"):
        event = _read_counted(line)
        records = count_records(event.parts)
        for grant_id in event.grant_ids:
            counts[grant_id, event.at // DAY_US] += records
    return counts


# Checking


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking the chain."""

    count: int
    #: The first entry that does not fit, if one does not.
    broken_at: int | None = None
    problem: str = ""
    #: What this home lacks the key or the noted head to check.
    unchecked: str = ""
    #: Whether a line stands for entries that are there as well.
    is_overlapped: bool = False

    @property
    def is_whole(self) -> bool:
        """Everything was checked, no change was found, and nothing is missing."""
        return not self.problem and not self.unchecked


@dataclass(frozen=True, slots=True)
class NotedChain:
    """What the files beside the store say about the chain."""

    key: bytes
    head: ChainHead | None
    #: Whether the key was made when there was a store already: the first entries may have another key's seals.
    is_later_key: bool = False


def read_notes(home: Home) -> NotedChain:
    """Read what the files beside the store say about the chain."""
    return NotedChain(load_audit_key(home), read_head(home), (home.path / AUDIT_START).exists())


async def verify(ledger: Ledger, noted: NotedChain) -> Verdict:
    """Check every seal, and the chain's head against the one noted outside the store."""
    verdict = await _verify(ledger, noted)
    tries = 1
    # What was checked may have been pruned by now; an overlap that stays is a change.
    while verdict.is_overlapped and tries < _MOST_TRIES:
        verdict, tries = await _verify(ledger, noted), tries + 1
    return verdict


async def _verify(ledger: Ledger, noted: NotedChain) -> Verdict:
    start = await _start(ledger, noted.key) if noted.is_later_key else GENESIS
    verdict = await _verify_from(start, ledger, noted)
    if verdict.problem:
        return verdict
    if start.seq:
        lack = f"Entries 1 to {start.seq} cannot be checked here: the key that sealed them is missing."
        return replace(verdict, unchecked=lack)
    if noted.head is None and (verdict.count or not noted.is_later_key):
        lack = f"Whether entries after {verdict.count} are missing cannot be checked here: there is no {AUDIT_HEAD}."
        return replace(verdict, unchecked=lack)
    return verdict


async def _verify_from(start: ChainHead, ledger: Ledger, noted: NotedChain) -> Verdict:
    head = start
    async for blocks in all_blocks(ledger, start.seq):
        # Blocks are large, and other requests go on meanwhile.
        verdict = await asyncio.to_thread(_check_blocks, blocks, head, noted)
        if isinstance(verdict, Verdict):
            return verdict
        head = verdict
    return _ended(head, noted, await ledger.counted_entries())


def _check_blocks(blocks: Iterable[AuditBlock], head: ChainHead, noted: NotedChain) -> ChainHead | Verdict:
    """Check blocks that follow a head; returns the head after them, or what is wrong."""
    for block in blocks:
        if block.pruned is not None and block.first <= head.seq:
            return Verdict(head.seq, block.first, "Pruned entries are there as well.", is_overlapped=True)
        if block.first != head.seq + 1:
            return Verdict(head.seq, head.seq + 1, "An entry is missing.")
        if not has_its_seal(noted.key, head, block):
            return Verdict(head.seq, block.first, _changed(block))
        head = block.head
        if _misses(block, noted.head):
            return Verdict(head.seq, head.seq, "The chain is not the one whose end was noted.")
    return head


def _ended(head: ChainHead, noted: NotedChain, counted: int) -> Verdict:
    """Compare the end of a chain that fits together with what was noted and counted beside it."""
    end = noted.head or GENESIS
    problem = ""
    if (last := max(counted, end.seq)) > head.seq:
        problem = f"The chain ends before entry {last}, which was noted."
    elif _begins(noted.head) and not hmac.compare_digest(end.seal, _beginning(noted.key)):
        problem = "The noted end of the chain is not of this home."
    return Verdict(head.seq, head.seq + 1, problem) if problem else Verdict(head.seq)


def _misses(block: AuditBlock, noted: ChainHead | None) -> bool:
    """Return whether a block reaches over a noted end of the chain without having it as an end."""
    if noted is None or not block.first <= noted.seq <= block.last or noted == block.head:
        return False
    # Another machine that shares the chain has pruned beyond what this one noted: places within that have no seal.
    # That the line stands for them is sealed with the same key.
    return block.pruned is None or noted.seq == block.last


async def _start(ledger: Ledger, key: bytes) -> ChainHead:
    """Find the end of the blocks that another key has sealed."""
    head = GENESIS
    async for blocks in all_blocks(ledger, 0):
        others = await asyncio.to_thread(_sealed_by_others, key, head, blocks)
        head = others[-1].head if others else head
        if len(others) < len(blocks):
            break
    return head


def _sealed_by_others(key: bytes, head: ChainHead, blocks: Iterable[AuditBlock]) -> list[AuditBlock]:
    """Return the blocks before the first one that the key has sealed."""
    foreign: list[AuditBlock] = []
    for block in blocks:
        if has_its_seal(key, foreign[-1].head if foreign else head, block):
            break
        foreign.append(block)
    return foreign


def _changed(block: AuditBlock) -> str:
    if block.first == block.last:
        return "An entry was changed."
    return f"An entry was changed: one of {block.first} to {block.last}, which were sealed together."


async def all_blocks(ledger: Ledger, after: int) -> AsyncIterator[tuple[AuditBlock, ...]]:
    """Read the chain in order from a place on, some blocks at a time."""
    while blocks := await ledger.blocks(after, _BLOCKS_AT_ONCE):
        yield blocks
        after = blocks[-1].last


# The head, noted outside the store


def write_head(home: Home, head: ChainHead) -> None:
    """Note the head of the chain outside the store, so that a shortened chain is noticed."""
    known = read_head(home)
    if known is None or head.seq > known.seq:
        _note_head(home, head)


def _note_head(home: Home, head: ChainHead) -> None:
    document = {"seq": head.seq, "count": head.seq, "seal": head.seal.hex()}
    write_private(home.path / AUDIT_HEAD, json.dumps(document).encode())


def read_head(home: Home) -> ChainHead | None:
    """Read the head of the chain as it was last noted."""
    content = read_private(home.path / AUDIT_HEAD)
    if content is None:
        return None
    try:
        document = msgspec.json.decode(content, type=_HeadDocument)
        return ChainHead(document.seq, bytes.fromhex(document.seal))
    except ValueError as error:
        raise LogUnverifiable(f"{home.path / AUDIT_HEAD} is damaged.") from error
