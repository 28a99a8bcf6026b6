"""What a question narrows a search to beside its words: spans of time, and a sender; of visible values alone."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.model.plan import SearchPlan, SearchReach, Term
from headgate.store.format.arrays import np
from headgate.store.format.records import RID_SHIFT
from headgate.store.format.segments import NO_TIME, POSITION_BITS, Numbers
from headgate.store.search.matching import Matcher
from headgate.store.search.query import understand
from headgate.store.search.visible_text import VisibleText


def within_spans(
    plan: SearchPlan, reaches: Mapping[int, SearchReach], rids: Numbers, times: Numbers
) -> Numbers:
    """Return which records, by row number, are of any of the plan's spans; a record without a visible time is of none."""
    instant_shelves = [sid for sid, reach in reaches.items() if reach.has_instants]
    has_instant = np.isin(rids >> RID_SHIFT, instant_shelves)
    stays = np.zeros(len(rids), np.bool_)
    for span in plan.spans:
        edges = ((span.since, span.shown_since), (span.until, span.shown_until))
        (since, until) = (
            np.where(has_instant, default if at is None else at, default if shown is None else shown)
            for (at, shown), default in zip(edges, (NO_TIME + 1, -NO_TIME - 1), strict=True)
        )
        stays |= (times >= since) & (times < until)
    return stays


def from_sender(
    plan: SearchPlan, reaches: Mapping[int, SearchReach], matcher: Matcher, text: VisibleText
) -> Numbers:
    """Return the records whose sender, as far as it may be seen, holds the word of the plan."""
    assert plan.sender is not None
    is_sender = np.array([field.name in reaches[field.sid].sender_fields for field in text.fields], np.bool_)
    records = np.empty(0, np.int64)
    for need in understand((Term((plan.sender,), is_strict=True),)).needs:
        texts = matcher.find(need).occurrences.keys >> POSITION_BITS
        records = text.columns.records[texts[is_sender[text.columns.runs_of(texts)]]]
    return np.unique(records)
