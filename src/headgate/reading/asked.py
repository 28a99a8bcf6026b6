"""A search as its question was meant: days, senders and orders that it names narrow it, as long as that hides no answer.

If no visible record that is left holds all the words, and one holds all the words of the whole query, the words alone
count; so they do where nothing is left. An answer says which it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, tzinfo
from typing import NamedTuple

from msgspec.structs import replace

from headgate.model.asked import Asked, Days, Phrase
from headgate.model.instants import instant
from headgate.model.plan import SearchPlan, TimeSpan, parse_terms
from headgate.model.query import SearchMode, SearchQuery, SearchSort
from headgate.model.rows import SearchPage
from headgate.questions.recognise import recognise
from headgate.reading.home import MICROSECONDS, CurrentRead


class AskedPage(NamedTuple):
    """A page of hits, the plan that it is of, and how the question was taken."""

    plan: SearchPlan
    page: SearchPage
    #: None: there are words alone.
    asked: Asked | None = None


async def search_as_asked(read: CurrentRead, plan: SearchPlan, query: SearchQuery) -> AskedPage:
    """Find a page; a later page takes the question as the first one did."""
    home = read.home
    async with home.searches.of(read.context.access):
        today = datetime.fromtimestamp(home.clock() / MICROSECONDS, home.zone).date()
        if plan.after is not None:
            asked = plan.after.asked
        else:
            asked = recognise(query.q, today) if query.understand else None
        if plan.after is not None or asked is None or not any(map(_narrows, asked.phrases)):
            plan = _narrowed(plan, asked, home.zone)
            return AskedPage(plan, await home.store.search(plan), asked)
        return await _first_that_finds(read, plan, list(_readings(query.q, asked, today)))


async def _first_that_finds(read: CurrentRead, plan: SearchPlan, readings: list[Asked]) -> AskedPage:
    """Take the first reading with a record that holds all its words, else the first that leaves any record."""
    pages: list[AskedPage] = []
    for asked in readings:
        narrowed = _narrowed(plan, asked, read.home.zone)
        taken = AskedPage(narrowed, await read.home.store.search(narrowed), asked)
        if await _whole_count(read, taken):
            return taken
        pages.append(taken)
    return next((taken for taken in pages if _has_any(taken.page)), pages[-1])


def _readings(q: str, asked: Asked, today: date) -> Iterator[Asked]:
    """Yield how a question may be meant: as it was recognised, without its sender, and as words alone."""
    yield asked
    without_sender = recognise(q, today, with_senders=False)
    if asked.sender is not None and without_sender is not None and without_sender.days:
        dropped = tuple(phrase for phrase in asked.phrases if phrase.sender is not None)
        yield replace(without_sender, dropped=dropped)
    yield Asked(q, dropped=asked.phrases)


async def _whole_count(read: CurrentRead, taken: AskedPage) -> int:
    """Count the records that hold all the words."""
    if taken.plan.mode is SearchMode.LEXICAL:
        return taken.page.count or 0
    counting = replace(taken.plan, mode=SearchMode.LEXICAL, or_words=False, limit=0, ahead=0)
    return (await read.home.store.search(counting)).count or 0


def _has_any(page: SearchPage) -> bool:
    return bool(page.hits or page.partial_count or page.quoted_count)


def _narrows(phrase: Phrase) -> bool:
    return phrase.narrows


def _narrowed(plan: SearchPlan, asked: Asked | None, zone: tzinfo | None) -> SearchPlan:
    if asked is None:
        return plan
    return replace(
        plan,
        terms=parse_terms(asked.q),
        spans=tuple(_span(days, zone) for days in asked.days),
        sender=asked.sender,
        sort=SearchSort.TIME if asked.is_latest else plan.sort,
    )


def _span(days: Days, zone: tzinfo | None) -> TimeSpan:
    edges = (days.since, days.until)
    shown = (None if day is None else instant(day.isoformat()) for day in edges)
    begun = (None if day is None else _begin_of(day, zone) for day in edges)
    return TimeSpan(*begun, *shown)


def _begin_of(day: date, zone: tzinfo | None) -> int:
    """Return when a day begins, in microseconds since 1970."""
    return int(datetime.combine(day, time(), zone).timestamp()) * MICROSECONDS
