"""Record references, and the result ids that models copy from one call into the next.

::

    self-contained := connection_id "/" stream ":" record_id
    legacy         := stream ":" record_id

A reference whose parts cannot live in this grammar has no result id; it travels as a sealed handle.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from headgate.errors import InvalidResultId
from headgate.model.ids import ConnectionId, RecordId, StreamName, is_plain

#: The form of most ids; one that matches needs no further check.
_PLAIN = re.compile(r"(?:([A-Za-z0-9_-]+)/)?([A-Za-z0-9_-]+):([A-Za-z0-9_-]+)")
_DIGEST_BYTES = 12
_GRAMMARS = "An id is 'connection_id/stream:record_id' or 'stream:record_id'."


class RecordRef(msgspec.Struct, frozen=True):
    """Which record: its stream and key, and its connection when that is known."""

    connection_id: ConnectionId | None
    stream: StreamName
    record_id: RecordId
    #: Set where ``record_id`` is only the beginning of a long key: the digest of the whole one.
    key_digest: bytes | None = None


def digest_of_key(record_id: RecordId) -> bytes:
    """Return the digest that stands for a long key in a handle."""
    return hashlib.sha256(record_id.encode()).digest()[:_DIGEST_BYTES]


def parse_result_id(text: str) -> RecordRef:
    """Take a result id apart; nothing is looked up.

    Raises:
        InvalidResultId: a part is missing, reserved, or tries to leave its place.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        connection_id = None if plain[1] is None else ConnectionId(plain[1])
        return RecordRef(connection_id, StreamName(plain[2]), RecordId(plain[3]))
    connection, slash, rest = text.partition("/")
    stream, colon, record = (rest if slash else text).partition(":")
    if not colon:
        raise InvalidResultId(f"The id has no ':' between stream and record. {_GRAMMARS}")
    for part in (stream, record, *([connection] if slash else [])):
        problem = _problem(part)
        if problem:
            raise InvalidResultId(f"A part of the id {problem}. {_GRAMMARS}")
    if ":" in connection and slash:
        raise InvalidResultId(f"The connection in the id contains ':'. {_GRAMMARS}")
    return RecordRef(ConnectionId(connection) if slash else None, StreamName(stream), RecordId(record))


def format_result_id(ref: RecordRef) -> str | None:
    """Write a reference as a result id, or say that the grammar cannot hold it."""
    if ref.connection_id is None:
        text = f"{ref.stream}:{ref.record_id}"
    else:
        text = f"{ref.connection_id}/{ref.stream}:{ref.record_id}"
        if _PLAIN.fullmatch(text):
            # As plain as almost all are, with no second slash or colon; what is not is looked at part by part.
            return text
    if _problem(ref.stream) or _problem(ref.record_id) or ":" in ref.stream:
        return None
    if ref.connection_id is not None and (_problem(ref.connection_id) or ":" in ref.connection_id):
        return None
    return text


def _problem(part: str) -> str | None:
    if not part:
        return "is empty"
    if "/" in part or "\\" in part:
        return "contains a path separator"
    if ".." in part or part == ".":
        return "contains a path step"
    # What does not show itself cannot be copied out of a text unharmed.
    return None if is_plain(part) else "contains a character that cannot be shown"
