"""Identifiers: a distinct type for each kind, and the grammar of its text.

The types are plain strings at run time; the type checker rejects a stream name passed for a connection.
Text from outside becomes an id only through the function of the same name in lower case.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NewType
from urllib.parse import urlsplit

import msgspec

from headgate.errors import InvalidRecord, InvalidRequest, InvalidResultId

SubjectId = NewType("SubjectId", str)
ClientId = NewType("ClientId", str)
GrantId = NewType("GrantId", str)
PackageId = NewType("PackageId", str)
SourceId = NewType("SourceId", str)
ConnectorKey = NewType("ConnectorKey", str)
ConnectionId = NewType("ConnectionId", str)
StreamName = NewType("StreamName", str)
FieldName = NewType("FieldName", str)
#: A record's canonical key string; see headgate.model.keys.
RecordId = NewType("RecordId", str)
BlobId = NewType("BlobId", str)
RequestId = NewType("RequestId", str)

MAX_ID_CHARS = 1024
_CONNECTOR_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_BLOB_ID = re.compile(r"blob_[0-9a-f]{64}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def subject_id(text: str) -> SubjectId:
    """Read an owner's id: any text."""
    return SubjectId(_opaque(text, "subject_id"))


def client_id(text: str) -> ClientId:
    """Read a client's id: any text; may be an https address."""
    return ClientId(_opaque(text, "client_id"))


def grant_id(text: str) -> GrantId:
    """Read a grant's id: any text."""
    return GrantId(_opaque(text, "grant_id"))


def package_id(text: str) -> PackageId:
    """Read a package's id: any text."""
    return PackageId(_opaque(text, "package_id"))


def source_id(text: str) -> SourceId:
    """Read a source's id: an absolute URI, kept byte for byte."""
    scheme, colon, rest = _opaque(text, "source_id").partition(":")
    if not colon or not rest or not _SCHEME.fullmatch(scheme) or " " in text:
        raise _refused("source_id", "must be an absolute URI")
    try:
        urlsplit(text)
    except ValueError as error:
        raise _refused("source_id", "must be an absolute URI") from error
    return SourceId(text)


def connector_key(text: str) -> ConnectorKey:
    """Read a connector's short key, such as ``gmail``; never an address."""
    if not _CONNECTOR_KEY.fullmatch(_opaque(text, "connector_key")):
        raise _refused("connector_key", "must be lower-case letters, digits, '.', '_' or '-'")
    return ConnectorKey(text)


def connection_id(text: str) -> ConnectionId:
    """Read a connection's id: opaque to clients."""
    return ConnectionId(_opaque(text, "connection_id"))


@lru_cache(maxsize=1024)
def stream_name(text: str) -> StreamName:
    """Read a stream's name: any text but ``*``, which means all streams in a selection."""
    if _opaque(text, "stream") == "*":
        raise _refused("stream", "must name one stream")
    return StreamName(text)


def is_path_like(name: str) -> bool:
    """Return whether a stream's name could be taken for a path; agents' tools refuse such names."""
    return "/" in name or "\\" in name or ".." in name or name == "."


def field_name(text: str) -> FieldName:
    """Read a field's name: any key of a JSON object; dots and quotes mean themselves."""
    if not text or "\0" in text or not is_unicode(text):
        raise _refused("field", "must be a name without NUL")
    return FieldName(text)


def record_id(text: str) -> RecordId:
    """Read a record's canonical key string: any text without NUL, even with line breaks."""
    if not text or "\0" in text or not is_unicode(text) or len(text) > MAX_ID_CHARS:
        raise _refused("record_id", f"must be text of 1 to {MAX_ID_CHARS} characters without NUL")
    return RecordId(text)


def blob_id(text: str) -> BlobId:
    """Read a file's id: it is named by its content."""
    if not _BLOB_ID.fullmatch(text):
        raise _refused("blob_id", "must be an id that a record gave")
    return BlobId(text)


def is_blob_id(text: str) -> bool:
    """Return whether a text is the id of a file."""
    return _BLOB_ID.fullmatch(text) is not None


def blob_id_from(sha256_hex: str) -> BlobId:
    """Name a file by the SHA-256 of its content."""
    return blob_id(f"blob_{sha256_hex}")


def request_id(text: str) -> RequestId:
    """Read a request id that a client chose."""
    if not _REQUEST_ID.fullmatch(text):
        raise _refused("request_id", "must be up to 128 letters, digits, '.', '_', '~' or '-'")
    return RequestId(text)


def is_unicode(text: str) -> bool:
    """Return whether the text can be written as UTF-8: half a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_plain(text: str) -> bool:
    """Return whether every character shows itself in a line of text.

    Controls, line breaks, direction marks and invisible characters do not: printed among other
    text they could change what a reader sees, or be lost when the text is copied.
    """
    if text.isascii():
        return text.isprintable()
    return not any(
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"} for character in text
    )


def _opaque(text: str, param: str) -> str:
    if not text or len(text) > MAX_ID_CHARS or not is_plain(text):
        raise _refused(param, f"must be plain text of 1 to {MAX_ID_CHARS} characters")
    return text


def _refused(param: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"{param} {rule}.", param=param)


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


def canonical_key(parts: Sequence[object]) -> RecordId:
    """Write a primary key as one text: the part itself, or a JSON array of strings for several."""
    texts = [key_text(part) for part in parts]
    if not texts:
        raise InvalidRecord("A key needs at least one part.")
    if len(texts) == 1:
        return record_id(texts[0])
    return record_id(json.dumps(texts, ensure_ascii=False, separators=(",", ":")))


def key_parts(key: RecordId, width: int) -> tuple[str, ...]:
    """Take a canonical key string apart again into its parts, as text."""
    if width == 1:
        return (key,)
    try:
        parts = tuple(msgspec.json.decode(key, type=list[str]))
    except msgspec.DecodeError:
        parts = ()
    # Only the one spelling that we write is canonical: other white space or escapes are another text.
    if len(parts) == width and canonical_key(parts) == key:
        return parts
    raise InvalidRecord(f"The key must be a minified JSON array of {width} strings.")


def key_text(part: object) -> str:
    """Write one part of a key as text, the way JSON writes it."""
    match part:
        case str():
            return part
        case bool():
            return "true" if part else "false"
        case int():
            return str(part)
        case float() if math.isfinite(part):
            # JSON does not tell 1.0 from 1, so neither may a key.
            return str(int(part)) if part.is_integer() else repr(part)
        case _:
            raise InvalidRecord("A key part must be a string, a number or a boolean.")
