"""What all reads of a home share (its store, catalog, keys, log, what was decided, and a thread), and what one read has."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import TYPE_CHECKING, NamedTuple, TypeVar, TypeVarTuple

import msgspec
from msgspec import structs

from headgate import memory
from headgate.audit.budget import DailyBudgets
from headgate.audit.journal import Disclosed, Discloser
from headgate.errors import HeadgateError
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import (
    ConnectionId,
    ConnectorKey,
    FieldName,
    GrantId,
    RecordId,
    RequestId,
    StreamName,
    SubjectId,
)
from headgate.model.instants import DAY_US, iso
from headgate.model.plan import ChangesPlan, ExpandPlan, PagePlan, Reach, RecordPlan, SearchPlan
from headgate.model.query import ExpandRequest, ListQuery, RecordQuery, WindowQuery
from headgate.model.record import Record
from headgate.model.rows import FieldWindow, FoundBlob
from headgate.model.sealed import Sealer
from headgate.model.warning import ReadWarning, budget_reached
from headgate.policy.allowance import Allowance, SourceCatalog, StreamScope, allow
from headgate.policy.capability import Rules
from headgate.policy.choose import ambiguous, connector_of
from headgate.policy.cursors import Seals
from headgate.policy.decide import Decision, decide_key, decide_list, decide_record
from headgate.reading.port import Body, Row
from headgate.reading.turns import FairTurns

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

_MOST = 256
#: What is drawn in the event loop: it takes a few milliseconds.
_LOOP_BYTES = 128 * 1024
#: One thread: values take several times as much memory as their JSON.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="headgate-drawing")
_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")
_BASE64 = frozenset({"base64", "base64url"})
_RecordKey = tuple[StreamName, ConnectionId | None, tuple[FieldName, ...] | None, tuple[ExpandRequest, ...]]


#: By stream: the fields whose texts are declared as encoded bytes, with the type of the bytes.
EncodedFields = Mapping[StreamName, Mapping[FieldName, str]]


@dataclass(frozen=True, slots=True)
class Labels:
    """What rows say about connections: the connector, and what the owner calls the connection."""

    known: Mapping[ConnectionId, tuple[ConnectorKey, str | None]]
    #: The fields of each stream that are declared as encoded bytes.
    encoded: EncodedFields = field(default_factory=dict[StreamName, Mapping[FieldName, str]])

    def of(self, connection_id: ConnectionId) -> Body:
        """Return the members that tell a row's origin."""
        key, name = self.known[connection_id]
        if name is None:
            return {"connection_id": connection_id, "connector_key": key}
        return {"connection_id": connection_id, "connector_key": key, "display_name": name}


class PageForm(NamedTuple):
    """How much of a page is read: characters of each long text, and bytes of all rows; None for all of it."""

    preview_chars: int | None = None
    page_bytes: int | None = None


class _DecidedRecord(NamedTuple):
    """A decision on a record without the record's id, on which it does not depend."""

    reach: Reach
    expand: tuple[ExpandPlan, ...]
    scopes: tuple[StreamScope, ...]
    labels: Labels


class _DecidedList(NamedTuple):
    decision: Decision[PagePlan]
    labels: Labels


class DecisionMemo:
    """The decisions on single records and first pages under one allowance."""

    __slots__ = ("_lists", "_records", "allowance")

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self._lists: dict[tuple[ListQuery, PageForm], _DecidedList] = {}
        self._records: dict[_RecordKey, _DecidedRecord] = {}

    def record(
        self, query: RecordQuery, preview_chars: int | None
    ) -> tuple[RecordPlan, tuple[StreamScope, ...], Labels]:
        """Decide on one record."""
        key = (query.stream, query.connection_id, query.fields, query.expand)
        known = self._records.get(key)
        if known is None:
            decision = decide_record(self.allowance, query)
            plan, scopes = decision.plan, decision.scopes
            known = _DecidedRecord(
                plan.reach, plan.expand, scopes, labels_of(self.allowance, scopes, plan.expand)
            )
            if len(self._records) >= _MOST:
                self._records.clear()
            self._records[key] = known
        reach, expand, scopes, labels = known
        return RecordPlan(reach, query.record_id, expand, preview_chars), scopes, labels

    def page(self, query: ListQuery, seals: Seals, form: PageForm) -> tuple[Decision[PagePlan], Labels]:
        """Decide on a page of a stream."""
        # A query with filters cannot be a key: the values 1, 1.0 and True are equal, but not the same.
        if query.cursor is not None or query.filters:
            return self._page(query, seals, form)
        key = (query, form)
        known = self._lists.get(key)
        if known is None:
            known = self._page(query, seals, form)
            if len(self._lists) >= _MOST:
                self._lists.clear()
            self._lists[key] = known
        return known

    def _page(self, query: ListQuery, seals: Seals, form: PageForm) -> _DecidedList:
        decision = decide_list(
            self.allowance, query, seals, preview_chars=form.preview_chars, page_bytes=form.page_bytes
        )
        return _DecidedList(decision, labels_of(self.allowance, decision.scopes, decision.plan.expand))


def labels_of(
    allowance: Allowance, scopes: Sequence[StreamScope], expand: Sequence[ExpandPlan] = ()
) -> Labels:
    """Collect what rows say about their connections, those of expanded children included."""
    children = (scope for plan in expand for scope in allowance.by_stream.get(plan.child.stream, ()))
    every = (*children, *scopes)
    encoded = {scope.stream: fields for scope in every if (fields := _encoded_fields(scope))}
    return Labels(connector_of(every), encoded)


def _encoded_fields(scope: StreamScope) -> dict[FieldName, str]:
    """Find the fields that are declared as bytes in base64, with the declared type of the bytes."""
    return {
        name: str(declared.schema.get("contentMediaType", "application/octet-stream"))
        for name, declared in scope.declaration.fields.items()
        if str(declared.schema.get("contentEncoding", "")).casefold() in _BASE64
    }


MICROSECONDS = 1_000_000
_MOST_ACCESSES = 512
_AccessKey = tuple[TokenKind, SubjectId, tuple[GrantId, ...]]


@dataclass(frozen=True, slots=True)
class _CatalogMemo:
    """The catalog at one version, and the decisions that were made under it."""

    #: The store's number of the catalog.
    version: int | None = None
    #: The version of the home's file at which the catalog was last seen to be current.
    epoch: int | None = None
    catalog: SourceCatalog = field(default_factory=lambda: SourceCatalog({}, {}))
    decisions: OrderedDict[_AccessKey, DecisionMemo] = field(
        default_factory=OrderedDict[_AccessKey, DecisionMemo]
    )


class ReadableHome:
    """One home, open for reading."""

    __slots__ = (
        "_memo",
        "budgets",
        "clock",
        "computations",
        "discloser",
        "logs_queries",
        "rules",
        "sealer",
        "searches",
        "store",
        "zone",
    )

    def __init__(
        self,
        store: Store,
        *,
        sealer: Sealer,
        discloser: Discloser,
        budgets: DailyBudgets,
        clock: Callable[[], int],
        rules: Rules,
        logs_queries: bool = False,
        zone: tzinfo | None = None,
    ) -> None:
        self.store = store
        self.sealer = sealer
        self.discloser = discloser
        self.budgets = budgets
        #: Gives the time in microseconds since 1970.
        self.clock = clock
        self.rules = rules
        #: Whether the log holds the words of searches, which the owner decides.
        self.logs_queries = logs_queries
        #: Where the owner's days begin and end; None for the zone of this machine.
        self.zone = zone
        #: The store has a thread for each of these.
        self.searches, self.computations = FairTurns(), FairTurns()
        self._memo = _CatalogMemo()

    def seals(self) -> Seals:
        """Make what seals and opens cursors at this time."""
        return Seals(self.sealer, self.clock() // MICROSECONDS)

    async def catalog(self) -> SourceCatalog:
        """Read what is declared and connected now."""
        return (await self._current(None)).catalog

    async def decisions(self, access: Access) -> DecisionMemo:
        """Work out what an access may read, or take it from the memo.

        As long as the access has the memo's epoch, nothing was written since the catalog was read, and it
        is not looked at again.
        """
        memo = self._memo
        if access.epoch is None or access.epoch != memo.epoch:
            memo = await self._current(access.epoch)
        key = (access.token_kind, access.subject_id, access.grant_ids)
        known = memo.decisions.get(key)
        if known is None or not _is_same(known.allowance.access, access):
            known = memo.decisions[key] = DecisionMemo(allow(access, memo.catalog, self.rules))
            if len(memo.decisions) > _MOST_ACCESSES:
                memo.decisions.popitem(last=False)
        return known

    async def _current(self, epoch: int | None) -> _CatalogMemo:
        """Bring the memo up to date. The epoch was read before, so what is read now is not older than it."""
        version = await self.store.catalog_version()
        memo = self._memo
        if memo.version == version:
            # The decisions stay: what was written did not touch the catalog.
            memo = replace(memo, epoch=epoch)
        else:
            declarations = dict(await self.store.declarations())
            connections = {connection.id: connection for connection in await self.store.connections()}
            catalog = SourceCatalog(declarations, connections, await self.store.declared_versions())
            memo = _CatalogMemo(version, epoch, catalog)
        self._memo = memo
        return memo


def _is_same(known: Access, access: Access) -> bool:
    # Admission returns one object until something is written, and comparing it with itself takes a while.
    return known is access or known == access


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


class Served(msgspec.Struct, frozen=True):
    """A body, and what of the records it shows."""

    body: Row
    shown: tuple[Disclosed, ...] = ()
    #: The body as JSON, where it was encoded already.
    content: bytes | None = None


class CurrentRead(msgspec.Struct, frozen=True):
    """One read: the home, the request, what was decided for its access, and how many records it may show."""

    home: ReadableHome
    context: ReadContext
    decisions: DecisionMemo
    #: None for any number.
    most: int | None

    def meta(self, warnings: tuple[ReadWarning, ...] = ()) -> Body | msgspec.Raw:
        """Return the ``meta`` member of an answer that counts nothing."""
        if not self.context.warnings and not warnings:
            return _NOTHING_TO_SAY
        return meta((*self.context.warnings, *warnings))

    def shortage(self, returned: int) -> tuple[ReadWarning, ...]:
        """Warn that the records of the day are used up."""
        next_day = (self.home.clock() // DAY_US + 1) * DAY_US
        return (budget_reached(returned, iso(next_day)),)


async def draw(size_bytes: int, work: Callable[[*_Given], _T], *arguments: *_Given) -> _T:
    """Call a function that works on so many bytes of JSON: in a thread, if they are many."""
    if size_bytes <= _LOOP_BYTES:
        return work(*arguments)

    def do() -> _T:
        with memory.alone():
            memory.require(size_bytes)
            return work(*arguments)

    return await asyncio.get_running_loop().run_in_executor(_THREAD, do)


def meta(warnings: Iterable[ReadWarning], count: int | None = None) -> Body:
    """Return the ``meta`` member: how much there is, and what to know about the answer."""
    counted: Body = {"kind": "none"} if count is None else {"kind": "exact", "value": count}
    return {"count": counted, "warnings": [warning.document() for warning in warnings]}


#: The ``meta`` member of most answers.
_NOTHING_TO_SAY = msgspec.Raw(msgspec.json.encode(meta(())))


_Found = TypeVar("_Found", Record, FieldWindow, FoundBlob)


def only(
    allowance: Allowance,
    scopes: Sequence[StreamScope],
    candidates: Sequence[_Found],
    missing: Callable[[], HeadgateError],
) -> _Found:
    """Return the one thing found; none is a refusal, and several are a choice for the caller."""
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise missing()
    raise ambiguous(allowance.access, scopes, only=[candidate.connection_id for candidate in candidates])


_OneRecord = TypeVar("_OneRecord", RecordQuery, WindowQuery)
_NO_KEY = RecordId("\0")  # keys are stored without NUL


async def with_whole_key(read: CurrentRead, query: _OneRecord) -> _OneRecord:
    """Put the whole key into a query that has only its beginning.

    If no visible record has it, a key that no record can have takes its place: the read goes on, and is
    refused in the same way as for any other unknown id.
    """
    if query.key_digest is None:
        return query
    plan = decide_key(read.decisions.allowance, query, query.key_digest)
    return structs.replace(query, record_id=await read.home.store.key(plan) or _NO_KEY, key_digest=None)


_Limited = TypeVar("_Limited", ChangesPlan, SearchPlan)


def bounded(plan: _Limited, most: int | None) -> _Limited:
    """Limit a plan to as many records as may be shown."""
    return plan if most is None else structs.replace(plan, limit=min(plan.limit, most))


def short_meta(meta: Body | msgspec.Raw) -> Body:
    """Leave out of a ``meta`` what says nothing."""
    if isinstance(meta, msgspec.Raw):
        # It was encoded beforehand, because it says nothing.
        return {}
    is_counted = meta.get("count", {}).get("kind") != "none"
    return {name: value for name, value in meta.items() if value and (name != "count" or is_counted)}


def times_of(scopes: Sequence[StreamScope]) -> Body:
    """Return the member of ``meta`` that says whose clock the visible times of some streams are of; none if none is."""
    clocks: dict[str, dict[ConnectorKey, None]] = {}
    for scope in scopes:
        if scope.declaration.line.time in scope.capability.fields:
            clocks.setdefault(scope.declaration.times, {})[scope.connector_key] = None
    if len(clocks) > 1:
        return {"times": "; ".join(f"{', '.join(keys)}: {times}" for times, keys in clocks.items())}
    return {"times": next(iter(clocks))} if clocks else {}


def time_field(scope: StreamScope) -> FieldName | None:
    """Return the field with the time of a stream's records."""
    return scope.declaration.consent_time_field or scope.declaration.cursor_field
