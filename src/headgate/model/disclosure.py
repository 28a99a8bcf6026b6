"""Disclosures: what was sent to whom, and what was refused. Ids and counts, never values of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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


#: A record wherever it is shown: by connection, stream and id.
ShownRecord = tuple[ConnectionId, StreamName, RecordId]


def shown_records(parts: Iterable[Disclosed]) -> set[ShownRecord]:
    """Name the records that parts show, each once: a related record may be in an answer several times."""
    return {(part.connection_id, part.stream, record) for part in parts for record in part.record_ids}


def count_records(parts: Sequence[Disclosed]) -> int:
    return len({*parts[0].record_ids}) if len(parts) == 1 else len(shown_records(parts))


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
    #: The words of a search, where the owner has them logged; otherwise the entry has no such member.
    words: str | msgspec.UnsetType = msgspec.UNSET
    #: How many refusals it stands for, where there were too many to log each; otherwise the entry has no such member.
    refusals: int | msgspec.UnsetType = msgspec.UNSET
    #: SHA-256 of the file that pruned entries were moved to; only the line that stands for them has it.
    file_digest: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def tokens(self) -> int:
        """About how many tokens of a language model the answer takes."""
        return -(-self.size_bytes // _BYTES_A_TOKEN)

    @property
    def record_count(self) -> int:
        """How many records were shown; one that is in the answer several times was read once."""
        return count_records(self.parts)

    @property
    def stream_counts(self) -> Mapping[StreamName, int]:
        """How many records of each stream were shown."""
        none = {part.stream: 0 for part in self.parts}
        return {**none, **Counter(stream for _, stream, _ in shown_records(self.parts))}

    @property
    def read_count(self) -> int:
        """How many reads it stands for."""
        return 1 if self.refusals is msgspec.UNSET else self.refusals
