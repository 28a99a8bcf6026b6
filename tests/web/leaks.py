"""Leaks to plant: each breaks one guard, and the master test must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from headgate.errors import NotFound
from headgate.model.plan import OffsetWindow, Reach, RecordPlan, WindowPlan
from headgate.model.rows import ShelfSummary
from headgate.policy import allowance, clauses, cursors, decide
from headgate.policy.capability import Use
from headgate.store.engines import sqlite as sqlite_engine, store as engine
from headgate.store.queries import rows, summaries
from headgate.store.search import meaning, visible_text
from tests.web.twins import HIDDEN

Patch = pytest.MonkeyPatch


def _everywhere(patch: Patch, replacement: Callable[..., Any]) -> None:
    for module in (allowance, clauses, decide):
        patch.setattr(module, "authorize", replacement)


def _lenient(patch: Patch, use: Use) -> None:
    """Let hidden fields pass for one use."""
    original = allowance.authorize

    def open_wide(scope: Any, name: Any, asked: Use) -> Any:
        declared = scope.declaration.fields.get(name)
        if asked is use and declared is not None and declared.kind.is_scalar:
            return declared
        return original(scope, name, asked)

    _everywhere(patch, open_wide)


def filter_on_a_hidden_field(patch: Patch) -> None:
    _lenient(patch, Use.EXACT_FILTER)


def group_by_a_hidden_field(patch: Patch) -> None:
    _lenient(patch, Use.GROUP_BY)


def sum_of_a_hidden_field(patch: Patch) -> None:
    _lenient(patch, Use.SUM)


def select_a_hidden_field(patch: Patch) -> None:
    _lenient(patch, Use.SELECT)


def order_by_a_hidden_field(patch: Patch) -> None:
    """Pages are ordered by how long the whole record is, hidden text included."""
    original = engine.page

    def page(database: Any, catalog: Any, plan: Any) -> Any:
        found = original(database, catalog, plan)
        sizes = dict(database.all("SELECT record_id, max(length(body)) FROM record GROUP BY record_id"))
        ordered = sorted(found.records, key=lambda one: sizes.get(one.id) or 0)
        return replace(found, records=tuple(ordered))

    patch.setattr(engine, "page", page)


def count_what_is_outside_the_time(patch: Patch) -> None:
    original = engine.page

    def page(database: Any, catalog: Any, plan: Any) -> Any:
        wide = replace(plan, reach=replace(plan.reach, time=None, resources=None))
        return replace(original(database, catalog, plan), count=original(database, catalog, wide).count)

    patch.setattr(engine, "page", page)


def search_hidden_text(patch: Patch) -> None:
    original = decide._search_reach

    def reach(scope: Any, *more: Any, **named: Any) -> Any:
        made = original(scope, *more, **named)
        return replace(made, search_fields=scope.declaration.query.lexical_fields)

    patch.setattr(decide, "_search_reach", reach)


def count_words_of_hidden_text(patch: Patch) -> None:
    original = clauses.word_condition

    def words(scope: Any, *more: Any) -> Any:
        made = original(scope, *more)
        return made and replace(made, search_fields=scope.declaration.query.lexical_fields)

    patch.setattr(clauses, "word_condition", words)


def extract_from_hidden_text(patch: Patch) -> None:
    original = clauses.text_value

    def value(scope: Any, query: Any) -> Any:
        made = original(scope, query)
        return made and replace(made, search_fields=scope.declaration.query.lexical_fields)

    patch.setattr(clauses, "text_value", value)


def search_outside_the_time(patch: Patch) -> None:
    patch.setattr(visible_text, "_narrowed", lambda _database, view, _field: view)


def compare_hidden_text(patch: Patch) -> None:
    original = decide._search_reach

    def reach(scope: Any, *more: Any, **named: Any) -> Any:
        made = original(scope, *more, **named)
        return replace(made, meaning_fields=scope.declaration.query.meaning_fields)

    patch.setattr(decide, "_search_reach", reach)


def compare_outside_the_time(patch: Patch) -> None:
    patch.setattr(meaning, "inside", lambda *_: slice(None))


def rank_by_hidden_text(patch: Patch) -> None:
    original = engine.find

    def search(database: Any, catalog: Any, memory: Any, plan: Any, question: Any = None) -> Any:
        found = original(database, catalog, memory, plan, question)
        sizes = dict(database.all("SELECT record_id, max(length(body)) FROM record GROUP BY record_id"))
        hits = tuple(sorted(found.hits, key=lambda hit: sizes[hit.record.id] or 0))
        return replace(found, hits=hits)

    patch.setattr(engine, "find", search)


def snippet_with_hidden_text(patch: Patch) -> None:
    original = engine.find

    def search(database: Any, catalog: Any, memory: Any, plan: Any, question: Any = None) -> Any:
        found = original(database, catalog, memory, plan, question)
        total = database.value("SELECT sum(length(body)) FROM record WHERE deleted=0")
        hits = tuple(
            replace(hit, snippets=tuple(replace(one, text=f"{one.text} of {total}") for one in hit.snippets))
            for hit in found.hits
        )
        return replace(found, hits=hits)

    patch.setattr(engine, "find", search)


def cursor_that_holds_a_hidden_number(patch: Patch) -> None:
    original = cursors.seal_position
    patch.setattr(
        cursors,
        "seal_position",
        lambda seals, position, binding: f"{original(seals, position, binding)}{COUNT[0]}",
    )
    page = engine.page

    def counted(database: Any, catalog: Any, plan: Any) -> Any:
        COUNT[0] = database.value("SELECT count(*) FROM record")
        return page(database, catalog, plan)

    patch.setattr(engine, "page", counted)


COUNT = [0]


def error_that_tells_hidden_from_missing(patch: Patch) -> None:
    original = sqlite_engine.find

    def find(database: Any, catalog: Any, plan: RecordPlan) -> Any:
        found = original(database, catalog, plan)
        if not found and database.one("SELECT 1 FROM record WHERE record_id=?", (plan.record_id,)):
            raise NotFound("There, but not for you.", param="id")
        return found

    patch.setattr(sqlite_engine, "find", find)


def schema_with_the_size_of_everything(patch: Patch) -> None:
    original = engine.summaries

    def summaries(database: Any, *rest: Any) -> Any:
        total = database.value("SELECT sum(live) FROM shelf")
        return tuple(
            ShelfSummary(one.connection_id, one.stream, total, None) for one in original(database, *rest)
        )

    patch.setattr(engine, "summaries", summaries)


def has_more_because_of_hidden_records(patch: Patch) -> None:
    original = engine.page

    def page(database: Any, catalog: Any, plan: Any) -> Any:
        found = original(database, catalog, plan)
        wide = original(database, catalog, replace(plan, reach=replace(plan.reach, time=None)))
        return replace(found, next=found.next or wide.next)

    patch.setattr(engine, "page", page)


def reach_into_another_connection(patch: Patch) -> None:
    original = allowance.StreamScope.reach

    def reach(self: Any, fields: Any) -> Reach:
        made = original(self, fields)
        return replace(made, connection_ids=(*made.connection_ids, HIDDEN))

    patch.setattr(allowance.StreamScope, "reach", reach)


def forget_the_time(patch: Patch) -> None:
    original = allowance.StreamScope.reach
    patch.setattr(
        allowance.StreamScope, "reach", lambda self, fields: replace(original(self, fields), time=None)
    )


def forget_the_chosen_records(patch: Patch) -> None:
    original = allowance.StreamScope.reach
    patch.setattr(
        allowance.StreamScope, "reach", lambda self, fields: replace(original(self, fields), resources=None)
    )


def changes_of_hidden_fields(patch: Patch) -> None:
    original = engine.changes

    def changes(database: Any, catalog: Any, plan: Any) -> Any:
        # No plan names a field twice.
        wide = replace(plan.reach, fields=tuple(dict.fromkeys((*plan.reach.fields, "body", "weight"))))
        return original(database, catalog, replace(plan, reach=wide))

    patch.setattr(engine, "changes", changes)


def window_into_a_hidden_field(patch: Patch) -> None:
    original = engine.windows

    def windows(database: Any, catalog: Any, plan: WindowPlan) -> Any:
        wide = replace(plan, field="body", window=OffsetWindow(0, plan.window.limit_chars))
        return original(database, catalog, wide)

    patch.setattr(engine, "windows", windows)


def extent_of_hidden_records(patch: Patch) -> None:
    original = engine.page

    def page(database: Any, catalog: Any, plan: Any) -> Any:
        wide = replace(plan, reach=replace(plan.reach, time=None))
        return replace(original(database, catalog, plan), extent=original(database, catalog, wide).extent)

    patch.setattr(engine, "page", page)


def time_of_the_whole_record(patch: Patch) -> None:
    original = rows.emitted_at_of
    patch.setattr(rows, "emitted_at_of", lambda marks, _visible, otherwise: original(marks, None, otherwise))


def time_of_the_whole_shelf(patch: Patch) -> None:
    patch.setattr(
        summaries,
        "_dated",
        lambda database, sid, *_: database.value("SELECT updated_at FROM shelf WHERE sid=?", (sid,)),
    )


def page_in_the_order_of_a_hidden_field(patch: Patch) -> None:
    original = engine.page
    patch.setattr(
        engine,
        "page",
        lambda database, catalog, plan: original(database, catalog, replace(plan, by_cursor_field=True)),
    )


def children_in_the_order_of_a_hidden_field(patch: Patch) -> None:
    original = clauses._expand
    patch.setattr(clauses, "_expand", lambda *given: replace(original(*given), by_cursor_field=True))


def search_in_the_order_of_a_hidden_time(patch: Patch) -> None:
    original = decide._search_reach

    def reach(*arguments: Any, **named: Any) -> Any:
        return replace(original(*arguments, **named), shows_time=True)

    patch.setattr(decide, "_search_reach", reach)


def cover_what_rules_hide(patch: Patch) -> None:
    original = allowance.StreamScope.reach
    patch.setattr(allowance.StreamScope, "reach", lambda *given: replace(original(*given), with_hidden=True))


LEAKS = [
    filter_on_a_hidden_field,
    group_by_a_hidden_field,
    sum_of_a_hidden_field,
    select_a_hidden_field,
    order_by_a_hidden_field,
    count_what_is_outside_the_time,
    search_hidden_text,
    count_words_of_hidden_text,
    extract_from_hidden_text,
    search_outside_the_time,
    compare_hidden_text,
    compare_outside_the_time,
    rank_by_hidden_text,
    snippet_with_hidden_text,
    cursor_that_holds_a_hidden_number,
    error_that_tells_hidden_from_missing,
    schema_with_the_size_of_everything,
    has_more_because_of_hidden_records,
    reach_into_another_connection,
    forget_the_time,
    forget_the_chosen_records,
    changes_of_hidden_fields,
    window_into_a_hidden_field,
    extent_of_hidden_records,
    time_of_the_whole_record,
    time_of_the_whole_shelf,
    page_in_the_order_of_a_hidden_field,
    children_in_the_order_of_a_hidden_field,
    search_in_the_order_of_a_hidden_time,
    cover_what_rules_hide,
]
