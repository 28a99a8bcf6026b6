"""Records and tombstones, as they are stored and as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, RecordId, StreamName

#: Members of one object of a record, at any depth: every reader can list that many.
MAX_KEYS = 1000


#: Names that say nothing about which connection it is.
_PLACEHOLDERS = frozenset({"", "legacy", "default_account", "default account"})


class Op(StrEnum):
    """What an incoming line asks for."""

    UPSERT = "upsert"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Connection:
    """One account, device or profile that the owner connected."""

    id: ConnectionId
    connector_key: ConnectorKey
    #: What the owner calls it; empty when the owner gave no name.
    display_name: str
    #: Microseconds since 1970.
    created_at: int

    @property
    def label(self) -> str | None:
        """What the owner calls it, unless that says nothing."""
        name = self.display_name
        is_empty = name.casefold() in _PLACEHOLDERS or name in {self.connector_key, self.id}
        return None if is_empty else name


class Record(msgspec.Struct, frozen=True):
    """One record as a reader may see it: only granted fields are in the body.

    A struct rather than a dataclass because it is made for every row that is read, at a fifth of the cost.
    """

    connection_id: ConnectionId
    stream: StreamName
    id: RecordId
    #: A JSON object as UTF-8 bytes. It stays bytes from the store to the wire.
    body: bytes
    #: Microseconds since 1970: when its producer handed it over.
    emitted_at: int
    #: Text fields that are only begun in the body, because they are long.
    previews: Mapping[str, Preview] = {}
    #: Children by relation name, when they were asked for.
    expanded: Mapping[str, Children] = {}


@dataclass(frozen=True, slots=True)
class Preview:
    """How long a text really is whose beginning stands in a record's body."""

    size_chars: int
    #: SHA-256 of the whole text's UTF-8 bytes, in hex.
    digest: str


@dataclass(frozen=True, slots=True)
class Children:
    """The records a relation led to, and whether there are more."""

    records: tuple[Record, ...]
    has_more: bool
    #: Those that are left out because they are not what was stored.
    damaged: tuple[RecordId, ...] = ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A record that is no longer in the stream, or no longer in the reader's scope."""

    connection_id: ConnectionId
    stream: StreamName
    id: RecordId
    deleted_at: int
    emitted_at: int
