"""Read the disclosure log: all of it, or the entries that show one record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from headgate.model.disclosure import Disclosed, Disclosure
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import iso
from headgate.model.ledger import AuditEntry
from headgate.store.ledger.ledger import Ledger

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
    """Decode the event of an entry."""
    return msgspec.json.decode(entry.event, type=Disclosure)


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
