"""Decisions that were made before: the same query under the same allowance is decided the same way.

Decisions are pure, so they can be remembered as long as the catalog is the same. `ReadServices` holds one
memo for each access and drops all of them with the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.plan import ExpandPlan, PagePlan, Reach, RecordPlan
from headgate.model.query import ExpandRequest, ListQuery, RecordQuery
from headgate.policy.allowance import Allowance, StreamScope
from headgate.policy.choose import connector_of
from headgate.policy.cursors import Seals
from headgate.policy.decide import Decision, decide_list, decide_record
from headgate.reading.bodies import Labels

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
