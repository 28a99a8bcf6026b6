"""What maintenance of a store reports: what the store holds, what is damaged, what was copied or erased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName

#: Called now and then during long work: how much is done, and of how much.
Progress = Callable[[int, int], None]
#: A passphrase of a backup that is shorter can be guessed.
LEAST_PASSPHRASE_CHARS = 10


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What one connection holds of one stream."""

    stream: StreamName
    record_count: int
    #: Estimated from a few records.
    about_bytes: int
    #: Microseconds since 1970, by the field that orders the stream; None where that is not a time.
    oldest: int | None
    newest: int | None
    #: When a record was last stored.
    last_updated: int | None
    #: Whether the newest declaration has the stream. The records of one that it lacks are out of every grant's reach.
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
    """What a store holds, and how much space it takes."""

    schema: int
    change_number: int
    connections: tuple[ConnectionStats, ...]
    database_bytes: int
    log_bytes: int
    blob_count: int
    blob_bytes: int
    #: Whether the space is that of a database with other homes in it.
    is_shared: bool = False

    @property
    def record_count(self) -> int:
        """The number of records of all connections."""
        return sum(stream.record_count for connection in self.connections for stream in connection.streams)


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as it was stored; its place as far as that is known."""

    #: file, unreadable, catalog, digest, text, typed, place, index, count, columns or blob.
    kind: str
    detail: str
    connection_id: str | None = None
    stream: str | None = None
    record_id: str | None = None


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of a check of every record."""

    record_count: int
    damages: tuple[Damage, ...]


@dataclass(frozen=True, slots=True)
class EndedCredentials:
    """How many credentials a restore ended."""

    grants: int = 0
    owner_tokens: int = 0
    #: The password, passkeys, sessions and marks of browsers.
    sign_ins: int = 0
    gateway_callers: int = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """What a backup holds, and what restoring it ended."""

    record_count: int
    change_number: int
    file_count: int
    bytes: int
    ended: EndedCredentials = EndedCredentials()
    #: Whether it holds the keys of the home, and with them what the log is checked against.
    has_keys: bool = False


@dataclass(frozen=True, slots=True)
class Moved:
    """What was copied from one store into another."""

    record_count: int
    change_number: int
    row_count: int
    #: Files that the source should have had and did not.
    missing_count: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed."""

    record_count: int
    blob_count: int
    #: Copies of the store that were made before a migration: they held the same records.
    copy_count: int
