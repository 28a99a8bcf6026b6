"""What the door needs from the log: a place where a disclosure is safe before its answer is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.model.disclosure import Disclosed, Disclosure
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.record import Record, Tombstone


class Discloser(Protocol):
    """Takes disclosures; one that was taken is not lost when the process ends."""

    def write(self, disclosure: Disclosure) -> None:
        """Take a disclosure, quickly and for good."""
        ...


def disclosed(shown: Sequence[Record | Tombstone], fields: tuple[FieldName, ...]) -> tuple[Disclosed, ...]:
    """Say which records were shown, by connection and stream; children of records stand for themselves."""
    if len(shown) == 1:
        only = shown[0]
        return (Disclosed(only.connection_id, only.stream, fields, (only.id,)),)
    found: dict[tuple[ConnectionId, StreamName], list[RecordId]] = {}
    for entry in shown:
        found.setdefault((entry.connection_id, entry.stream), []).append(entry.id)
    return tuple(
        Disclosed(connection, stream, fields, tuple(ids)) for (connection, stream), ids in found.items()
    )
