"""Reports of store maintenance: contents, damage, backups and erasures."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What one connection holds of one stream."""

    stream: StreamName
    record_count: int
    #: Estimated from a sample of the records.
    about_bytes: int
    #: Microseconds since 1970, by the stream's own time; None where it is ordered by something else.
    oldest: int | None
    newest: int | None
    #: When a record was last taken in.
    last_updated: int | None
    #: Whether the newest declaration has the stream; no reader sees the records of a stream that it dropped.
    is_declared: bool = True


@dataclass(frozen=True, slots=True)
class ConnectionStats:
    """What one connection holds."""

    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str
    streams: tuple[StreamStats, ...]


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds, and how much room it takes."""

    schema: int
    change_number: int
    connections: tuple[ConnectionStats, ...]
    database_bytes: int
    log_bytes: int
    blob_count: int
    blob_bytes: int

    @property
    def record_count(self) -> int:
        """How many records there are in all."""
        return sum(one.record_count for connection in self.connections for one in connection.streams)


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is not as it was stored; as much of its place as is known."""

    #: file, unreadable, digest, text, typed, place, index, count, columns or blob.
    kind: str
    detail: str
    connection_id: str | None = None
    stream: str | None = None
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of a check of every record."""

    record_count: int
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup holds."""

    record_count: int
    change_number: int
    file_count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed."""

    record_count: int
    blob_count: int
    #: Copies that were made before a migration: they held the same records.
    copy_count: int
