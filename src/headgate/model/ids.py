"""Identifiers: a distinct type for each kind, and the grammar of its text.

The types are plain strings at run time; the type checker rejects a stream name passed for a connection.
Text from outside becomes an id only through the function of the same name in lower case.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NewType
from urllib.parse import urlsplit

from headgate.errors import InvalidRequest

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
_CONNECTION_BYTES = 12


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


def connection_id_from(randomness: bytes) -> ConnectionId:
    """Mint a connection id from twelve random bytes."""
    if len(randomness) != _CONNECTION_BYTES:
        raise ValueError(f"needs {_CONNECTION_BYTES} random bytes")
    return ConnectionId(f"cin_{randomness.hex()}")


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
