"""The resource server in process: every read goes decide, run, draw, disclose; there is no other way to a record.

An instance is bound to one request: who asks, under which id, and through which tool or route.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import CoroutineType
from typing import Any, TypedDict, TypeVarTuple, Unpack

import msgspec
from msgspec.structs import replace

from headgate.audit.journal import ANSWERED, AskedFor, Disclosed, Disclosure, count_records
from headgate.errors import BlobNotFound, HeadgateError, ResourceServerUnreachable
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    ListQuery,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    WindowQuery,
)
from headgate.model.warning import ReadWarning, WarningCode
from headgate.policy.decide import decide_blob
from headgate.reading import records, schema
from headgate.reading.aggregate import aggregate
from headgate.reading.asked_for import asked_for
from headgate.reading.home import CurrentRead, PageForm, ReadableHome, ReadContext, Served, only
from headgate.reading.port import BlobAnswer, ReadAnswer, ShowRecord
from headgate.reading.search import search
from headgate.reading.window import window

_encode = msgspec.json.Encoder().encode
_Asked = TypeVarTuple("_Asked")
#: What of a search is logged at most.
_MOST_LOGGED_CHARS = 500


class LocalResourceServer(msgspec.Struct):
    """The resource server in process, for one request; implements headgate.reading.port.ResourceServer."""

    _home: ReadableHome
    _context: ReadContext

    def schema(self, query: SchemaQuery) -> CoroutineType[Any, Any, ReadAnswer]:
        """Describe what this access may read and ask."""
        return self._answer(schema.schema, query)

    def streams(self, connection_id: ConnectionId | None = None) -> CoroutineType[Any, Any, ReadAnswer]:
        """List the streams of this access."""
        return self._answer(schema.streams, connection_id)

    def connectors(self) -> CoroutineType[Any, Any, ReadAnswer]:
        """List the connectors of this access."""
        return self._answer(schema.connectors)

    def stream(
        self, name: StreamName, connection_id: ConnectionId | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Describe one stream, projected through the grant."""
        return self._answer(schema.stream, name, connection_id)

    def records(
        self,
        query: ListQuery | ChangesQuery,
        *,
        preview_chars: int | None = None,
        page_bytes: int | None = None,
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Read a page of a stream, or what changed in it."""
        if isinstance(query, ChangesQuery):
            return self._answer(records.changes, query, PageForm(preview_chars, page_bytes))
        return self._answer(records.page, query, PageForm(preview_chars, page_bytes))

    def record(
        self, query: RecordQuery, *, preview_chars: int | None = None, show: ShowRecord | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        return self._answer(records.record, query, preview_chars, show)

    def window(self, query: WindowQuery) -> CoroutineType[Any, Any, ReadAnswer]:
        """Read a part of one text field."""
        return self._answer(window, query)

    def aggregate(
        self, query: AggregateQuery, *, page_bytes: int | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Compute a number, or one for each group."""
        phrase = None if query.extract is None else f'"{query.extract.after}"'
        words = " ".join(filter(None, (query.q, phrase)))
        return self._answer(aggregate, query, page_bytes, words=self._logged(words or None))

    def search(
        self, query: SearchQuery, *, line_chars: int | None = None, page_bytes: int | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Find records by words."""
        return self._answer(search, query, line_chars, page_bytes, words=self._logged(query.q))

    async def blob(self, query: BlobQuery, *, start: int = 0, end: int | None = None) -> BlobAnswer:
        """Open a file that a visible record refers to."""
        home, access = self._home, self._context.access
        try:
            await self._left()
            allowance = (await home.decisions(access)).allowance
            decision = decide_blob(allowance, query)
            blobs = await home.store.blobs(decision.plan)
            file = only(allowance, decision.scopes, blobs, lambda: BlobNotFound(param="blob_id"))
            await home.budgets.take(access, 1)
        except HeadgateError as refusal:
            await self._refuse(refusal, query)
            raise
        size = (file.size_bytes if end is None else end) - start
        disclosed = Disclosed(file.connection_id, file.stream, (file.field,), (file.record_id,))
        self._disclose(ANSWERED, size, (disclosed,))
        return BlobAnswer(
            blob_id=file.id,
            connection_id=file.connection_id,
            mime_type=file.mime_type,
            size_bytes=file.size_bytes,
            content=home.store.read_blob(file.id, start=start, end=end),
            read=lambda start, end: home.store.read_blob(file.id, start=start, end=end),
            request_id=self._context.request_id,
        )

    async def _answer(
        self,
        serve: Callable[[CurrentRead, Unpack[_Asked]], Awaitable[Served]],
        *arguments: *_Asked,
        words: str | msgspec.UnsetType = msgspec.UNSET,
    ) -> ReadAnswer:
        """Answer with as many records as the access may show; this is the one way to a record."""
        home, context = self._home, self._context
        try:
            # Before the read, which would show by its failure what there is.
            most = await self._left()
            cursor: str | None = getattr(arguments[0], "cursor", None) if arguments else None
            if cursor is not None:
                await home.sealer.fetch(cursor)
            read = CurrentRead(home, context, await home.decisions(context.access), most)
            served = await serve(read, *arguments)
            if most is not None:
                count = count_records(served.shown)
                taken = await home.budgets.take(context.access, count)
                if taken < count:
                    # Other requests took the rest meanwhile: the cursor must follow the last record that is shown.
                    read = CurrentRead(home, context, await home.decisions(context.access), taken)
                    served = await serve(read, *arguments)
        except HeadgateError as refusal:
            await self._refuse(refusal, *arguments[:1], words=words)
            raise
        content = served.content or _encode(served.body)
        self._disclose(ANSWERED, len(content), served.shown, words)
        return ReadAnswer(content, context.request_id, served.body)

    async def _refuse(
        self, refusal: HeadgateError, query: object = None, words: str | msgspec.UnsetType = msgspec.UNSET
    ) -> None:
        """Log a refusal, with what was asked for of what the home has."""
        asked: AskedFor | msgspec.UnsetType = msgspec.UNSET
        with suppress(HeadgateError):
            asked = asked_for(await self._home.catalog(), query) or msgspec.UNSET
        self._disclose(refusal.code, words=words, asked=asked)

    def _logged(self, words: str | None) -> str | msgspec.UnsetType:
        """Return what the log holds of the words of a query, if the owner wants it to."""
        if words is None or not self._home.logs_queries:
            return msgspec.UNSET
        return words[:_MOST_LOGGED_CHARS]

    async def _left(self) -> int | None:
        """Return how many records may be shown; most grants have no limit, and their requests do not pay for it."""
        access = self._context.access
        return await self._home.budgets.left(access) if access.daily_records else None

    def _disclose(
        self,
        outcome: str,
        size_bytes: int = 0,
        parts: tuple[Disclosed, ...] = (),
        words: str | msgspec.UnsetType = msgspec.UNSET,
        asked: AskedFor | msgspec.UnsetType = msgspec.UNSET,
    ) -> None:
        access = self._context.access
        who = (access.token_kind, access.client_id, access.grant_ids, access.package_id)
        if self._context.is_look:
            who = (TokenKind.OWNER, None, (), None)
        self._home.discloser.write(
            Disclosure(
                self._home.clock(),
                self._context.request_id,
                *who,
                self._context.via,
                outcome,
                size_bytes,
                parts,
                # The owner knows what the owner looked for.
                msgspec.UNSET if who[1] is None else words,
                asked=asked,
            )
        )


_BY_WORDS = ReadWarning(
    WarningCode.COMPATIBILITY_FALLBACK,
    "Searched by words: search by meaning needs the server of this home, which does not run (headgate serve).",
    param="mode",
)


class LocalWithoutModel(LocalResourceServer):
    """The resource server in process, without a model."""

    _token: str
    #: Returns the address of the server that runs on the home; None if none does.
    _served_address: Callable[[], str | None]

    async def search(
        self, query: SearchQuery, *, line_chars: int | None = None, page_bytes: int | None = None
    ) -> ReadAnswer:
        """Find records by words here, and by meaning through the server of the home."""
        form = _Form(line_chars=line_chars, page_bytes=page_bytes)
        if query.mode is SearchMode.LEXICAL:
            return await super().search(query, **form)
        address = self._served_address()
        if address is not None:
            with suppress(ResourceServerUnreachable):
                return await _search_at(address, self._token, query, form)
        # Both was only the default: nothing takes the place of what was asked for.
        missing = () if query.or_words else (_BY_WORDS,)
        context = replace(self._context, warnings=(*self._context.warnings, *missing))
        by_words = LocalResourceServer(self._home, context)
        return await by_words.search(replace(query, mode=SearchMode.LEXICAL, or_words=False), **form)


class _Form(TypedDict):
    """In which form hits are wanted."""

    line_chars: int | None
    page_bytes: int | None


async def _search_at(address: str, token: str, query: SearchQuery, form: _Form) -> ReadAnswer:
    # Only here: other reads need no HTTP client.
    from headgate.reading.remote import RemoteResourceServer, http_client  # noqa: PLC0415 - slow to import

    async with http_client(token) as client:
        return await RemoteResourceServer(address, client).search(query, **form)
