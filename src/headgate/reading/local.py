"""The resource server in process: every read goes decide, run, draw, disclose; there is no other way to a record.

An instance is bound to one request: who asks, under which id, and through which tool or route.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, TypeVar, TypeVarTuple, Unpack

import msgspec
from msgspec.structs import replace

from headgate.audit.disclose import disclosed
from headgate.errors import BlobNotFound, CursorExpired, HeadgateError, NotFound
from headgate.model.disclosure import ANSWERED, Disclosed, Disclosure, count_records
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId, RecordId, RequestId, StreamName
from headgate.model.instants import DAY_US, iso
from headgate.model.plan import ChangesPlan, PagePlan, SearchPlan
from headgate.model.query import (
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Count,
    ListQuery,
    RecordQuery,
    SchemaQuery,
    SearchQuery,
    WindowQuery,
)
from headgate.model.record import Record
from headgate.model.rows import Changes, FieldWindow, FoundBlob, Page, SearchPage
from headgate.model.warning import (
    ReadWarning,
    budget_reached,
    index_building,
    page_cut,
    records_damaged,
    search_partial,
)
from headgate.policy import cursors, decide as deciding
from headgate.policy.allowance import Allowance, StreamScope
from headgate.policy.choose import ambiguous
from headgate.policy.cursors import Bookmark, ChangesSession, WindowPlace
from headgate.reading import bodies, links, schema
from headgate.reading.port import BlobAnswer, Body, ReadAnswer, Row, ShowRecord
from headgate.reading.schema import stream_facts
from headgate.reading.services import DecisionMemo, ReadableHome, labels_of
from headgate.reading.shown import (
    aggregated_fields,
    cut_children,
    extent_shown,
    fitting,
    hits_shown,
    records_shown,
)
from headgate.reading.turns import draw, size_of
from headgate.text.titles import TITLE_SOURCES

_NONCE_BYTES = 8
_encode = msgspec.json.Encoder().encode
_Asked = TypeVarTuple("_Asked")
_Found = TypeVar("_Found", Record, FieldWindow, FoundBlob)
_Limited = TypeVar("_Limited", ChangesPlan, SearchPlan)
_OneRecord = TypeVar("_OneRecord", RecordQuery, WindowQuery)
#: What of a search is logged at most.
_MOST_LOGGED_CHARS = 500
_NO_KEY = RecordId("\0")  # keys are stored without NUL


class ReadContext(msgspec.Struct, frozen=True):
    """One request: whose, and how it came in."""

    access: Access
    request_id: RequestId
    #: The tool or route, for the log.
    via: str
    #: Warnings of the edge, to stand among those of the answer.
    warnings: tuple[ReadWarning, ...] = ()
    #: The owner looks at what the access would be shown: the read is the owner's in the log.
    is_look: bool = False


class _Served(msgspec.Struct, frozen=True):
    """A body, and what of the records it shows."""

    body: Row
    shown: tuple[Disclosed, ...] = ()
    #: The body as JSON, where it was encoded already.
    content: bytes | None = None


class LocalResourceServer(msgspec.Struct):
    """The resource server in process, for one request; implements headgate.reading.port.ResourceServer."""

    _services: ReadableHome
    _context: ReadContext

    def schema(self, query: SchemaQuery) -> CoroutineType[Any, Any, ReadAnswer]:
        """Describe what this access may read and ask."""
        return self._answer(self._schema, query)

    def streams(self, connection_id: ConnectionId | None = None) -> CoroutineType[Any, Any, ReadAnswer]:
        """List the streams of this access."""
        return self._answer(self._streams, connection_id)

    def connectors(self) -> CoroutineType[Any, Any, ReadAnswer]:
        """List the connectors of this access."""
        return self._answer(self._connectors)

    def stream(
        self, name: StreamName, connection_id: ConnectionId | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Describe one stream, projected through the grant."""
        return self._answer(self._stream, name, connection_id)

    def records(
        self, query: ListQuery | ChangesQuery, *, preview_chars: int | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Read a page of a stream, or what changed in it."""
        if isinstance(query, ChangesQuery):
            return self._answer_records(self._changes, query, preview_chars)
        return self._answer_records(self._list, query, preview_chars)

    def record(
        self, query: RecordQuery, *, preview_chars: int | None = None, show: ShowRecord | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        return self._answer_records(self._record, query, preview_chars, show)

    def window(self, query: WindowQuery) -> CoroutineType[Any, Any, ReadAnswer]:
        """Read a part of one text field."""
        return self._answer(self._window, query)

    def aggregate(self, query: AggregateQuery) -> CoroutineType[Any, Any, ReadAnswer]:
        """Compute a number, or one for each group."""
        return self._answer(self._aggregate, query)

    def search(
        self, query: SearchQuery, *, title_chars: int | None = None
    ) -> CoroutineType[Any, Any, ReadAnswer]:
        """Find records by words."""
        return self._answer_records(self._search, query, title_chars)

    async def blob(self, query: BlobQuery, *, start: int = 0, end: int | None = None) -> BlobAnswer:
        """Open a file that a visible record refers to."""
        try:
            await self._left()
            found = await self._blob(await self._services.decisions(self._context.access), query)
            await self._services.budgets.take(self._context.access, 1)
        except HeadgateError as refusal:
            self._disclose(refusal.code)
            raise
        size = (found.size_bytes if end is None else end) - start
        self._disclose(
            ANSWERED,
            size,
            (Disclosed(found.connection_id, found.stream, (found.field,), (found.record_id,)),),
        )
        return BlobAnswer(
            blob_id=found.id,
            connection_id=found.connection_id,
            mime_type=found.mime_type,
            size_bytes=found.size_bytes,
            content=self._services.store.read_blob(found.id, start=start, end=end),
            read=lambda start, end: self._services.store.read_blob(found.id, start=start, end=end),
            request_id=self._context.request_id,
        )

    # The one way through

    async def _answer(
        self,
        serve: Callable[[DecisionMemo, Unpack[_Asked]], Awaitable[_Served]],
        *asked: *_Asked,
    ) -> ReadAnswer:
        """Answer with numbers, or with one record."""
        return await self._answer_records(lambda decisions, _most: serve(decisions, *asked))

    async def _answer_records(
        self,
        serve: Callable[[DecisionMemo, int | None, Unpack[_Asked]], Awaitable[_Served]],
        *asked: *_Asked,
    ) -> ReadAnswer:
        """Answer with as many records as the access may show; ``serve`` gets that number, None for any."""
        context = self._context
        words = _words(asked) if self._services.logs_queries else msgspec.UNSET
        try:
            # Before the read, which would show by its failure what there is.
            most = await self._left()
            served = await serve(await self._services.decisions(context.access), most, *asked)
            if most is not None:
                count = count_records(served.shown)
                taken = await self._services.budgets.take(context.access, count)
                if taken < count:
                    # Other requests took the rest meanwhile: the cursor must follow the last record that is shown.
                    served = await serve(await self._services.decisions(context.access), taken, *asked)
        except HeadgateError as refusal:
            self._disclose(refusal.code, words=words)
            raise
        content = served.content or _encode(served.body)
        self._disclose(ANSWERED, len(content), served.shown, words)
        return ReadAnswer(content, context.request_id, served.body)

    async def _left(self) -> int | None:
        """Return how many records may be shown; most grants have no limit, and their requests do not pay for it."""
        access = self._context.access
        return await self._services.budgets.left(access) if access.daily_records else None

    def _as_shown(self, served: _Served, show: ShowRecord) -> _Served:
        """Narrow what is logged of a record to the fields that a surface shows."""
        answer = ReadAnswer(_encode(served.body), self._context.request_id, served.body)
        fields = show(answer)
        record, *children = served.shown
        names = tuple(name for name in record.fields if name in fields)
        return _Served(served.body, (replace(record, fields=names), *children), answer.content)

    def _disclose(
        self,
        outcome: str,
        size_bytes: int = 0,
        shown: tuple[Disclosed, ...] = (),
        words: str | msgspec.UnsetType = msgspec.UNSET,
    ) -> None:
        access = self._context.access
        who = (access.token_kind, access.client_id, access.grant_ids, access.package_id)
        if self._context.is_look:
            who = (TokenKind.OWNER, None, (), None)
        self._services.discloser.write(
            Disclosure(
                self._services.clock(),
                self._context.request_id,
                *who,
                self._context.via,
                outcome,
                size_bytes,
                shown,
                # The owner knows what the owner looked for.
                msgspec.UNSET if who[1] is None else words,
            )
        )

    def _meta(self, warnings: tuple[ReadWarning, ...] = ()) -> Body | msgspec.Raw:
        if not self._context.warnings and not warnings:
            return bodies.NOTHING_TO_SAY
        return bodies.meta((*self._context.warnings, *warnings))

    # What there is

    async def _schema(self, decisions: DecisionMemo, query: SchemaQuery) -> _Served:
        scopes = deciding.decide_schema(decisions.allowance, query)
        summaries = await self._summaries(scopes)
        draw = schema.full_connectors if query.full else schema.compact_connectors
        connectors = draw(scopes, summaries)
        body: Body = {
            "object": "schema",
            "bearer": schema.bearer(decisions.allowance.access),
            "connectors": connectors,
        }
        if not query.full:
            body |= {"detail": "compact", "connector_count": len(connectors), "stream_count": len(scopes)}
        return _Served(body | {"links": {"self": links.schema_link(query)}, "meta": self._meta()})

    async def _streams(self, decisions: DecisionMemo, connection_id: ConnectionId | None) -> _Served:
        scopes = deciding.decide_streams(decisions.allowance, connection_id)
        rows = schema.stream_rows(scopes, await self._summaries(scopes))
        own = links.connection_link("/v1/streams", connection_id)
        return _Served(self._whole_list("/v1/streams", own, rows))

    async def _connectors(self, decisions: DecisionMemo) -> _Served:
        scopes = decisions.allowance.scopes
        rows = schema.connector_rows(scopes, await self._summaries(scopes))
        return _Served(self._whole_list("/v1/connectors", "/v1/connectors", rows))

    async def _stream(
        self, decisions: DecisionMemo, name: StreamName, connection_id: ConnectionId | None
    ) -> _Served:
        scope = deciding.decide_stream(decisions.allowance, name, connection_id)
        body = schema.stream_detail(scope, await self._summaries((scope,)))
        own = links.connection_link(links.stream_path(name), connection_id)
        return _Served(body | {"links": {"self": own}, "meta": self._meta()})

    def _whole_list(self, url: str, own: str, rows: list[Body]) -> Body:
        return {
            "object": "list",
            "data": rows,
            "has_more": False,
            "url": url,
            "links": {"self": own, "next": None},
            "meta": self._meta(),
        }

    async def _summaries(self, scopes: Sequence[StreamScope]) -> schema.Summaries:
        if not scopes:
            return {}
        reaches = [deciding.whole(scope) for scope in scopes]
        return await stream_facts(self._services.store, reaches, now=self._services.clock())

    # Records

    async def _list(
        self, decisions: DecisionMemo, most: int | None, query: ListQuery, preview_chars: int | None
    ) -> _Served:
        decision, labels = decisions.page(query, self._services.seals(), preview_chars)
        plan = decision.plan
        page, is_short = await self._page_within(plan, most)
        token = None
        if page.next is not None:
            token = cursors.seal_position(self._services.seals(), page.next, decision.binding)
        encoded = _marked(labels, preview_chars)
        rows = await draw(
            size_of(page.records), bodies.record_rows, page.records, labels, plan.expand, encoded
        )
        body = _list_body(query, rows, token)
        shortage = self._shortage(len(page.records)) if is_short else ()
        body["meta"] = self._list_meta(page, plan, decision, shortage)
        shown = records_shown(page.records, plan.reach.fields, plan.expand)
        return _Served(body, (*shown, *extent_shown(body["meta"], plan, decision.scopes[0])))

    async def _page_within(self, plan: PagePlan, most: int | None) -> tuple[Page, bool]:
        """Read a page with as many records as may be shown, and say whether there would have been more."""
        if most is None:
            return await self._page(plan), False
        bounded = replace(plan, limit=min(plan.limit, most))
        page = await self._page(bounded)
        fit = fitting(page.records, plan.expand, most)
        if fit < len(page.records):
            # Read again, so that the cursor follows the last record that is shown.
            bounded = replace(plan, limit=max(fit, 1))
            page = await self._page(bounded)
        if not fit and page.records:
            page = replace(page, records=(cut_children(page.records[0], plan.expand, most),))
        return page, bool(page.records) and (
            not fit or (page.next is not None and bounded.limit < plan.limit and not page.is_cut)
        )

    def _shortage(self, returned: int) -> tuple[ReadWarning, ...]:
        next_day = (self._services.clock() // DAY_US + 1) * DAY_US
        return (budget_reached(returned, iso(next_day)),)

    async def _page(self, plan: PagePlan) -> Page:
        if not (plan.filters or plan.with_extent or plan.count is not Count.NONE):
            return await self._services.store.page(plan)
        async with self._services.computations.of(self._context.access):
            return await self._services.store.page(plan)

    def _list_meta(
        self,
        page: Page,
        plan: PagePlan,
        decision: deciding.Decision[PagePlan],
        shortage: tuple[ReadWarning, ...],
    ) -> Body:
        cut = [page_cut(len(page.records))] if page.is_cut else []
        own = (*decision.warnings, *shortage, *cut, *records_damaged(_damaged(page)))
        warnings = (*self._context.warnings, *own)
        meta = bodies.meta(warnings, page.count, is_counted=page.count is not None)
        if plan.with_extent and page.extent is not None:
            scope = decision.scopes[0]
            times = {scope.declaration.cursor_field, scope.declaration.consent_time_field} - {None}
            shows_times = times <= scope.capability.fields.keys()
            meta["window"] = bodies.extent_body(page.extent, shows_times=shows_times)
        return meta

    async def _changes(
        self, decisions: DecisionMemo, most: int | None, query: ChangesQuery, preview_chars: int | None
    ) -> _Served:
        decision = deciding.decide_changes(
            decisions.allowance, query, self._services.seals(), preview_chars=preview_chars
        )
        plan = _bounded(decision.plan, most)
        found = await self._services.store.changes(plan)
        labels = labels_of(decisions.allowance, decision.scopes)
        encoded = _marked(labels, preview_chars)
        rows = await draw(size_of(found.entries), bodies.change_rows, found.entries, labels, encoded)
        token = self._session_token(found, decision)
        body = _list_body(query, rows, token)
        if token is None:
            binding = cursors.bookmark_binding(decisions.allowance, query)
            bookmark = Bookmark(found.horizon, secrets.token_bytes(_NONCE_BYTES))
            body["next_changes_since"] = cursors.seal_bookmark(self._services.seals(), bookmark, binding)
        cut = (page_cut(len(found.entries)),) if found.is_cut else ()
        if plan.limit < decision.plan.limit and found.next is not None and not found.is_cut:
            cut = self._shortage(len(found.entries))
        body["meta"] = self._meta((*decision.warnings, *cut, *records_damaged(found.damaged)))
        return _Served(body, disclosed(found.entries, decision.plan.reach.fields))

    def _session_token(self, found: Changes, decision: deciding.Decision[ChangesPlan]) -> str | None:
        if found.next is None:
            return None
        session = ChangesSession(decision.plan.since, found.horizon, found.next)
        return cursors.seal_session(self._services.seals(), session, decision.binding)

    async def _record(
        self,
        decisions: DecisionMemo,
        most: int | None,
        query: RecordQuery,
        preview_chars: int | None,
        show: ShowRecord | None,
    ) -> _Served:
        query = await self._with_whole_key(decisions, query)
        plan, scopes, labels = decisions.record(query, preview_chars)
        found = await self._services.store.record(plan)
        record = whole = _only(decisions.allowance, scopes, found, lambda: NotFound(param="id"))
        shortage: tuple[ReadWarning, ...] = ()
        if most is not None and not fitting((whole,), plan.expand, most):
            record, shortage = cut_children(whole, plan.expand, most), self._shortage(most)
        size, encoded = size_of((record,)), _marked(labels, preview_chars)
        (row,) = await draw(size, bodies.record_rows, (record,), labels, plan.expand, encoded)
        row.links = {"self": links.record_link(query)}
        row.meta = self._meta((*shortage, *records_damaged(_damaged_children(record))))
        served = _Served(row, records_shown((record,), plan.reach.fields, plan.expand))
        return served if show is None else await draw(size, self._as_shown, served, show)

    async def _with_whole_key(self, decisions: DecisionMemo, query: _OneRecord) -> _OneRecord:
        """Put the whole key into a query that has only its beginning.

        If no visible record has it, a key that no record can have takes its place: the read goes on, and is
        refused in the same way as for any other unknown id.
        """
        if query.key_digest is None:
            return query
        plan = deciding.decide_key(decisions.allowance, query, query.key_digest)
        return replace(query, record_id=await self._services.store.key(plan) or _NO_KEY, key_digest=None)

    async def _window(self, decisions: DecisionMemo, query: WindowQuery) -> _Served:
        seals = self._services.seals()
        query = await self._with_whole_key(decisions, query)
        decision = deciding.decide_window(decisions.allowance, query, seals)
        windows = await self._services.store.window(decision.plan)
        found = _only(decisions.allowance, decision.scopes, windows, lambda: NotFound(param="id"))
        if decision.digest is not None and decision.digest != found.digest:
            raise CursorExpired(
                f"Field '{query.field}' has changed; read it from offset_chars 0.", param="cursor"
            )
        limit = decision.plan.window.limit_chars
        origin = labels_of(decisions.allowance, decision.scopes).of(found.connection_id)
        body = bodies.window_body(query, limit, found, origin)
        for name, offset in (
            ("next_cursor", body["window"]["next_offset_chars"]),
            ("previous_cursor", body["window"]["previous_offset_chars"]),
        ):
            if offset is not None:
                place = _place(found, offset, limit)
                body["window"][name] = cursors.seal_window(seals, place, decision.binding)
        body |= {"links": {"self": links.window_link(query)}, "meta": self._meta(decision.warnings)}
        shown = Disclosed(found.connection_id, query.stream, (query.field,), (query.record_id,))
        return _Served(body, (shown,))

    # Numbers and words

    async def _aggregate(self, decisions: DecisionMemo, query: AggregateQuery) -> _Served:
        decision = deciding.decide_aggregate(decisions.allowance, query)
        async with self._services.computations.of(self._context.access):
            found = await self._services.store.aggregate(decision.plan)
        body = bodies.aggregate_body(query, decision.plan, found)
        body |= {"links": {"self": links.aggregate_link(query)}, "meta": self._meta()}
        fields = aggregated_fields(decision.plan)
        connections = decision.plan.reach.connection_ids
        return _Served(body, tuple(Disclosed(connection, query.stream, fields) for connection in connections))

    async def _search(
        self, decisions: DecisionMemo, most: int | None, query: SearchQuery, title_chars: int | None
    ) -> _Served:
        decision = deciding.decide_search(
            decisions.allowance,
            query,
            self._services.seals(),
            fields=() if title_chars is None else TITLE_SOURCES,
            preview_chars=title_chars,
        )
        plan = _bounded(decision.plan, most)
        page = SearchPage((), None, 0)
        if plan.reaches:
            async with self._services.searches.of(self._context.access):
                page = await self._services.store.search(plan)
        token = None
        if page.next is not None:
            token = cursors.seal_hit(self._services.seals(), page.next, decision.binding)
        labels = labels_of(decisions.allowance, decision.scopes)
        draw = bodies.hit_row if title_chars is None else bodies.titled_hit_row
        rows = [draw(hit, labels, query.mode) for hit in page.hits]
        searched = {connection.id for scope in decision.scopes for connection in scope.connections}
        lacks = (index_building(),) if page.is_index_building else ()
        lacks += (search_partial(),) if page.is_cut else ()
        if plan.limit < decision.plan.limit and page.next is not None:
            lacks += self._shortage(len(page.hits))
        body: Body = {
            "object": "list",
            "data": rows,
            "has_more": page.next is not None,
            "url": links.search_path(query.mode),
            "links": {
                "self": links.search_link(query, query.cursor),
                "next": None if token is None else links.search_link(query, token),
            },
            "meta": bodies.search_meta(
                page,
                (*self._context.warnings, *decision.warnings, *lacks, *records_damaged(page.damaged)),
                connections=len(searched),
            ),
        }
        if token is not None:
            body["next_cursor"] = token
        return _Served(body, hits_shown(page, rows, decision.scopes))

    async def _blob(self, decisions: DecisionMemo, query: BlobQuery) -> FoundBlob:
        decision = deciding.decide_blob(decisions.allowance, query)
        found = await self._services.store.blobs(decision.plan)
        return _only(decisions.allowance, decision.scopes, found, lambda: BlobNotFound(param="blob_id"))


def _bounded(plan: _Limited, most: int | None) -> _Limited:
    return plan if most is None else replace(plan, limit=min(plan.limit, most))


def _words(asked: Sequence[object]) -> str | msgspec.UnsetType:
    query = asked[0] if asked else None
    return query.q[:_MOST_LOGGED_CHARS] if isinstance(query, SearchQuery) else msgspec.UNSET


def _marked(labels: bodies.Labels, preview_chars: int | None) -> bodies.EncodedFields:
    """Return the fields to mark as encoded bytes: only a surface that shortens texts needs the mark."""
    return {} if preview_chars is None else labels.encoded


def _only(
    allowance: Allowance,
    scopes: Sequence[StreamScope],
    found: Sequence[_Found],
    missing: Callable[[], HeadgateError],
) -> _Found:
    """Return the one thing found; none is a refusal, and several are a choice for the caller."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise missing()
    raise ambiguous(allowance.access, scopes, only=[one.connection_id for one in found])


def _list_body(query: ListQuery | ChangesQuery, rows: Sequence[Row], token: str | None) -> Body:
    body: Body = {
        "object": "list",
        "data": rows,
        "has_more": token is not None,
        "url": links.records_path(query.stream),
        "links": {
            "self": links.list_link(query, query.cursor),
            "next": None if token is None else links.list_link(query, token),
        },
    }
    if token is not None:
        body["next_cursor"] = token
    return body


def _place(found: FieldWindow, offset: int, limit: int) -> WindowPlace:
    return WindowPlace(found.connection_id, found.digest, offset, limit)


def _damaged(page: Page) -> list[RecordId]:
    return [*page.damaged, *(key for record in page.records for key in _damaged_children(record))]


def _damaged_children(record: Record) -> list[RecordId]:
    return [key for children in record.expanded.values() for key in children.damaged]
