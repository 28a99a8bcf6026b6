"""Records and tombstones, as they are stored and as they are read; connections, and how fresh their records are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, RecordId, StreamName
from headgate.model.instants import instant, iso

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
        is_empty = name.casefold() in _PLACEHOLDERS or name == self.connector_key
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


_SECOND_US = 1_000_000
#: After failures the pause is doubled each time, up to this.
_PAUSE_SECONDS_MOST = 24 * 3600
_DOUBLINGS_MOST = 16
_MEMBER = "freshness"


@dataclass(frozen=True, slots=True)
class Freshness:
    """What was noted when an account was fetched. Times are microseconds since 1970."""

    #: When it was last tried, and when it last succeeded; None: never.
    attempted_at: int | None = None
    succeeded_at: int | None = None
    #: When it is tried again without being asked to; None: only when the owner asks.
    next_at: int | None = None
    #: Why the last attempt failed; empty if it did not.
    error: str = ""
    #: How many attempts have failed since one succeeded.
    failures: int = 0

    def status(self, now: int) -> str:
        """Return whether the records are those of the account, as far as is known: `current`, `stale` or `unknown`."""
        if self.attempted_at is None:
            return "unknown"
        if self.error or self.succeeded_at is None:
            return "stale"
        if self.next_at is None:
            return "unknown"
        # An attempt may be late by as much as the pause before it.
        pause = self.next_at - self.attempted_at
        return "current" if now <= self.next_at + pause else "stale"

    def after(self, now: int, error: str, every_seconds: int) -> Freshness:
        """Note an attempt: it succeeded if there is no error. With 0 seconds no next one is planned."""
        failures = self.failures + 1 if error else 0
        pause = max(
            every_seconds, min(every_seconds * 2 ** min(failures, _DOUBLINGS_MOST), _PAUSE_SECONDS_MOST)
        )
        return Freshness(
            now,
            self.succeeded_at if error else now,
            now + pause * _SECOND_US if every_seconds else None,
            error,
            failures,
        )

    def document(self) -> dict[str, Any]:
        """Write it as JSON for people and for the state of a connection."""
        return {
            "attempted_at": _text(self.attempted_at),
            "succeeded_at": _text(self.succeeded_at),
            "next_at": _text(self.next_at),
            "error": self.error,
            "failures": self.failures,
        }


def freshness_in(state: Mapping[str, Any]) -> Freshness | None:
    """Read it from the state of a connection; None if nothing was noted, or it is no account."""
    noted = state.get(_MEMBER)
    if not isinstance(noted, dict):
        return None
    members = cast("dict[str, Any]", noted)
    failures = members.get("failures")
    return Freshness(
        _instant(members.get("attempted_at")),
        _instant(members.get("succeeded_at")),
        _instant(members.get("next_at")),
        str(members.get("error") or ""),
        failures if isinstance(failures, int) else 0,
    )


def with_freshness(state: Mapping[str, Any], noted: Freshness) -> dict[str, Any]:
    """Put it into the state of a connection."""
    return {**state, _MEMBER: noted.document()}


_COVERAGE = "coverage"
#: Notes of one stream that are kept: a reader may be shown an older one.
_NOTES_MOST = 8
#: In place of a stream: all streams of the connection.
EVERY_STREAM = "*"


@dataclass(frozen=True, slots=True)
class Coverage:
    """A period of which a complete import brought every record. Times are microseconds since 1970."""

    #: None: from the first record on, or up to the last.
    start: int | None
    end: int | None
    #: When the import began and when it was complete.
    began_at: int
    complete_at: int

    def document(self) -> dict[str, Any]:
        """Write it as JSON for the state of a connection."""
        return {
            "start": _text(self.start),
            "end": _text(self.end),
            "began_at": _text(self.began_at),
            "complete_at": _text(self.complete_at),
        }


def coverage_in(state: Mapping[str, Any], stream: str) -> tuple[Coverage, ...]:
    """Read what complete imports noted of a stream in the state of a connection, the oldest first."""
    noted = state.get(_COVERAGE)
    if not isinstance(noted, dict):
        return ()
    streams = cast("dict[str, Any]", noted)
    entries = [
        entry
        for name in (EVERY_STREAM, stream)
        if isinstance(listed := streams.get(name), list)
        for entry in cast("list[Any]", listed)[-_NOTES_MOST:]
    ]
    read = (_coverage(cast("dict[str, Any]", entry)) for entry in entries if isinstance(entry, dict))
    return tuple(sorted((one for one in read if one is not None), key=lambda one: one.complete_at))


def with_coverage(state: Mapping[str, Any], noted: Coverage, stream: str = EVERY_STREAM) -> dict[str, Any]:
    """Note a complete import in the state of a connection."""
    stored = state.get(_COVERAGE)
    streams: dict[str, Any] = cast("dict[str, Any]", stored) if isinstance(stored, dict) else {}
    before = streams.get(stream)
    entries: list[Any] = cast("list[Any]", before) if isinstance(before, list) else []
    return {**state, _COVERAGE: {**streams, stream: [*entries, noted.document()][-_NOTES_MOST:]}}


def _coverage(members: Mapping[str, Any]) -> Coverage | None:
    complete_at = _instant(members.get("complete_at"))
    if complete_at is None:
        return None
    began_at = _instant(members.get("began_at"))
    return Coverage(
        _instant(members.get("start")),
        _instant(members.get("end")),
        complete_at if began_at is None else began_at,
        complete_at,
    )


def _text(moment: int | None) -> str | None:
    return None if moment is None else iso(moment)


def _instant(text: object) -> int | None:
    return instant(text) if isinstance(text, str) else None
