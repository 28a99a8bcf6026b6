"""What all reads of a home share: its store, its catalog, its keys, its log, and what was decided."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from headgate.audit.budget import DailyBudgets
from headgate.audit.disclose import Discloser
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId, FieldName, GrantId, StreamName, SubjectId
from headgate.model.plan import ExpandPlan, PagePlan, Reach, RecordPlan
from headgate.model.query import ExpandRequest, ListQuery, RecordQuery
from headgate.model.sealed import Sealer
from headgate.policy.allowance import Allowance, SourceCatalog, StreamScope, allow
from headgate.policy.capability import Rules
from headgate.policy.choose import connector_of
from headgate.policy.cursors import Seals
from headgate.policy.decide import Decision, decide_list, decide_record
from headgate.reading.bodies import Labels
from headgate.reading.turns import FairTurns

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

_MOST = 256
_BASE64 = frozenset({"base64", "base64url"})
_RecordKey = tuple[StreamName, ConnectionId | None, tuple[FieldName, ...] | None, tuple[ExpandRequest, ...]]


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
        self._lists: dict[tuple[ListQuery, int | None], _DecidedList] = {}
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

    def page(
        self, query: ListQuery, seals: Seals, preview_chars: int | None
    ) -> tuple[Decision[PagePlan], Labels]:
        """Decide on a page of a stream."""
        # A query with filters cannot be a key: the values 1, 1.0 and True are equal, but not the same.
        if query.cursor is not None or query.filters:
            return self._page(query, seals, preview_chars)
        key = (query, preview_chars)
        known = self._lists.get(key)
        if known is None:
            known = self._page(query, seals, preview_chars)
            if len(self._lists) >= _MOST:
                self._lists.clear()
            self._lists[key] = known
        return known

    def _page(self, query: ListQuery, seals: Seals, preview_chars: int | None) -> _DecidedList:
        decision = decide_list(self.allowance, query, seals, preview_chars=preview_chars)
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
        name: str(one.schema.get("contentMediaType", "application/octet-stream"))
        for name, one in scope.declaration.fields.items()
        if str(one.schema.get("contentEncoding", "")).casefold() in _BASE64
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


class ReadServices:
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
