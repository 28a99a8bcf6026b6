"""Read the disclosure log: all of it, or the entries that show one record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from headgate.model.disclosure import FOLDED_LINE, Disclosed, Disclosure, FoldedDisclosure, FoldedPart
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import iso
from headgate.model.ledger import AuditEntry
from headgate.store.ledger import Ledger

_AT_ONCE = 1000


async def in_pieces(ledger: Ledger) -> AsyncIterator[tuple[AuditEntry, ...]]:
    """Read the whole chain in order, a piece at a time."""
    after = 0
    while found := await ledger.entries(after, _AT_ONCE):
        yield found
        after = found[-1].seq


async def all_entries(ledger: Ledger) -> AsyncIterator[AuditEntry]:
    """Read the whole chain in order."""
    async for piece in in_pieces(ledger):
        for entry in piece:
            yield entry


async def newest_entries(ledger: Ledger) -> AsyncIterator[AuditEntry]:
    """Read the whole chain from its end."""
    before = None
    while found := await ledger.newest(before, _AT_ONCE):
        for entry in found:
            yield entry
        before = found[-1].first


async def who_read(
    ledger: Ledger, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> AsyncIterator[AuditEntry]:
    """Find every disclosure of a record."""
    text = msgspec.json.encode(record_id).decode()
    after = 0

    def showing(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
        return [one for one in entries if parts_of(read_event(one), record_id, stream, connection_id)]

    while found := await ledger.entries_with(text, after, _AT_ONCE):
        for entry in await asyncio.to_thread(showing, found):
            yield entry
        after = found[-1].seq


def read_event(entry: AuditEntry) -> Disclosure:
    """Decode the event of an entry: one read, or what a fold has of the reads of a day."""
    is_folded = entry.event.startswith(FOLDED_LINE)
    return msgspec.json.decode(entry.event, type=FoldedDisclosure if is_folded else Disclosure)


def entry_document(entry: AuditEntry) -> dict[str, Any]:
    """Write an entry as the JSON document that ``headgate audit`` prints."""
    event = read_event(entry)
    return {
        "seq": entry.seq,
        **msgspec.to_builtins(event),
        "at": iso(event.at),
        "tokens": event.tokens,
        "record_count": event.record_count,
        "seal": entry.seal.hex(),
    }


def parts_of(
    event: Disclosure, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> list[Disclosed]:
    """Find the parts of an event that show a record."""
    return [
        part
        for part in event.parts
        if record_id in part.record_ids
        and stream in {None, part.stream}
        and connection_id in {None, part.connection_id}
    ]


def folded_times(parts: Iterable[Disclosed]) -> int | None:
    """Count the reads that the parts of a fold stand for; None of parts of a single read."""
    return sum(part.times for part in parts if isinstance(part, FoldedPart)) or None
