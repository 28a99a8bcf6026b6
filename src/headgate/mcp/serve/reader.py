"""The parts that every tool needs: the port it reads through, the server's address, and the ids and URIs of things.

A handle is sealed: clients cannot read it, and it only names a thing; it never authorises. A read that starts
from one is decided by the resource server like any other.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from headgate.errors import InvalidResourceUri, InvalidResultId, SealBroken
from headgate.model.ids import (
    ConnectionId,
    FieldName,
    RecordId,
    RecordRef,
    StreamName,
    blob_id,
    digest_of_key,
    format_result_id,
    parse_result_id,
)
from headgate.model.query import BlobQuery, WindowQuery
from headgate.model.sealed import Kind, Sealer
from headgate.model.wire import ChildrenBody, HitBody, RecordBody
from headgate.reading.links import quoted_name, record_path
from headgate.reading.port import ReadAnswer, ResourceServer
from headgate.text.ladder import Handles, Known, Lengths, Windows
from headgate.text.writing import UNTRUSTED, size

RECORD = "pdpp://record/"
WINDOW = "pdpp://field-window/"
STREAM = "pdpp://stream/"
BLOB = "pdpp://blob/"
#: A longer id is printed as a handle: 25 ids of this size leave space for titles in the text of a page.
ID_BYTES = 160
_URL_BYTES = 300
#: A longer key is not put into a handle whole.
_KEY_BYTES = 64
_BEGINNING_BYTES = 16
_KNOWN = 10_000
_UNKNOWN = (
    "The pdpp://record URI is not one that this server gave, or it is from before a restart: "
    "repeat the search or the query that printed it."
)
#: Blanks that are lost, doubled or changed when a line is copied, and the mark that stands before an id in a line.
_FRAGILE = re.compile(r"^\s|\s$|\s\s|[^\S ]| id=")


class KnownKeys:
    """The long keys that were printed last, for a port that cannot find a key by its digest: bounded."""

    def __init__(self, limit: int = _KNOWN) -> None:
        self._by_digest: OrderedDict[RecordRef, RecordId] = OrderedDict()
        self._limit = limit

    def add(self, short: RecordRef, key: RecordId) -> None:
        """Remember the whole key of a reference that has only its beginning and its digest."""
        self._by_digest[short] = key
        self._by_digest.move_to_end(short)
        if len(self._by_digest) > self._limit:
            self._by_digest.popitem(last=False)

    def whole(self, short: RecordRef) -> RecordRef:
        key = self._by_digest.get(short)
        if key is None:
            raise InvalidResourceUri
        return RecordRef(short.connection_id, short.stream, key)


@dataclass(frozen=True, slots=True)
class HandleMaker:
    """Writes and reads handles with one key ring.

    Instead of a long key a handle holds its beginning and its digest, by which the resource server finds it: any
    process with the same key ring reads what another one wrote. With ``known`` the key is looked
    up in this process instead, because another resource server finds no record by a digest.
    """

    sealer: Sealer
    known: KnownKeys | None = None

    def result_id(self, ref: RecordRef) -> str:
        """Write the id that a model passes on: as plain text if it is short and copying cannot change it, else as a URI."""
        text = None if ref.key_digest is not None else _plain_id(ref)
        if text is not None and size(text) <= ID_BYTES:
            return text
        uri = self.record_uri(ref)
        # The names of the connection and the stream can be the long part; a handle does not shorten those.
        return text if text is not None and size(text) < size(uri) else uri

    def record_uri(self, ref: RecordRef) -> str:
        return RECORD + self._seal(Kind.RECORD_HANDLE, self._place(ref))

    def window_uri(self, ref: RecordRef, field_path: str, selector: Mapping[str, Any]) -> str:
        """Name a window of a field by a URI."""
        return WINDOW + self._seal(Kind.WINDOW_HANDLE, [self._place(ref), field_path, dict(selector)])

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
        return self._ref(self._open(Kind.RECORD_HANDLE, handle))

    def read_window_uri(self, uri: str) -> WindowQuery:
        match self._open(Kind.WINDOW_HANDLE, uri.removeprefix(WINDOW)):
            case [place, str(path), selector] if isinstance(selector, dict):
                ref = self._ref(place)
                chosen = cast("dict[str, Any]", selector)
                key = (ref.stream, ref.record_id, FieldName(path), ref.connection_id)
                return WindowQuery(*key, **chosen, as_json=True, key_digest=ref.key_digest)
            case _:
                raise InvalidResourceUri

    def read_blob_uri(self, uri: str) -> BlobQuery:
        """Read a file's URI."""
        match self._open(Kind.BLOB_HANDLE, uri.removeprefix(BLOB)):
            case [str(blob), str() | None as connection]:
                return BlobQuery(blob_id(blob), _connection(connection))
            case _:
                raise InvalidResourceUri

    def _place(self, ref: RecordRef) -> list[Any]:
        """Write which record it is; of a long key the beginning and the digest."""
        short = ref
        if ref.key_digest is None and size(ref.record_id) > _KEY_BYTES:
            digest = digest_of_key(ref.record_id)
            short = RecordRef(ref.connection_id, ref.stream, _beginning(ref.record_id), digest)
            if self.known is not None:
                self.known.add(short, ref.record_id)
        place = [short.connection_id, short.stream, short.record_id]
        return place if short.key_digest is None else [*place, short.key_digest]

    def _ref(self, place: Any) -> RecordRef:
        match place:
            case [str() | None as connection, str(stream), str(record)]:
                return RecordRef(_connection(connection), StreamName(stream), RecordId(record))
            case [str() | None as connection, str(stream), str(beginning), bytes(digest)]:
                short = RecordRef(_connection(connection), StreamName(stream), RecordId(beginning), digest)
                return short if self.known is None else self.known.whole(short)
            case _:
                raise InvalidResourceUri

    def _seal(self, kind: Kind, payload: list[Any]) -> str:
        return self.sealer.seal(kind, msgspec.msgpack.encode(payload))

    def _open(self, kind: Kind, handle: str) -> list[Any]:
        try:
            return msgspec.msgpack.decode(self.sealer.open(kind, handle), type=list[Any])
        except (SealBroken, msgspec.MsgspecError) as error:
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


def _plain_id(ref: RecordRef) -> str | None:
    """Write an id as text; None if it cannot be written, or not copied."""
    text = format_result_id(ref)
    if text is not None and " " not in text and text.isascii():
        return text
    if text is None and ref.connection_id is not None and not _fits(ref.connection_id):
        # Only the connection does not fit into an id: it is printed beside the id.
        text = format_result_id(RecordRef(None, ref.stream, ref.record_id))
    return text if text is not None and not _FRAGILE.search(text) else None


def _beginning(key: RecordId) -> RecordId:
    return RecordId(key.encode()[:_BEGINNING_BYTES].decode(errors="ignore"))


def _fits(connection_id: str) -> bool:
    return (
        format_result_id(RecordRef(ConnectionId(connection_id), StreamName("s"), RecordId("r"))) is not None
    )


def _connection(value: str | None) -> ConnectionId | None:
    return None if value is None else ConnectionId(value)


class Reader(msgspec.Struct, frozen=True):
    """The parts that serve one access; made for a call, or for a process on stdio."""

    port: ResourceServer
    handles: HandleMaker
    #: The resource server's address as clients know it, without a slash at its end.
    provider_url: str
    #: The id of the request, where it has one before it is answered.
    request_id: str | None = None
    #: What the resource server reads in windows. Answers offer no other windows.
    windows: Windows = Windows.JSON

    def naming(self, ref: RecordRef) -> Handles:
        return Handles(
            self.handles.result_id(ref),
            lambda path: self.handles.window_uri(ref, path, {"offset_chars": 0}),
            lambda blob: self.handles.blob_uri(blob, ref.connection_id),
            self.windows,
        )

    def url(self, ref: RecordRef) -> str:
        """Return a record's address."""
        return record_url(self.provider_url, ref)

    def short_url(self, ref: RecordRef) -> str:
        """Return a record's address, or its id where the address costs more than it is worth: both open the record."""
        url = self.url(ref)
        return url if len(url) <= _URL_BYTES else self.handles.result_id(ref)

    def structured(self, data: Mapping[str, Any] | msgspec.Raw, answer: ReadAnswer) -> dict[str, Any]:
        """Put a body into the structure that most answers share."""
        return {"data": data, "provider_url": self.provider_url, "request_id": answer.request_id}

    def fenced(self, data: Mapping[str, Any] | msgspec.Raw, answer: ReadAnswer) -> dict[str, Any]:
        """Put a body that holds record text into the structure, and say there what it is."""
        return {**UNTRUSTED, **self.structured(data, answer)}


def ref_of(row: RecordBody) -> RecordRef:
    return _ref(row.get("connection_id"), row.get("stream"), row.get("id"))


def ref_of_hit(hit: HitBody) -> RecordRef:
    """Read which record a hit is; its stream is empty if it is none."""
    return _ref(hit.get("connection_id"), hit.get("stream"), hit.get("record_key"))


def _ref(connection: Any, stream: Any, record: Any) -> RecordRef:
    # Another server can leave out any of them.
    return RecordRef(
        ConnectionId(connection) if isinstance(connection, str) else None,
        StreamName("" if stream is None else str(stream)),
        RecordId("" if record is None else str(record)),
    )


def take_lengths(row: RecordBody) -> Lengths:
    """Take the true lengths of cut texts out of a row, where the port put them."""
    previews = row.pop("previews", {})
    return {
        path: Known(known["size_chars"], known.get("digest"), known.get("mime_type"))
        for path, known in previews.items()
    }


def expanded_of(row: RecordBody) -> dict[str, RecordBody | ChildrenBody | None]:
    """Return the related records of a row; a relation that is written in no known way has none."""
    expanded: Any = row.get("expanded")
    if not isinstance(expanded, dict):
        return {}
    relations = cast("dict[str, Any]", expanded)
    return {
        name: cast("RecordBody | ChildrenBody", value) if isinstance(value, dict) else None
        for name, value in relations.items()
    }


def related_rows(related: RecordBody | ChildrenBody | None) -> list[RecordBody]:
    """Return the records of a relation to many, or the one of a relation to one."""
    if related is None:
        return []
    if related.get("object") == "list":
        return cast("ChildrenBody", related).get("data", [])
    return [cast("RecordBody", related)]
