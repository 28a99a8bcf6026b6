"""Disclosures: what was sent to whom, and what was refused. Ids and counts, never values."""

from __future__ import annotations

import msgspec

from headgate.model.ids import (
    ClientId,
    ConnectionId,
    FieldName,
    GrantId,
    PackageId,
    RecordId,
    RequestId,
    StreamName,
)

ANSWERED = "answered"
_BYTES_A_TOKEN = 4


class Disclosed(msgspec.Struct, frozen=True):
    """Records of one stream of one connection, and the fields of them that were shown."""

    connection_id: ConnectionId
    stream: StreamName
    fields: tuple[FieldName, ...]
    #: Empty where only numbers were given.
    record_ids: tuple[RecordId, ...] = ()


class Disclosure(msgspec.Struct, frozen=True):
    """One read: who asked, through which tool or route, and what the answer held."""

    #: Microseconds since 1970.
    at: int
    request_id: RequestId
    token_kind: str
    client_id: ClientId | None
    grant_ids: tuple[GrantId, ...]
    package_id: PackageId | None
    #: The tool or route, such as ``search`` or ``GET /v1/streams``.
    via: str
    #: ``answered``, or the code of the refusal.
    outcome: str
    size_bytes: int = 0
    parts: tuple[Disclosed, ...] = ()

    @property
    def tokens(self) -> int:
        """About how many tokens of a language model the answer takes."""
        return -(-self.size_bytes // _BYTES_A_TOKEN)

    @property
    def record_count(self) -> int:
        """How many records were shown."""
        parts = self.parts
        return len(parts[0].record_ids) if len(parts) == 1 else sum([len(part.record_ids) for part in parts])
