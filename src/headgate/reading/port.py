"""The port of the resource server: what every surface reads through.

An instance is bound to one access, so no method takes a token. There are two implementations: in process,
and over HTTP against any resource server. The implementation decides, and it alone touches rows. The types
of the bodies are in headgate.model.wire, which ``text`` can import too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, RequestId, StreamName
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    ListQuery,
    RecordQuery,
    SchemaQuery,
    SearchQuery,
    WindowQuery,
)

#: The preferences (RFC 7240) for ``preview_chars`` and ``line_chars``, and for ``page_bytes``, over HTTP; servers
#: ignore what they do not know.
PREVIEW_CHARS = "preview-chars"
PAGE_BYTES = "page-bytes"
#: The preference for both words and meaning where a search is by words, on the terms of `SearchQuery.or_words`.
BY_BOTH = "by-both"
#: The header in which a server names the types of fields that it reads in windows, beyond those of the protocol.
WINDOW_TYPES = "field-window-types"

Body = dict[str, Any]
_read_body = msgspec.json.Decoder(Body).decode


class RecordRow(msgspec.Struct):
    """A record's envelope. What is unset is not there."""

    object: str | msgspec.UnsetType
    id: RecordId
    stream: StreamName | msgspec.UnsetType
    connection_id: ConnectionId
    connector_key: ConnectorKey | msgspec.UnsetType
    display_name: str | msgspec.UnsetType
    data: msgspec.Raw
    emitted_at: str | msgspec.UnsetType
    #: What the MCP tools add: the id by which ``fetch`` opens the record.
    fetch_id: str | msgspec.UnsetType = msgspec.UNSET
    previews: Body | msgspec.UnsetType = msgspec.UNSET
    expanded: Body | msgspec.UnsetType = msgspec.UNSET
    #: Which fields say when, who, how much and what; of a single record, for a surface that shortens texts.
    line_fields: Body | msgspec.UnsetType = msgspec.UNSET
    links: Body | msgspec.UnsetType = msgspec.UNSET
    meta: Body | msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


Row = RecordRow | Body


class ReadAnswer(msgspec.Struct, frozen=True):
    """One answered read: the JSON body that REST sends, and the id it is logged under."""

    #: The body as UTF-8 JSON. REST sends these very bytes.
    content: bytes
    request_id: RequestId
    #: What the body was written from, where that is at hand: rows as they are made here. Not to be changed.
    document: Row | None = None

    def body(self) -> Any:
        """Decode the body; every call makes a new value, which the caller may change.

        It is one of the types in headgate.model.wire, by the method that answered: the caller annotates it.
        Record ``data`` members hold granted and selected fields only.
        """
        return _read_body(self.content)


#: Names the fields of a record that a surface shows; a refusal that it raises is logged in their place.
ShowRecord = Callable[[ReadAnswer], Collection[str]]


@dataclass(frozen=True, slots=True)
class BlobAnswer:
    """A file that a visible record refers to."""

    blob_id: BlobId
    connection_id: ConnectionId
    mime_type: str
    size_bytes: int
    #: The bytes that were asked for, in pieces. Read to its end, or closed with ``aclose()``.
    content: AsyncIterator[bytes]
    #: Gives other bytes of the same file: from a start, up to but without an end.
    read: Callable[[int, int], AsyncIterator[bytes]]
    request_id: RequestId


class ResourceServer(Protocol):
    """The reads, for one access. Each failure is a HeadgateError whose code and data are the wire's.

    Error data that callers rely on: ``available_connections`` (with ``available_connection_count``,
    ``available_connections_truncated``, ``available_connections_omitted`` when it was cut at twelve) and
    ``retry_with`` on `AmbiguousConnection` and `AmbiguousSchemaDetail`.
    """

    async def schema(self, query: SchemaQuery) -> ReadAnswer:
        """Describe what this access may read and ask: the ``schema`` document, compact or full.

        The compact document has ``detail``, ``connector_count``, ``stream_count`` and for each stream a
        flag string per field. A stream or connection that is not there gives no connectors, not an error.
        """
        ...

    async def streams(self, connection_id: ConnectionId | None = None) -> ReadAnswer:
        """List the streams of this access: one row for each stream of each connection, with its size."""
        ...

    async def stream(self, name: StreamName, connection_id: ConnectionId | None = None) -> ReadAnswer:
        """Describe one stream, projected through the grant: the ``stream_metadata`` document."""
        ...

    async def records(
        self,
        query: ListQuery | ChangesQuery,
        *,
        preview_chars: int | None = None,
        page_bytes: int | None = None,
    ) -> ReadAnswer:
        """Read a page of a stream, or what changed in it: the ``list`` document.

        Rows are merged over the granted connections in one order, under one limit and one cursor. A
        ``ChangesQuery`` gives records and tombstones, ``next_cursor`` inside a session and
        ``next_changes_since`` on its last page. Limits above the most allowed are cut, and
        ``meta.warnings`` says so.

        With ``preview_chars`` longer texts in ``data`` are cut to that many characters, and the row has
        ``previews: {field: {size_chars, digest}}`` for each text that was cut (``digest`` is the SHA-256
        of the whole text, in hex).

        With ``page_bytes`` the page is in a short form for models, and ends, and its cursor goes on, before its rows
        take more than that. What all rows share stands once: ``stream``, ``sources`` (connections with their
        connectors and labels), and in ``all`` the values that every row has; fields without a value are left out.

        Raises:
            StreamNotAllowed, FieldNotGranted, UnknownField, InsufficientScope, ConnectionNotFound,
            InvalidCursor, InvalidSort, InvalidExpand, InvalidFilter, InvalidArgument, CursorExpired,
            AmbiguousConnection.
        """
        ...

    async def record(
        self, query: RecordQuery, *, preview_chars: int | None = None, show: ShowRecord | None = None
    ) -> ReadAnswer:
        """Read one record: its envelope with ``links`` and ``meta``; ``preview_chars`` as in `records`.

        With ``preview_chars`` the envelope also has ``line_fields``: which fields say when, who, how much and what.

        A query with ``key_digest`` has only the beginning of the key; the server finds the key among those that
        the access may read. A server that knows nothing of such queries is not sent any.

        A surface that leaves out fields of the record passes ``show``, which is called with the answer
        before it is logged.
        """
        ...

    async def window(self, query: WindowQuery) -> ReadAnswer:
        """Read a part of one text field: the ``field_window`` document.

        ``field`` holds ``path``, ``type``, ``size_chars`` and ``digest`` (``sha256:`` and hex);
        ``window`` holds the text, its place, ``next_offset_chars``, ``previous_offset_chars``, and the
        sealed ``next_cursor`` and ``previous_cursor``, which end when the field's text changes.
        An object or a list that was asked for as JSON has the type ``json``. ``key_digest`` as in `record`.

        Raises:
            FieldNotGranted, NotFound, FieldNotFound, FieldNotText, QueryNotFound, InvalidWindow,
            InvalidFieldPath, InvalidCursor, CursorExpired, AmbiguousConnection.
        """
        ...

    async def aggregate(self, query: AggregateQuery, *, page_bytes: int | None = None) -> ReadAnswer:
        """Compute a number, or one for each group, over all granted connections: ``aggregation``.

        With ``page_bytes`` the document is in a short form for models, without members that say nothing; the number of
        groups does not depend on it.
        """
        ...

    async def search(
        self, query: SearchQuery, *, line_chars: int | None = None, page_bytes: int | None = None
    ) -> ReadAnswer:
        """Find records by words: the ``list`` of ``search_result``.

        Hits carry no content of their record but snippets. With ``line_chars`` a hit also has ``line``:
        what its record is, of fields that are each cut to that many characters; a server that knows no
        such option leaves it out. ``evidence_excerpts[].read`` says where in the field the match is.
        With ``page_bytes`` too, hits are in a short form for models (``read`` says where the text goes on), and the
        page ends, and its cursor goes on, before they take more than that.
        """
        ...

    async def blob(self, query: BlobQuery, *, start: int = 0, end: int | None = None) -> BlobAnswer:
        """Open a file that a visible record refers to through a granted field.

        Raises:
            BlobNotFound: there is none, or no visible record refers to it.
        """
        ...
