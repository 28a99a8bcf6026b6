"""Grants: what an owner approved for a client, in concrete terms that nothing later can widen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from headgate.errors import GrantInvalid, UnsupportedVersion
from headgate.model.declaration import PROTOCOL_VERSION
from headgate.model.ids import (
    ClientId,
    ConnectionId,
    FieldName,
    GrantId,
    PackageId,
    RecordId,
    SourceId,
    StreamName,
    SubjectId,
)


class AccessMode(StrEnum):
    """Whether a grant's token is issued once or may be renewed."""

    SINGLE_USE = "single_use"
    CONTINUOUS = "continuous"


class GrantState(StrEnum):
    """Whether a grant can still be used, and if not, why."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    CONSUMED = "consumed"


class TokenKind(StrEnum):
    """Who a token speaks for, which decides the addresses that accept it."""

    OWNER = "owner"
    CLIENT = "client"
    MCP_PACKAGE = "mcp_package"


class OwnerScope(StrEnum):
    """What an owner's token may be used for, if not for everything."""

    #: Read the numbers of ``/metrics``.
    METRICS = "metrics"
    #: Bring records in.
    INGEST = "ingest"


#: One home has one owner.
OWNER = SubjectId("owner")


@dataclass(frozen=True, slots=True)
class TimeConstraint:
    """Only records whose time lies in [since, until); one without a readable time is outside."""

    field: FieldName
    #: Microseconds since 1970.
    since: int | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        if self.since is None and self.until is None:
            raise GrantInvalid("A time constraint needs a beginning or an end.")


@dataclass(frozen=True, slots=True)
class StreamGrant:
    """What a grant allows of one stream: these connections, these fields, this time, these records."""

    name: StreamName
    connection_ids: tuple[ConnectionId, ...]
    fields: tuple[FieldName, ...]
    time: TimeConstraint | None = None
    resources: frozenset[RecordId] | None = None

    def __post_init__(self) -> None:
        if self.name == "*":
            raise GrantInvalid("A grant names its streams; '*' is only for asking.")
        _need_some_and_no_twins("connections", self.connection_ids)
        _need_some_and_no_twins("fields", self.fields)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long the client may keep what it read, and what it does then."""

    max_duration: str
    on_expiry: str


@dataclass(frozen=True, slots=True)
class Grant:
    """One owner's consent for one client and one source. Enforcement reads only this."""

    id: GrantId
    subject_id: SubjectId
    client_id: ClientId
    source_id: SourceId
    source_kind: str
    declaration_version: str
    purpose_code: str
    access_mode: AccessMode
    streams: tuple[StreamGrant, ...]
    #: Microseconds since 1970.
    issued_at: int
    expires_at: int | None = None
    purpose_description: str = ""
    retention: Retention | None = None
    version: str = PROTOCOL_VERSION

    def __post_init__(self) -> None:
        if self.version != PROTOCOL_VERSION:
            raise UnsupportedVersion(f"Grants of version {self.version} are not supported.")
        _need_some_and_no_twins("streams", [stream.name for stream in self.streams])

    def stream(self, name: StreamName) -> StreamGrant | None:
        return next((stream for stream in self.streams if stream.name == name), None)


@dataclass(frozen=True, slots=True)
class Access:
    """The caller of one request and the grants it acts under: what admission finds for a token."""

    token_kind: TokenKind
    subject_id: SubjectId
    client_id: ClientId | None
    #: Empty for an owner, who needs no grant.
    grants: tuple[Grant, ...]
    package_id: PackageId | None = None
    #: Of the grants that have one: how many records they may show in a day.
    daily_records: tuple[tuple[GrantId, int], ...] = ()
    #: The version of the home's file at which the token was looked up: as long as it is the same, nothing was
    #: written, and what was read before still holds. None if that is not known.
    epoch: int | None = field(default=None, compare=False)
    grant_ids: tuple[GrantId, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "grant_ids", tuple(grant.id for grant in self.grants))

    @property
    def is_owner(self) -> bool:
        """The owner reads everything without a grant."""
        return self.token_kind is TokenKind.OWNER


def _need_some_and_no_twins(what: str, names: Sequence[str]) -> None:
    if not names or len(set(names)) != len(names):
        raise GrantInvalid(f"A grant needs {what}, each named once.")
