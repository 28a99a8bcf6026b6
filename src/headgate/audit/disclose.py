"""What writes to the disclosure log: a disclosure is safe there before its answer is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.model.disclosure import Disclosed, Disclosure
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.record import Record, Tombstone


class Discloser(Protocol):
    """Takes disclosures. One that was taken survives the end of the process."""

    def write(self, disclosure: Disclosure) -> None:
        """Write a disclosure; it returns when the disclosure is safe."""
        ...


def disclosed(shown: Sequence[Record | Tombstone], fields: tuple[FieldName, ...]) -> tuple[Disclosed, ...]:
    """Group records by connection and stream; the children of a record are not included.

    Of a deleted record no field is shown, only that it was there.
    """
    if len(shown) == 1:
        only = shown[0]
        return (Disclosed(only.connection_id, only.stream, _fields_of(only, fields), (only.id,)),)
    found: dict[tuple[ConnectionId, StreamName, tuple[FieldName, ...]], list[RecordId]] = {}
    for entry in shown:
        key = entry.connection_id, entry.stream, _fields_of(entry, fields)
        found.setdefault(key, []).append(entry.id)
    return tuple(Disclosed(*key, tuple(ids)) for key, ids in found.items())


def _fields_of(entry: Record | Tombstone, fields: tuple[FieldName, ...]) -> tuple[FieldName, ...]:
    return () if isinstance(entry, Tombstone) else fields
