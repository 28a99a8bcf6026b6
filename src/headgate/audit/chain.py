"""The chain of the disclosure log: how a block is sealed, and how the seals are checked.

A seal is an HMAC over the seal before it and the events of the block, so that a block cannot be changed,
left out or moved without breaking every seal after it. A chain that was cut at its end still fits together:
so its last place and seal are also written to a file outside the store, and checked against it.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from headgate.errors import LogUnverifiable
from headgate.home import (
    AUDIT_HEAD,
    AUDIT_START,
    Home,
    read_or_create_private,
    read_private,
    write_private,
)
from headgate.model.ids import GrantId
from headgate.model.instants import DAY_US
from headgate.model.ledger import AuditBlock, ChainHead, SealedBlock, ShownRecords
from headgate.store.ledger import Ledger
from headgate.store.sqlite.paths import FILE as STORE_FILE

_KEY_FILE = "audit"
_KEY_BYTES = 32
#: What the first block is sealed after.
_GENESIS = ChainHead(0, b"\0" * 32)
_BLOCKS_AT_ONCE = 16


class _CountedPart(msgspec.Struct):
    record_ids: tuple[str, ...] = ()


class _CountedEvent(msgspec.Struct):
    """The members of a disclosure that counting needs; decoding skips the others."""

    at: int
    grant_ids: tuple[GrantId, ...]
    parts: tuple[_CountedPart, ...] = ()


class _HeadDocument(msgspec.Struct):
    seq: int
    seal: str


_read_counted = msgspec.json.Decoder(_CountedEvent).decode


def load_audit_key(home: Home) -> bytes:
    """Read the key that seals the chain, or make one; call it before a new store is made.

    If there is a store already, its key was lost, and that is noted: its entries can then not be checked.
    """

    def create() -> bytes:
        if (home.path / STORE_FILE).exists():
            write_private(home.path / AUDIT_START, b'{"key": "made after the store"}')
        return secrets.token_bytes(_KEY_BYTES)

    return read_or_create_private(home.keys / _KEY_FILE, create, least_bytes=_KEY_BYTES)


# Sealing


def seal_block(
    key: bytes, head: ChainHead | None, lines: bytes, shown: ShownRecords | None = None
) -> SealedBlock:
    """Seal lines as the block after a head; None is the head of an empty chain.

    ``shown`` is how many records all the lines show, if that was counted when they were written.
    """
    before = head or _GENESIS
    events = lines.removesuffix(b"\n")
    block = AuditBlock(before.seq + lines.count(b"\n"), events, _seal(key, before, events))
    return SealedBlock(block, _count_shown(events) if shown is None else shown)


def _seal(key: bytes, before: ChainHead, events: bytes) -> bytes:
    return hmac.digest(key, before.seal + events, "sha256")


def _count_shown(events: bytes) -> ShownRecords:
    found: Counter[tuple[GrantId, int]] = Counter()
    for line in events.split(b"\n"):
        event = _read_counted(line)
        records = sum(len(part.record_ids) for part in event.parts)
        for grant_id in event.grant_ids:
            found[grant_id, event.at // DAY_US] += records
    return found


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
    """Read what the files beside the store say about the chain.

    Raises:
        LogUnverifiable: the noted head is damaged.
    """
    return NotedChain(load_audit_key(home), read_head(home), (home.path / AUDIT_START).exists())


def verify(ledger: Ledger, noted: NotedChain) -> Verdict:
    """Check every seal, and the chain's head against the one noted outside the store."""
    start = _start(ledger, noted.key) if noted.is_later_key else _GENESIS
    found = _verify_from(start, ledger, noted)
    if found.problem:
        return found
    if start.seq:
        lack = f"Entries 1 to {start.seq} cannot be checked here: the key that sealed them is missing."
        return replace(found, unchecked=lack)
    if noted.head is None and found.count:
        lack = f"Whether entries after {found.count} are missing cannot be checked here: there is no {AUDIT_HEAD}."
        return replace(found, unchecked=lack)
    return found


def _verify_from(start: ChainHead, ledger: Ledger, noted: NotedChain) -> Verdict:
    head, end = start, noted.head
    for block in _all_blocks(ledger, start.seq):
        if block.first != head.seq + 1:
            return Verdict(head.seq, head.seq + 1, "An entry is missing.")
        expected = _seal(noted.key, head, block.events)
        if not hmac.compare_digest(expected, block.seal):
            return Verdict(head.seq, block.first, _changed(block))
        head = ChainHead(block.last, expected)
        if end is not None and block.first <= end.seq <= head.seq and end != head:
            return Verdict(head.seq, head.seq, "The chain is not the one whose end was noted.")
    if end is not None and end.seq > head.seq:
        return Verdict(head.seq, head.seq + 1, f"The chain ends before entry {end.seq}, which was noted.")
    return Verdict(head.seq)


def _start(ledger: Ledger, key: bytes) -> ChainHead:
    """Find the end of the blocks that another key has sealed."""
    head = _GENESIS
    for block in _all_blocks(ledger, 0):
        if hmac.compare_digest(_seal(key, head, block.events), block.seal):
            break
        head = ChainHead(block.last, block.seal)
    return head


def _changed(block: AuditBlock) -> str:
    if block.first == block.last:
        return "An entry was changed."
    return f"An entry was changed: one of {block.first} to {block.last}, which were sealed together."


def _all_blocks(ledger: Ledger, after: int) -> Iterator[AuditBlock]:
    while found := ledger.blocks(after, _BLOCKS_AT_ONCE):
        yield from found
        after = found[-1].last


# The head, noted outside the store


def write_head(home: Home, head: ChainHead) -> None:
    """Note the head of the chain outside the store, so that a shortened chain is noticed."""
    known = read_head(home)
    if known is None or head.seq > known.seq:
        document = {"seq": head.seq, "count": head.seq, "seal": head.seal.hex()}
        write_private(home.path / AUDIT_HEAD, json.dumps(document).encode())


def read_head(home: Home) -> ChainHead | None:
    """Read the head of the chain as it was last noted.

    Raises:
        LogUnverifiable: the file is damaged.
    """
    content = read_private(home.path / AUDIT_HEAD)
    if content is None:
        return None
    try:
        document = msgspec.json.decode(content, type=_HeadDocument)
        return ChainHead(document.seq, bytes.fromhex(document.seal))
    except ValueError as error:
        raise LogUnverifiable(f"{home.path / AUDIT_HEAD} is damaged.") from error
