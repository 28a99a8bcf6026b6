"""Read the disclosure log: all of it, or the entries that show one record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headgate.model.disclosure import Disclosure
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import iso
from headgate.model.ledger import AuditEntry
from headgate.store.ledger import Ledger

_AT_ONCE = 5000


def all_entries(ledger: Ledger) -> Iterator[AuditEntry]:
    """Read the whole chain in order."""
    after = 0
    while found := ledger.entries(after, _AT_ONCE):
        yield from found
        after = found[-1].seq


def newest_entries(ledger: Ledger) -> Iterator[AuditEntry]:
    """Read the whole chain from its end."""
    before = None
    while found := ledger.newest(before, _AT_ONCE):
        yield from found
        before = found[-1].seq


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


def _shows(
    event: Disclosure, record_id: RecordId, stream: StreamName | None, connection_id: ConnectionId | None
) -> bool:
    return any(
        record_id in part.record_ids
        and stream in {None, part.stream}
        and connection_id in {None, part.connection_id}
        for part in event.parts
    )
