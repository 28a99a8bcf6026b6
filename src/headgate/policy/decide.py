"""Decide: an allowance and a query make a plan, or a refusal. Pure; nothing here has seen a record.

Every field that any clause names passes `authorize`, and a plan's reach comes from a scope alone. So a plan
cannot name what the grant does not hold, whatever the query was.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from headgate.errors import (
    AmbiguousSchemaDetail,
    BlobNotFound,
    InvalidArgument,
    InvalidCursor,
    InvalidRequest,
    InvalidWindow,
    NotFound,
)
from headgate.model.declaration import DAYS, ZONE_UNKNOWN
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.plan import (
    LINE_CHARS,
    MAX_QUERY_CHARS,
    SNIPPET_CHARS,
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    KeyPlan,
    MatchWindow,
    OffsetWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    TimeGroups,
    WindowPlan,
    parse_terms,
)
from headgate.model.query import (
    DEFAULT_CONTEXT_CHARS,
    DEFAULT_WINDOW_CHARS,
    MAX_CONTEXT_CHARS,
    MAX_GROUPS,
    MAX_PAGE,
    MAX_WINDOW_CHARS,
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    ExtractType,
    Granularity,
    ListQuery,
    Metric,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    WindowQuery,
)
from headgate.model.warning import ReadWarning, limit_clamped
from headgate.policy import clauses, cursors
from headgate.policy.allowance import Allowance, StreamScope, authorize
from headgate.policy.capability import Use
from headgate.policy.choose import ambiguous, choose, on_connection
from headgate.policy.clauses import search_filters, searched_scopes
from headgate.policy.cursors import Seals

#: For every hit of a page so many more are read, because some can be alike.
_AHEAD = 4
_Plan = TypeVar("_Plan")
_METRIC_USES = {
    Metric.SUM: Use.SUM,
    Metric.MIN: Use.MIN,
    Metric.MAX: Use.MAX,
    Metric.COUNT_DISTINCT: Use.COUNT_DISTINCT,
}


class Decision(msgspec.Struct, Generic[_Plan], frozen=True):
    """A plan, the scopes it was made under, and what the answer needs from the query."""

    plan: _Plan
    scopes: tuple[StreamScope, ...]
    warnings: tuple[ReadWarning, ...] = ()
    #: What cursors of the answer are bound to.
    binding: bytes = b""
    #: The text a window cursor was made for; another text ends it.
    digest: str | None = None


# Lists and changes


def decide_list(
    allowance: Allowance,
    query: ListQuery,
    seals: Seals,
    *,
    preview_chars: int | None = None,
    page_bytes: int | None = None,
) -> Decision[PagePlan]:
    _refuse_extras(allowance, filters=query.filters, expand=query.expand, view=query.view)
    named = {*(query.fields or ()), *(condition.field for condition in query.filters)}
    scope = choose(allowance, query.stream, query.connection_id, query.connector_key, named=named)
    limit, warnings = _page_limit(query.limit)
    binding = cursors.list_binding(allowance, query)
    plan = PagePlan(
        reach=scope.reach(clauses.select(scope, query.fields, query.view)),
        limit=limit,
        order=clauses.order(scope, query),
        by_cursor_field=scope.capability.sort_field is not None,
        filters=clauses.filters(scope, query.filters),
        after=None if query.cursor is None else cursors.open_position(seals, query.cursor, binding),
        count=query.count,
        with_extent=query.with_extent,
        expand=clauses.expand(allowance, scope, query.expand),
        preview_chars=preview_chars,
        page_bytes=page_bytes,
    )
    return Decision(plan, (scope,), warnings, binding)


def decide_changes(
    allowance: Allowance,
    query: ChangesQuery,
    seals: Seals,
    *,
    preview_chars: int | None = None,
    page_bytes: int | None = None,
) -> Decision[ChangesPlan]:
    """Decide on what changed in a stream; one session is about one connection."""
    scope = choose(allowance, query.stream, query.connection_id)
    if len(scope.connections) > 1:
        raise ambiguous(
            allowance.access,
            [scope],
            error=InvalidArgument,
            param="changes_since",
            hint="Changes are those of one connection: repeat the call with one connection_id of available_connections.",
        )
    limit, warnings = _page_limit(query.limit)
    reach = scope.reach(clauses.select(scope, query.fields))
    binding = cursors.session_binding(allowance, query)
    since = cursors.open_bookmark(seals, query.since, cursors.bookmark_binding(allowance, query)).since
    if query.cursor is None:
        plan = ChangesPlan(reach, limit, since)
    else:
        session = cursors.open_session(seals, query.cursor, binding)
        plan = ChangesPlan(reach, limit, session.since, session.horizon, session.after)
    plan = replace(plan, preview_chars=preview_chars, page_bytes=page_bytes)
    return Decision(plan, (scope,), warnings, binding)


# Single records, windows, files


def decide_record(
    allowance: Allowance, query: RecordQuery, *, preview_chars: int | None = None
) -> Decision[RecordPlan]:
    """Decide on one record. But for the record's id, the plan does not depend on which record it is."""
    _refuse_extras(allowance, expand=query.expand)
    scope = choose(allowance, query.stream, query.connection_id)
    reach = scope.reach(clauses.select(scope, query.fields))
    expand = clauses.expand(allowance, scope, query.expand)
    return Decision(RecordPlan(reach, query.record_id, expand, preview_chars), (scope,))


def decide_key(allowance: Allowance, query: RecordQuery | WindowQuery, digest: bytes) -> KeyPlan:
    """Decide where the key may be looked for of which a query has only the beginning."""
    scope = choose(allowance, query.stream, query.connection_id)
    return KeyPlan(whole(scope), query.record_id, digest)


def decide_window(allowance: Allowance, query: WindowQuery, seals: Seals) -> Decision[WindowPlan]:
    """Decide on a part of one field."""
    scope = choose(allowance, query.stream, query.connection_id)
    field = authorize(scope, query.field, Use.SELECT).name
    binding = cursors.window_binding(allowance, query.stream, query.record_id, field)
    digest = None
    if query.cursor is None:
        window = window_of(query)
    else:
        _refuse_window_mix(query)
        place = cursors.open_window(seals, query.cursor, binding)
        scope = _at_place(scope, place.connection_id)
        window = OffsetWindow(place.offset_chars, _window_limit(query, place.limit_chars))
        digest = place.digest
    plan = WindowPlan(scope.reach((field,)), query.record_id, field, window, query.as_json)
    return Decision(plan, (scope,), _window_warnings(query), binding, digest)


def decide_blob(allowance: Allowance, query: BlobQuery) -> Decision[BlobPlan]:
    """Decide on a file: it may be reached through any visible field that can hold a reference."""
    scopes = allowance.scopes
    if query.connection_id is not None:
        scopes = on_connection(scopes, query.connection_id)
    reaches = [(scope, _reference_fields(scope)) for scope in scopes]
    reached = [(scope, scope.reach(fields)) for scope, fields in reaches if fields]
    if not reached:
        raise BlobNotFound(param="blob_id")
    plan = BlobPlan(tuple(reach for _, reach in reached), query.blob_id)
    return Decision(plan, tuple(scope for scope, _ in reached))


# Numbers and words


def decide_aggregate(allowance: Allowance, query: AggregateQuery) -> Decision[AggregatePlan]:
    """Decide on a number, or one for each group."""
    _refuse_extras(allowance, filters=query.filters)
    keys = (query.field, query.group_by, query.group_by_time, *(query.in_fields or ()))
    named = {*(name for name in keys if name is not None), *(condition.field for condition in query.filters)}
    scope = choose(allowance, query.stream, query.connection_id, query.connector_key, named=named)
    if scope.capability.counts is None:
        raise NotFound(
            f"Stream '{scope.stream}' has no aggregations.",
            param="metric",
            hint="List its records with query_records; count=exact gives their number.",
        )
    _refuse_aggregate_mix(query)
    if allowance.refuses_extras:
        _refuse_aggregate_extras(query)
    if query.metric is Metric.COUNT and not scope.capability.counts:
        raise InvalidRequest("Records of this stream cannot be counted.", param="metric")
    plan = AggregatePlan(
        reach=scope.reach(tuple(scope.capability.fields)),
        metric=query.metric,
        field=_metric_field(scope, query),
        group_by=_groups(scope, query),
        then_by=None if query.group_by is None else _time_groups(scope, query),
        filters=clauses.filters(scope, query.filters),
        limit=query.limit,
        words=clauses.word_condition(scope, query),
        extract=clauses.text_value(scope, query),
    )
    return Decision(plan, (scope,))


def decide_search(
    allowance: Allowance, query: SearchQuery, seals: Seals, *, line_chars: int | None = None
) -> Decision[SearchPlan]:
    """Decide on a search; its plan may reach nothing, and then finds nothing.

    With ``line_chars`` hits bring along the visible fields of their stream's line, each cut to so many characters.
    """
    _refuse_extras(allowance, filters=query.filters)
    terms = parse_terms(query.q)
    scopes = searched_scopes(allowance, query)
    if query.filters and len(query.streams or ()) != 1:
        raise InvalidRequest("Filters need exactly one stream in streams.", param="filter")
    if query.limit == 0:
        _refuse_beside_counting(query)
    limit, warnings = _page_limit(query.limit, least=0)
    scopes, filters, partial = search_filters(scopes, query)
    binding = cursors.search_binding(allowance, query)
    # Hits that are alike have the same line.
    with_line = line_chars is not None or bool(query.collapse)
    plan = SearchPlan(
        reaches=tuple(_search_reach(scope, query.in_fields, with_line=with_line) for scope in scopes),
        terms=terms,
        limit=limit,
        filters=filters,
        after=None if query.cursor is None else cursors.open_hit(seals, query.cursor, binding),
        preview_chars=line_chars or (LINE_CHARS if query.collapse else None),
        sort=query.sort,
        mode=query.mode,
        or_words=query.or_words,
        ahead=min(limit * _AHEAD, MAX_PAGE) if query.collapse else 0,
        snippet_chars=line_chars or SNIPPET_CHARS,
    )
    return Decision(plan, scopes, (*warnings, *partial), binding)


# What there is


def decide_schema(allowance: Allowance, query: SchemaQuery) -> tuple[StreamScope, ...]:
    """Find the scopes of a schema document; none is an answer, not a refusal."""
    if query.exhaustive and query.stream is None:
        raise InvalidRequest(
            "detail=full needs a stream: find it with view=compact, then send stream and connection_id.",
            param="detail",
        )
    scopes = allowance.scopes if query.stream is None else allowance.by_stream.get(query.stream, ())
    if query.connector_key is not None:
        scopes = tuple(candidate for candidate in scopes if candidate.connector_key == query.connector_key)
    if query.connection_id is not None:
        scopes = tuple(
            part for candidate in scopes if (part := candidate.on(query.connection_id)) is not None
        )
    if query.exhaustive and sum(len(scope.connections) for scope in scopes) > 1:
        raise ambiguous(allowance.access, scopes, error=AmbiguousSchemaDetail)
    return scopes


def decide_streams(allowance: Allowance, connection_id: ConnectionId | None) -> tuple[StreamScope, ...]:
    return allowance.scopes if connection_id is None else on_connection(allowance.scopes, connection_id)


def decide_stream(
    allowance: Allowance, stream: StreamName, connection_id: ConnectionId | None
) -> StreamScope:
    """Find the scope of the description of a stream."""
    return choose(allowance, stream, connection_id)


def whole(scope: StreamScope) -> Reach:
    """Reach everything a scope holds, to count it."""
    return scope.reach(tuple(scope.capability.fields))


# The parts of a decision


def _refuse_extras(
    allowance: Allowance,
    *,
    filters: Sequence[object] = (),
    expand: Sequence[object] = (),
    view: str | None = None,
) -> None:
    if not allowance.refuses_extras:
        return
    for param, value in (("filter", filters), ("expand", expand), ("view", view)):
        if value:
            raise InvalidRequest(f"{param} is not open to clients here.", param=param)


def _refuse_beside_counting(query: SearchQuery) -> None:
    """Refuse what has no matches to count, or counts them from the middle."""
    if query.mode is not SearchMode.LEXICAL:
        raise InvalidRequest("limit 0 counts matches by words: it needs lexical search.", param="limit")
    if query.cursor is not None:
        raise InvalidRequest("limit 0 counts all matches: it takes no cursor.", param="cursor")


def _page_limit(limit: int, *, least: int = 1) -> tuple[int, tuple[ReadWarning, ...]]:
    if limit < least:
        raise InvalidRequest(f"limit must be at least {least}.", param="limit")
    if limit > MAX_PAGE:
        return MAX_PAGE, (limit_clamped("limit", limit, MAX_PAGE),)
    return limit, ()


def _reference_fields(scope: StreamScope) -> tuple[FieldName, ...]:
    return tuple(
        name for name, capability in scope.capability.fields.items() if not capability.field.kind.is_scalar
    )


def _at_place(scope: StreamScope, connection_id: ConnectionId) -> StreamScope:
    narrowed = scope.on(connection_id)
    if narrowed is None:
        raise InvalidCursor(param="cursor")
    return narrowed


def window_of(query: WindowQuery) -> OffsetWindow | MatchWindow:
    """Read which window a query without a cursor asks for."""
    if query.q is None:
        if query.before_chars is not None or query.after_chars is not None:
            raise InvalidWindow("before_chars and after_chars need q.", param="q")
        offset = query.offset_chars or 0
        if offset < 0:
            raise InvalidWindow("offset_chars must be at least 0.", param="offset_chars")
        return OffsetWindow(offset, _window_limit(query, DEFAULT_WINDOW_CHARS))
    if query.offset_chars is not None:
        raise InvalidWindow("Pass q or offset_chars, not both.", param="offset_chars")
    if not 1 <= len(query.q) <= MAX_QUERY_CHARS:
        raise InvalidWindow(f"q must have 1 to {MAX_QUERY_CHARS} characters.", param="q")
    before, after = _context("before_chars", query.before_chars), _context("after_chars", query.after_chars)
    limit = _window_limit(query, before + len(query.q) + after)
    if query.before_chars is None:
        # Default context must not push the match out of a short window.
        before = min(before, max(0, limit - len(query.q)) // 2)
    return MatchWindow(query.q, before, limit)


def _context(param: str, chars: int | None) -> int:
    if chars is None:
        return DEFAULT_CONTEXT_CHARS
    if not 0 <= chars <= MAX_CONTEXT_CHARS:
        raise InvalidWindow(f"{param} must be 0 to {MAX_CONTEXT_CHARS}.", param=param)
    return chars


def _window_limit(query: WindowQuery, default: int) -> int:
    chars = default if query.limit_chars is None else query.limit_chars
    if chars < 1:
        raise InvalidWindow("limit_chars must be at least 1.", param="limit_chars")
    return min(chars, MAX_WINDOW_CHARS)


def _window_warnings(query: WindowQuery) -> tuple[ReadWarning, ...]:
    if query.limit_chars is None or query.limit_chars <= MAX_WINDOW_CHARS:
        return ()
    return (limit_clamped("limit_chars", query.limit_chars, MAX_WINDOW_CHARS),)


def _refuse_window_mix(query: WindowQuery) -> None:
    for param in ("offset_chars", "q", "before_chars", "after_chars"):
        if getattr(query, param) is not None:
            raise InvalidWindow(f"Pass a cursor or {param}, not both.", param=param)


_GRANULARITIES = ", ".join(Granularity)


def _refuse_aggregate_mix(query: AggregateQuery) -> None:
    _refuse_text_mix(query)
    is_count = query.metric is Metric.COUNT
    by_time = query.group_by_time is not None
    for broken, param, message in (
        (is_count and query.field is not None, "field", "count takes no field."),
        (
            not is_count and query.field is None and query.extract is None,
            "field",
            f"{query.metric} needs a field, of those that schema lists for {query.metric}.",
        ),
        (
            by_time and query.granularity is None,
            "granularity",
            f"group_by_time needs a granularity: {_GRANULARITIES}.",
        ),
        (not by_time and query.granularity is not None, "granularity", "granularity needs group_by_time."),
        (not by_time and query.time_zone is not None, "time_zone", "time_zone needs group_by_time."),
        (not 1 <= query.limit <= MAX_GROUPS, "limit", f"limit must be 1 to {MAX_GROUPS}."),
    ):
        if broken:
            raise InvalidRequest(message, param=param)


def _refuse_text_mix(query: AggregateQuery) -> None:
    extract = query.extract
    if extract is None:
        if query.in_fields is not None and query.q is None:
            raise InvalidRequest("in needs q or extract.", param="in")
        return
    is_date = extract.type is ExtractType.DATE
    for broken, param, message in (
        (query.field is not None, "field", "extract takes the place of field."),
        (query.metric is Metric.COUNT_DISTINCT, "metric", "Of extract there is count, sum, min and max."),
        (is_date and query.metric is Metric.SUM, "metric", "Dates have no sum."),
    ):
        if broken:
            raise InvalidRequest(message, param=param)


def _refuse_aggregate_extras(query: AggregateQuery) -> None:
    """Refuse what the core protocol does not have: words, grouped metrics other than counts, and two keys."""
    for param in ("q", "extract"):
        if getattr(query, param) is not None:
            raise InvalidRequest(f"{param} is not open to clients here.", param=param)
    by_value, by_time = query.group_by is not None, query.group_by_time is not None
    if by_value and by_time:
        raise InvalidRequest("Pass group_by or group_by_time, not both.", param="group_by")
    if (by_value or by_time) and query.metric is not Metric.COUNT:
        raise InvalidRequest("Only count can be grouped.", param="metric")


def _metric_field(scope: StreamScope, query: AggregateQuery) -> FieldName | None:
    if query.field is None:
        return None
    return authorize(scope, query.field, _METRIC_USES[query.metric]).name


def _groups(scope: StreamScope, query: AggregateQuery) -> FieldName | TimeGroups | None:
    if query.group_by is not None:
        return authorize(scope, query.group_by, Use.GROUP_BY).name
    return _time_groups(scope, query)


def _time_groups(scope: StreamScope, query: AggregateQuery) -> TimeGroups | None:
    if query.group_by_time is None or query.granularity is None:
        return None
    name = authorize(scope, query.group_by_time, Use.GROUP_BY_TIME).name
    return TimeGroups(name, query.granularity, _time_zone(query.time_zone or "UTC"))


def _time_zone(name: str) -> str:
    try:
        return zoneinfo.ZoneInfo(name).key
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidRequest(
            "time_zone must be an IANA name such as Europe/Paris.", param="time_zone"
        ) from None


def _search_reach(
    scope: StreamScope, in_fields: Sequence[FieldName] | None, *, with_line: bool
) -> SearchReach:
    # Hits without a line bring only the time they are shown with, if it is the one of their order.
    shown = {scope.capability.sort_field}
    if with_line:
        shown |= {scope.declaration.consent_time_field, *scope.declaration.line.fields}
    fields = tuple(name for name in scope.capability.fields if name in shown)
    searched, compared = (
        tuple(authorize(scope, name, use).name for name in clauses.searched_fields(scope, use, in_fields))
        for use in (Use.LEXICAL_SEARCH, Use.SEMANTIC_SEARCH)
    )
    quoted = clauses.quoted_fields(scope, searched, in_fields)
    # By meaning a quoted text is as near as the one that it quotes, which would be found twice.
    compared = tuple(name for name in compared if name not in quoted)
    time_field = scope.declaration.consent_time_field or scope.declaration.cursor_field
    declared = scope.declaration
    return SearchReach(
        scope.reach(fields),
        searched,
        shows_time=time_field in scope.capability.fields,
        meaning_fields=compared,
        quoted_fields=quoted,
        sender_fields=tuple(name for name in declared.line.who[:1] if name in searched),
        has_instants=declared.times not in {DAYS, ZONE_UNKNOWN},
    )
