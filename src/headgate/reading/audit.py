"""Look at the log of disclosures: whether it is whole, and who has read a record."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.model.disclosure import Disclosure
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import iso
from headgate.model.ledger import AuditBlock, AuditEntry, ChainHead
from headgate.store.ledger import Ledger

_AT_ONCE = 5000
_BLOCKS_AT_ONCE = 16
_FIRST = b"\0" * 32


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of checking the chain."""

    count: int
    #: The first entry that does not fit, if one does not.
    broken_at: int | None = None
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Nothing was changed, and nothing is missing as far as can be told."""
        return not self.problem


def verify(ledger: Ledger, key: bytes, noted: ChainHead | None) -> Verdict:
    """Check every seal, and the end of the chain against the one noted outside the store."""
    seal, seq = _FIRST, 0
    for block in _all_blocks(ledger):
        if block.first != seq + 1:
            return Verdict(seq, seq + 1, "An entry is missing.")
        expected = hmac.digest(key, seal + block.events, "sha256")
        if not hmac.compare_digest(expected, block.seal):
            return Verdict(seq, block.first, _changed(block))
        seal, seq = expected, block.last
        if noted is not None and block.first <= noted.seq <= seq and noted != ChainHead(seq, seal):
            return Verdict(seq, seq, "The chain is not the one whose end was noted.")
    if noted is not None and noted.seq > seq:
        return Verdict(seq, seq + 1, f"The chain ends before entry {noted.seq}, which was noted.")
    return Verdict(seq)


def _changed(block: AuditBlock) -> str:
    if block.first == block.last:
        return "An entry was changed."
    return f"An entry was changed: one of {block.first} to {block.last}, which were sealed together."


def _all_blocks(ledger: Ledger) -> Iterator[AuditBlock]:
    after = 0
    while found := ledger.blocks(after, _BLOCKS_AT_ONCE):
        yield from found
        after = found[-1].last


def all_entries(ledger: Ledger) -> Iterator[AuditEntry]:
    """Read the whole chain in order."""
    after = 0
    while found := ledger.entries(after, _AT_ONCE):
        yield from found
        after = found[-1].seq


def who_read(
    ledger: Ledger, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> Iterator[AuditEntry]:
    """Find every disclosure of a record."""
    text = msgspec.json.encode(record_id).decode()
    after = 0
    while found := ledger.entries_with(text, after, _AT_ONCE):
        for entry in found:
            if _shows(read_event(entry), record_id, stream, connection_id):
                yield entry
        after = found[-1].seq


def read_event(entry: AuditEntry) -> Disclosure:
    """Read the event of an entry."""
    return msgspec.json.decode(entry.event, type=Disclosure)


def entry_document(entry: AuditEntry) -> dict[str, Any]:
    """Write an entry for show."""
    event = read_event(entry)
    return {
        "seq": entry.seq,
        **msgspec.to_builtins(event),
        "at": iso(event.at),
        "tokens": event.tokens,
        "record_count": event.record_count,
        "seal": entry.seal.hex(),
    }


def _shows(
    event: Disclosure, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> bool:
    return any(
        record_id in part.record_ids
        and stream in {None, part.stream}
        and connection_id in {None, part.connection_id}
        for part in event.parts
    )
