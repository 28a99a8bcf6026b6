"""Ids and URIs of records, windows and files: written into answers, and read back from calls.

A handle is sealed: clients cannot read it, and it only names a thing; it never authorises. A read that starts
from one is decided by the resource server like any other.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from headgate.errors import InvalidResourceUri, InvalidResultId, SealBroken
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName, blob_id
from headgate.model.query import BlobQuery, WindowQuery
from headgate.model.reference import RecordRef, format_result_id, parse_result_id
from headgate.model.sealed import Kind, Sealer
from headgate.reading.links import quoted_name, record_path
from headgate.text.budget import size

RECORD = "pdpp://record/"
WINDOW = "pdpp://field-window/"
STREAM = "pdpp://stream/"
BLOB = "pdpp://blob/"
#: A longer id is replaced by a short handle: 25 ids of this size leave space for titles in the text of a page.
ID_BYTES = 160
_KNOWN = 10_000
_DIGEST_BYTES = 16
_UNKNOWN = (
    "The pdpp://record URI is not one that this server gave, or it is from before a restart: "
    "repeat the search or the query that printed it."
)
#: Blanks that are lost, doubled or changed when a line is copied.
_FRAGILE = re.compile(r"^\s|\s$|\s\s|[^\S ]")


class KnownRecords:
    """The records whose ids are too long to print, by digest: bounded, and those printed last are kept."""

    def __init__(self, limit: int = _KNOWN) -> None:
        self._by_digest: OrderedDict[str, RecordRef] = OrderedDict()
        self._limit = limit

    def add(self, ref: RecordRef) -> str:
        """Remember a record, and return its digest."""
        written = msgspec.json.encode([ref.connection_id, ref.stream, ref.record_id])
        digest = base64.urlsafe_b64encode(hashlib.sha256(written).digest()[:_DIGEST_BYTES]).decode()
        self._by_digest[digest] = ref
        self._by_digest.move_to_end(digest)
        if len(self._by_digest) > self._limit:
            self._by_digest.popitem(last=False)
        return digest

    def find(self, digest: str) -> RecordRef | None:
        """Find a record by its digest."""
        return self._by_digest.get(digest)


@dataclass(frozen=True, slots=True)
class HandleMaker:
    """Writes and reads handles with one key ring; it lives as long as the process."""

    sealer: Sealer
    known: KnownRecords = field(default_factory=KnownRecords)

    def result_id(self, ref: RecordRef) -> str:
        """Write the id that a model passes on: as plain text if copying cannot change it, else as a URI.

        A long id would fill the text of a page: a short handle stands in its place, which this process resolves.
        """
        text = self._whole_id(ref)
        return text if len(text) <= ID_BYTES and size(text) <= ID_BYTES else self._short_uri(ref)

    def _short_uri(self, ref: RecordRef) -> str:
        return RECORD + self._seal(Kind.RECORD_HANDLE, [self.known.add(ref)])

    def _whole_id(self, ref: RecordRef) -> str:
        text = format_result_id(ref)
        if text is not None and " " not in text and text.isascii():
            return text
        if text is None and ref.connection_id is not None and not _fits(ref.connection_id):
            # Only the connection does not fit into an id: it is printed beside the id.
            text = format_result_id(RecordRef(None, ref.stream, ref.record_id))
        return text if text is not None and not _FRAGILE.search(text) else self.record_uri(ref)

    def record_uri(self, ref: RecordRef) -> str:
        """Name a record by a URI."""
        return RECORD + self._seal(Kind.RECORD_HANDLE, [ref.connection_id, ref.stream, ref.record_id])

    def window_uri(self, ref: RecordRef, field_path: str, selector: Mapping[str, Any]) -> str:
        """Name a window of a field by a URI."""
        place = [ref.connection_id, ref.stream, ref.record_id, field_path, dict(selector)]
        return WINDOW + self._seal(Kind.WINDOW_HANDLE, place)

    def blob_uri(self, blob: str, connection_id: str | None) -> str:
        """Name a file by a URI."""
        return BLOB + self._seal(Kind.BLOB_HANDLE, [blob, connection_id])

    def read_id(self, text: str) -> RecordRef:
        """Read an id in any of its forms; nothing is looked up.

        Raises:
            InvalidResultId: it has none of them.
        """
        if not text.startswith(RECORD):
            return parse_result_id(text)
        try:
            return self.read_record_uri(text)
        except InvalidResourceUri as error:
            raise InvalidResultId(_UNKNOWN) from error

    def read_record_uri(self, uri: str) -> RecordRef:
        """Read a record's URI, sealed or with a percent-encoded id in it."""
        handle = uri.removeprefix(RECORD)
        if not handle.startswith(f"{Kind.RECORD_HANDLE.value}1."):
            try:
                return parse_result_id(unquote(handle))
            except InvalidResultId as error:
                raise InvalidResourceUri from error
        opened = self._open(Kind.RECORD_HANDLE, handle)
        if len(opened) == 1:
            found = self.known.find(opened[0])
            if found is None:
                raise InvalidResourceUri
            return found
        connection, stream, record = opened
        return RecordRef(_connection(connection), StreamName(stream), RecordId(record))

    def read_window_uri(self, uri: str) -> WindowQuery:
        """Read a window's URI."""
        opened = self._open(Kind.WINDOW_HANDLE, uri.removeprefix(WINDOW))
        connection, stream, record, path, selector = opened
        place = (StreamName(stream), RecordId(record), FieldName(path), _connection(connection))
        return WindowQuery(*place, **selector, as_json=True)

    def read_blob_uri(self, uri: str) -> BlobQuery:
        """Read a file's URI."""
        blob, connection = self._open(Kind.BLOB_HANDLE, uri.removeprefix(BLOB))
        return BlobQuery(blob_id(blob), _connection(connection))

    def _seal(self, kind: Kind, payload: list[Any]) -> str:
        return self.sealer.seal(kind, msgspec.json.encode(payload))

    def _open(self, kind: Kind, handle: str) -> list[Any]:
        try:
            return msgspec.json.decode(self.sealer.open(kind, handle), type=list[Any])
        except SealBroken as error:
            raise InvalidResourceUri from error


def stream_of(uri: str) -> tuple[str, str | None]:
    """Read a stream's URI: its name, and the connection if one is given."""
    name, _, query = uri.removeprefix(STREAM).partition("?")
    key, _, connection = query.partition("=")
    if not name or (query and (key != "connection_id" or not connection)):
        raise InvalidResourceUri
    return unquote(name), unquote(connection) if query else None


def record_url(provider_url: str, ref: RecordRef) -> str:
    """Write a record's address on the REST surface."""
    where = f"{provider_url}{record_path(ref.stream, ref.record_id)}"
    if ref.connection_id is None:
        return where
    return f"{where}?connection_id={quoted_name(ref.connection_id)}"


def _fits(connection_id: str) -> bool:
    return (
        format_result_id(RecordRef(ConnectionId(connection_id), StreamName("s"), RecordId("r"))) is not None
    )


def _connection(value: str | None) -> ConnectionId | None:
    return None if value is None else ConnectionId(value)
