"""Cursors and bookmarks: sealed here, opened here, each bound to the access and the very query.

A token made for other grants, another stream, order, filter or projection does not open. What it holds is
encrypted and of a length that says nothing; it is a place to go on from, never an authority.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from headgate.errors import CursorExpired, InvalidCursor, SealBroken
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import BOOKMARK_DAYS, Position, SearchPosition
from headgate.model.query import ChangesQuery, Count, ListQuery, SearchQuery
from headgate.model.sealed import Failure, Kind, Sealer
from headgate.policy.allowance import Allowance

BEGINNING = "beginning"
_CHANGES_HINT = (
    f"Pass changes_since '{BEGINNING}', or next_changes_since as an answer about this stream and connection_id "
    "printed it. Dates go into filter."
)
CURSOR_SECONDS = 24 * 3600
BOOKMARK_SECONDS = BOOKMARK_DAYS * 24 * 3600
#: With these a bookmark has 44 characters. Fewer random bytes would repeat within an hour of requests, and only while
#: nothing was written that the client may not see.
NONCE_BYTES, _CHANGE_BYTES = 6, 5
_Payload = TypeVar("_Payload")


class Seals(msgspec.Struct, frozen=True):
    """What opens and seals cursors: the keys, and the time in epoch seconds."""

    sealer: Sealer
    now: int


@dataclass(frozen=True, slots=True)
class ChangesSession:
    """Where the next page of a session of changes starts."""

    since: int
    horizon: int
    after: int


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where the next session of changes starts."""

    since: int
    #: Makes two bookmarks of the same place differ, so that comparing them says nothing.
    nonce: bytes = bytes(NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """Where the next window of one text starts, and which text it was."""

    connection_id: ConnectionId
    digest: str
    offset_chars: int
    limit_chars: int


def list_binding(allowance: Allowance, query: ListQuery) -> bytes:
    """Return what a page cursor is bound to; page size and count may change between pages."""
    return _digest(allowance, replace(query, cursor=None, limit=0, count=Count.NONE, with_extent=False))


def session_binding(allowance: Allowance, query: ChangesQuery) -> bytes:
    """Return what a cursor inside a session of changes is bound to."""
    return _digest(allowance, replace(query, cursor=None, limit=0))


def bookmark_binding(allowance: Allowance, query: ChangesQuery) -> bytes:
    """Return what a bookmark is bound to: the same projection of the same stream."""
    return _digest(allowance, replace(query, cursor=None, limit=0, since=""))


def search_binding(allowance: Allowance, query: SearchQuery) -> bytes:
    # How a page is drawn changes nothing in the order of hits.
    return _digest(allowance, replace(query, cursor=None, limit=0, collapse=None))


def window_binding(allowance: Allowance, stream: StreamName, record_id: RecordId, field: FieldName) -> bytes:
    """Return what a window cursor is bound to: one field of one record."""
    return _digest(allowance, ("window", stream, record_id, field))


def seal_position(seals: Seals, position: Position, binding: bytes) -> str:
    """Seal the place after a record."""
    return _seal(seals, Kind.PAGE, position, binding)


def open_position(seals: Seals, token: str, binding: bytes) -> Position:
    return _open(seals, Kind.PAGE, token, binding, Position, "cursor")


def seal_hit(seals: Seals, position: SearchPosition, binding: bytes) -> str:
    """Seal the place after a hit."""
    return _seal(seals, Kind.SEARCH, position, binding)


def open_hit(seals: Seals, token: str, binding: bytes) -> SearchPosition:
    return _open(seals, Kind.SEARCH, token, binding, SearchPosition, "cursor")


def seal_session(seals: Seals, session: ChangesSession, binding: bytes) -> str:
    """Seal the place inside a session of changes."""
    numbers = (session.since, session.horizon, session.after)
    token = _seal_bytes(seals, Kind.CHANGES, b"s" + _wide(*numbers), binding, CURSOR_SECONDS)
    return seals.sealer.shortened(token)


def open_session(seals: Seals, token: str, binding: bytes) -> ChangesSession:
    raw = _open_bytes(seals, Kind.CHANGES, token, binding, "cursor")
    if raw[:1] != b"s":
        raise InvalidCursor(param="cursor")
    since, horizon, after = _narrow(raw[1:])
    return ChangesSession(since, horizon, after)


def seal_bookmark(seals: Seals, bookmark: Bookmark, binding: bytes) -> str:
    """Seal the end of a session of changes."""
    length = max(_CHANGE_BYTES, (bookmark.since.bit_length() + 7) // 8)
    payload = bookmark.nonce + bookmark.since.to_bytes(length, "big")
    return _seal_bytes(seals, Kind.BOOKMARK, payload, binding, BOOKMARK_SECONDS)


def open_bookmark(seals: Seals, token: str, binding: bytes) -> Bookmark:
    """Open a bookmark; the word for the beginning needs no seal."""
    if token == BEGINNING:
        return Bookmark(0)
    if not token.startswith(Kind.CHANGES):
        raw = _open_bytes(seals, Kind.BOOKMARK, token, binding, "changes_since")
        return Bookmark(int.from_bytes(raw[NONCE_BYTES:], "big"))
    # As bookmarks were given before, for 180 days.
    raw = _open_bytes(seals, Kind.CHANGES, token, binding, "changes_since")
    if raw[:1] != b"b":
        raise InvalidCursor(param="changes_since", hint=_CHANGES_HINT)
    return Bookmark(_narrow(raw[1:9])[0])


def seal_window(seals: Seals, place: WindowPlace, binding: bytes) -> str:
    return _seal(seals, Kind.WINDOW, place, binding)


def open_window(seals: Seals, token: str, binding: bytes) -> WindowPlace:
    return _open(seals, Kind.WINDOW, token, binding, WindowPlace, "cursor")


def _digest(allowance: Allowance, query: object) -> bytes:
    # Not an encoding of numbers: a query that is yet to be refused may hold any value.
    return hashlib.sha256(repr((allowance.identity, query)).encode(errors="surrogatepass")).digest()


def _seal(seals: Seals, kind: Kind, payload: object, binding: bytes) -> str:
    token = _seal_bytes(seals, kind, msgspec.msgpack.encode(payload), binding, CURSOR_SECONDS)
    return seals.sealer.shortened(token)


def _seal_bytes(seals: Seals, kind: Kind, payload: bytes, binding: bytes, seconds: int) -> str:
    return seals.sealer.seal(kind, payload, binding=binding, expires_at=seals.now + seconds)


def _open(
    seals: Seals, kind: Kind, token: str, binding: bytes, payload_type: type[_Payload], param: str
) -> _Payload:
    return msgspec.msgpack.decode(_open_bytes(seals, kind, token, binding, param), type=payload_type)


def _open_bytes(seals: Seals, kind: Kind, token: str, binding: bytes, param: str) -> bytes:
    try:
        return seals.sealer.open(kind, token, binding=binding, now=seals.now)
    except SealBroken as error:
        hint = _CHANGES_HINT if param == "changes_since" else ""
        if error.reason == Failure.EXPIRED:
            raise CursorExpired(param=param, hint=hint) from None
        raise InvalidCursor(param=param, hint=hint) from None


def _wide(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "big") for number in numbers)


def _narrow(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[at : at + 8], "big") for at in range(0, len(raw), 8)]
