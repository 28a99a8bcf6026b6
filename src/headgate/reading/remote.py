"""The resource server over HTTP: the same port, against any server that speaks the protocol.

It forwards and decides nothing. A refusal comes back with the other server's own code; nothing is tried
again, and nothing but the one token is ever sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import quote

import httpx2
import msgspec
from msgspec.structs import replace

from headgate.errors import (
    AnswerNotUnderstood,
    HeadgateError,
    InvalidCursor,
    RemoteRefused,
    ResourceLimit,
    ResourceServerUnreachable,
    Unsupported,
)
from headgate.model.ids import ConnectionId, RecordId, RequestId, StreamName
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Extraction,
    ListQuery,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    WindowQuery,
)
from headgate.model.wire import RecordBody
from headgate.policy.decide import window_of
from headgate.reading import links
from headgate.reading.port import (
    BY_BOTH,
    PAGE_BYTES,
    PREVIEW_CHARS,
    WINDOW_TYPES,
    BlobAnswer,
    Body,
    ReadAnswer,
    ShowRecord,
)
from headgate.reading.window import part_of_json, window_body
from headgate.text.ladder import Windows

MAX_ANSWER_BYTES = 32 * 1024 * 1024
_TIMEOUT_SECONDS = 60.0
_OK = 200
#: What a server answers for a route or a method that it does not have.
_NO_ROUTE = frozenset({404, 405, 501})
#: What a server answers when the token itself is not accepted; it refuses every other read as well.
_TOKEN_REFUSED = frozenset({401, 403})
_PIECE = 64 * 1024
#: Where a resource server describes itself (RFC 9728).
_METADATA = "/.well-known/oauth-protected-resource"
_Form = TypeVar("_Form", bound=msgspec.Struct)


def http_client(token: str) -> httpx2.AsyncClient:
    """Make the client for one token; nothing in the environment changes where it goes."""
    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
        timeout=_TIMEOUT_SECONDS,
    )


class _Schema(msgspec.Struct):
    connectors: list[dict[str, msgspec.Raw]]


class _List(msgspec.Struct):
    data: list[dict[str, msgspec.Raw]]


class _Record(msgspec.Struct):
    data: dict[str, msgspec.Raw]


class _WindowPlace(msgspec.Struct):
    text: str
    start_chars: int
    end_chars: int
    limit_chars: int
    complete: bool
    #: Unset if the server has no cursors into texts.
    next_cursor: str | msgspec.UnsetType | None = msgspec.UNSET
    previous_cursor: str | msgspec.UnsetType | None = msgspec.UNSET


class _Window(msgspec.Struct):
    stream: str
    record_id: str
    window: _WindowPlace


class _Number(msgspec.Struct):
    value: msgspec.Raw


class _Groups(msgspec.Struct):
    groups: list[dict[str, msgspec.Raw]]


class _Narrowed(msgspec.Struct, rename={"in_fields": "in"}):
    """What an answer says of the words and fields that it is about."""

    q: str | None = None
    in_fields: tuple[str, ...] | None = None
    extract: Extraction | None = None


class _NarrowedSearch(msgspec.Struct):
    data: list[msgspec.Raw]
    meta: _Narrowed = msgspec.field(default_factory=_Narrowed)


class _Offer(msgspec.Struct):
    supported: bool = False


class _Offers(msgspec.Struct):
    semantic_retrieval: _Offer = msgspec.field(default_factory=_Offer)
    hybrid_retrieval: _Offer = msgspec.field(default_factory=_Offer)


class _Metadata(msgspec.Struct):
    capabilities: _Offers


class _Source(msgspec.Struct):
    id: str = ""


class _Connector(msgspec.Struct):
    source: _Source = msgspec.field(default_factory=_Source)


class _Connectors(msgspec.Struct):
    data: tuple[_Connector, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteResourceServer:
    """Another resource server, for the token that the client carries."""

    base_url: str
    client: httpx2.AsyncClient
    #: Whether the server is asked for windows into objects and lists, which the protocol does not have.
    as_json: bool = False

    async def schema(self, query: SchemaQuery) -> ReadAnswer:
        """Ask ``/v1/schema``."""
        return await self._read(links.schema_link(query), _Schema)

    async def streams(self, connection_id: ConnectionId | None = None) -> ReadAnswer:
        """Ask ``/v1/streams``."""
        return await self._read(links.connection_link("/v1/streams", connection_id), _List)

    async def stream(self, name: StreamName, connection_id: ConnectionId | None = None) -> ReadAnswer:
        return await self._get(links.connection_link(links.stream_path(name), connection_id))

    async def records(
        self,
        query: ListQuery | ChangesQuery,
        *,
        preview_chars: int | None = None,
        page_bytes: int | None = None,
    ) -> ReadAnswer:
        """Ask for a page; a server that does not know the preference sends whole texts, which the caller shortens."""
        return await self._read(links.list_link(query), _List, prefer=_preferring(preview_chars, page_bytes))

    async def record(
        self, query: RecordQuery, *, preview_chars: int | None = None, show: ShowRecord | None = None
    ) -> ReadAnswer:
        """Ask for one record; the other server keeps the log."""
        answer = await self._read(links.record_link(query), _Record, prefer=_preferring(preview_chars))
        if show is not None:
            show(answer)
        return answer

    async def window(self, query: WindowQuery) -> ReadAnswer:
        """Ask for a window into a text; only the window travels.

        From a server that has no windows into objects and lists the whole field is read, and the window cut here.
        """
        try:
            answer = await self._get(links.window_link(replace(query, as_json=self.as_json)))
        except RemoteRefused as refusal:
            cut_here = await self._window_into_json(query) if query.as_json and not self.as_json else None
            if cut_here is None:
                raise refusal from None
            return cut_here
        place = _understood(answer, _Window).window
        if query.cursor is not None and place.next_cursor is msgspec.UNSET is place.previous_cursor:
            # It ignored the cursor, and sent the beginning of the text again.
            raise InvalidCursor(
                "This resource server has no cursors into texts.",
                param="cursor",
                hint="Go on with offset_chars.",
            )
        return answer

    async def _window_into_json(self, query: WindowQuery) -> ReadAnswer | None:
        """Read an object or a list whole, and cut a window of its JSON; None if it is neither, or cannot be read."""
        if query.cursor is not None:
            return None
        whole = RecordQuery(query.stream, query.record_id, query.connection_id, (query.field,))
        try:
            answer = await self.record(whole)
        except RemoteRefused:
            return None
        row: RecordBody = answer.body()
        value: Any = (row.get("data") or {}).get(query.field)
        if not isinstance(value, dict | list):
            return None
        window = window_of(query)
        part = part_of_json(cast("Any", value), window, row.get("connection_id") or ConnectionId(""))
        origin: Body = {"connection_id": part.connection_id} if part.connection_id else {}
        body = window_body(query, window.limit_chars, part, origin)
        return ReadAnswer(msgspec.json.encode(body), answer.request_id)

    async def windows(self) -> Windows:
        """Ask which fields the server reads in windows.

        The question names no field, so that a server with the route refuses it for that, or for the stream.
        One that cannot be reached, or does not say, is taken at the protocol's word: texts have windows.
        """
        path = links.window_path(StreamName("-"), RecordId("-"))
        try:
            answer = await self._send(self.client.build_request("GET", self.base_url + path))
        except HeadgateError:
            return Windows.TEXT
        await answer.aclose()
        if answer.status_code in _NO_ROUTE:
            return Windows.NONE
        return Windows.JSON if "json" in answer.headers.get(WINDOW_TYPES, "") else Windows.TEXT

    async def search_modes(self) -> tuple[SearchMode, ...]:
        """Ask which modes of search the server has; by words, where its metadata names no other."""
        try:
            offers = _understood(await self._get(_METADATA), _Metadata).capabilities
        except HeadgateError:
            return (SearchMode.LEXICAL,)
        offered = {
            SearchMode.LEXICAL: True,
            SearchMode.SEMANTIC: offers.semantic_retrieval.supported,
            SearchMode.HYBRID: offers.hybrid_retrieval.supported,
        }
        return tuple(mode for mode, is_offered in offered.items() if is_offered)

    async def source_ids(self) -> tuple[str, ...]:
        """Ask which sources the token may read; none where the server does not say."""
        try:
            rows = _understood(await self._get("/v1/connectors"), _Connectors).data
        except HeadgateError:
            return ()
        return tuple(row.source.id for row in rows)

    async def bearer(self) -> Mapping[str, Any]:
        """Ask what the token is; empty when the server does not say, or refuses the token itself."""
        try:
            answer = await self.schema(SchemaQuery())
        except RemoteRefused as error:
            if error.status in _TOKEN_REFUSED:
                return {}
            raise
        return _bearer(answer.content)

    async def aggregate(self, query: AggregateQuery, *, page_bytes: int | None = None) -> ReadAnswer:
        """Ask for a number; one of all records is none of those that hold some words."""
        prefer = _preferring(None, page_bytes)
        answer = await self._read(links.aggregate_link(query), _Number, _Groups, prefer=prefer)
        if query.q is not None or query.extract is not None:
            about = _understood(answer, _Narrowed)
            if (about.q, about.in_fields, about.extract) != (query.q, query.in_fields, query.extract):
                raise Unsupported(
                    "This resource server counts no words and extracts no values.",
                    param="extract" if query.q is None else "q",
                    hint="Leave q, in and extract out: search shows the records.",
                )
        return answer

    async def search(
        self, query: SearchQuery, *, line_chars: int | None = None, page_bytes: int | None = None
    ) -> ReadAnswer:
        """Ask for hits; a server that does not know the preference sends no titles."""
        path = links.search_link(query)
        prefer = _preferring(line_chars, page_bytes, by_both=query.or_words)
        try:
            answer = await self._read(path, _List, prefer=prefer)
        except RemoteRefused as error:
            if error.code == Unsupported.code and query.mode is not SearchMode.LEXICAL:
                # The mode is part of the address there, so that the server cannot name a parameter.
                error.param = error.param or "mode"
            raise
        if query.in_fields is not None or not query.limit:
            about = _understood(answer, _NarrowedSearch)
            if about.meta.in_fields != query.in_fields:
                raise Unsupported(
                    "This resource server searches all fields at once.", param="in", hint="Leave in out."
                )
            if about.data and not query.limit:
                raise Unsupported(
                    "This resource server shows hits whenever it counts.", param="limit", hint="Pass a limit."
                )
        return answer

    async def blob(self, query: BlobQuery, *, start: int = 0, end: int | None = None) -> BlobAnswer:
        """Open a file."""
        path = links.connection_link(f"/v1/blobs/{quote(query.blob_id, safe='')}", query.connection_id)
        answer = await self._open(path, start, end)
        # Of a part, the header with the range holds the length of the whole.
        whole = answer.headers.get("content-range", "").rpartition("/")[2]
        length = whole or answer.headers.get("content-length", "0")
        return BlobAnswer(
            blob_id=query.blob_id,
            connection_id=query.connection_id or ConnectionId(""),
            mime_type=answer.headers.get("content-type", "application/octet-stream"),
            size_bytes=int(length) if length.isdigit() else 0,
            content=_pieces(answer),
            read=lambda start, end: self._part(path, start, end),
            request_id=_request_id(answer.headers),
        )

    async def _part(self, path: str, start: int, end: int) -> AsyncGenerator[bytes]:
        async for piece in _pieces(await self._open(path, start, end)):
            yield piece

    async def _open(self, path: str, start: int, end: int | None) -> httpx2.Response:
        ranged = (
            {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        )
        answer = await self._send(self.client.build_request("GET", self.base_url + path, headers=ranged))
        if answer.status_code not in {_OK, 206}:
            raise _refusal(answer.status_code, await _whole(answer), answer.headers)
        return answer

    async def _read(
        self, path: str, *forms: type[msgspec.Struct], prefer: Mapping[str, str] | None = None
    ) -> ReadAnswer:
        answer = await self._get(path, prefer)
        _understood(answer, *forms)
        return answer

    async def _get(self, path: str, prefer: Mapping[str, str] | None = None) -> ReadAnswer:
        answer = await self._send(self.client.build_request("GET", self.base_url + path, headers=prefer))
        content = await _whole(answer)
        if answer.status_code != _OK:
            raise _refusal(answer.status_code, content, answer.headers)
        return ReadAnswer(content, _request_id(answer.headers))

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self.client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise ResourceServerUnreachable from error


def _preferring(chars: int | None, page_bytes: int | None = None, *, by_both: bool = False) -> dict[str, str]:
    """Write the header that asks for short texts and short pages, and for hits by words and by meaning."""
    wanted = {PREVIEW_CHARS: chars, PAGE_BYTES: page_bytes, BY_BOTH: 1 if by_both else None}
    preferences = [f"{name}={number}" for name, number in wanted.items() if number is not None]
    return {"Prefer": ", ".join(preferences)} if preferences else {}


def _understood(answer: ReadAnswer, *forms: type[_Form]) -> _Form:
    """Read an answer in one of the forms that the protocol gives it."""
    for form in forms:
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(answer.content, type=form)
    raise AnswerNotUnderstood(data={"request_id": answer.request_id} if answer.request_id else None)


async def _whole(answer: httpx2.Response) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in _pieces(answer):
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            await answer.aclose()
            raise ResourceLimit("The resource server's answer is too large.")
        pieces.append(piece)
    return b"".join(pieces)


async def _pieces(answer: httpx2.Response) -> AsyncGenerator[bytes]:
    try:
        async for piece in answer.aiter_raw(_PIECE):
            yield piece
    except httpx2.HTTPError as error:
        raise ResourceServerUnreachable from error
    finally:
        await answer.aclose()


def _bearer(content: bytes) -> Mapping[str, Any]:
    """Read the member ``bearer`` of a schema document, which some servers wrap in ``data``."""
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
    wrapped: Any = document.get("data")
    inner = cast("dict[str, Any]", wrapped) if isinstance(wrapped, dict) else document
    bearer: Any = document.get("bearer") or inner.get("bearer")
    return cast("dict[str, Any]", bearer) if isinstance(bearer, dict) else {}


def _request_id(headers: Mapping[str, str]) -> RequestId:
    return RequestId(headers.get("request-id", ""))


def _refusal(status: int, content: bytes, headers: Mapping[str, str]) -> RemoteRefused:
    facts: dict[str, Any] = {"request_id": headers["request-id"]} if headers.get("request-id") else {}
    try:
        body: Any = msgspec.json.decode(content)
    except msgspec.MsgspecError:
        body = None
    error: Any = cast("Mapping[str, Any]", body).get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return RemoteRefused(status, {**facts, **cast("dict[str, Any]", error)})
    if isinstance(error, str):
        described = cast("Mapping[str, Any]", body).get("error_description")
        return RemoteRefused(status, {**facts, "type": error, "code": error, "message": described})
    return RemoteRefused(status, {**facts, "message": f"The resource server answered {status}."})
