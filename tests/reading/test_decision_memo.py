"""A query that was decided before is decided the same way again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from headgate.errors import HeadgateError
from headgate.model.grant import Access
from headgate.model.ids import FieldName, StreamName
from headgate.model.query import ExactFilter, ListQuery, Query, RecordQuery
from headgate.policy.decide import decide_list, decide_record
from headgate.reading.home import DecisionMemo, PageForm, labels_of
from tests.policy.test_reach import accesses, queries
from tests.policy.worlds import HOME, allowed, owner, seals

Asked = tuple[Query, int | None]


def remembered(memo: DecisionMemo, query: ListQuery | RecordQuery, preview_chars: int | None) -> Any:
    """Give a decision in a form in which 1, 1.0 and true differ, or the code of a refusal."""
    try:
        if isinstance(query, ListQuery):
            decision, labels = memo.page(query, seals(), PageForm(preview_chars))
            return repr(decision), repr(labels)
        plan, scopes, labels = memo.record(query, preview_chars)
    except HeadgateError as refusal:
        return refusal.code, refusal.message
    return repr(plan), repr(scopes), repr(labels)


def fresh(access: Access, query: ListQuery | RecordQuery, preview_chars: int | None) -> Any:
    allowance = allowed(access)
    try:
        if isinstance(query, ListQuery):
            listed = decide_list(allowance, query, seals(), preview_chars=preview_chars)
            return repr(listed), repr(labels_of(allowance, listed.scopes, listed.plan.expand))
        decision = decide_record(allowance, query, preview_chars=preview_chars)
    except HeadgateError as refusal:
        return refusal.code, refusal.message
    labels = labels_of(allowance, decision.scopes, decision.plan.expand)
    return repr(decision.plan), repr(decision.scopes), repr(labels)


@settings(max_examples=200, deadline=None)
@given(accesses(), st.lists(st.tuples(queries(), st.none() | st.just(100)), min_size=2, max_size=12))
def test_what_was_decided_before_changes_no_decision(access: Access, asked: list[Asked]):
    memo = DecisionMemo(allowed(access))
    for query, preview_chars in (*asked, *asked):
        if isinstance(query, ListQuery | RecordQuery):
            assert remembered(memo, query, preview_chars) == fresh(access, query, preview_chars)


@pytest.mark.parametrize("values", [(1, True), (True, 1), (1, 1.0), (1.0, True)])
def test_filters_with_equal_values_of_different_types_are_decided_apart(values: tuple[Any, Any]):
    memo = DecisionMemo(allowed(owner()))
    for value in values:
        query = ListQuery(
            StreamName("messages"), connection_id=HOME, filters=(ExactFilter(FieldName("sender"), value),)
        )
        assert remembered(memo, query, None) == fresh(owner(), query, None)
