"""The clauses of a query, each made concrete under a scope: select, filter, sort, expand, and what a search looks at."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from headgate.errors import (
    HeadgateError,
    InsufficientScope,
    InvalidExpand,
    InvalidRequest,
    InvalidSort,
    TimeRangeExceeded,
    Unsupported,
)
from headgate.model.declaration import Field, FieldKind, RangeOperator
from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName
from headgate.model.instants import instant, is_date
from headgate.model.plan import ExpandPlan, TextValue, WordCondition, parse_terms, phrase_of
from headgate.model.query import (
    AggregateQuery,
    ExactFilter,
    ExpandRequest,
    Filter,
    ListQuery,
    Order,
    RangeFilter,
    Scalar,
    SearchMode,
    SearchQuery,
)
from headgate.model.warning import ReadWarning, filter_partial
from headgate.nearest import near_or_all, quoted
from headgate.policy.allowance import Allowance, StreamScope, authorize, invisible, not_sorted
from headgate.policy.capability import RelationCapability, Use
from headgate.policy.choose import ambiguous, choose, join, no_connection, of_connector

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,32}(\.[0-9]{0,32})?|\.[0-9]{1,32})([eE][+-]?[0-9]{1,3})?")
_LARGEST = 2**63 - 1
_MAX_TEXT = 4096


def exact_value(field: Field, value: Scalar) -> Scalar:
    """Read the value an exact filter compares with."""
    match field.kind:
        case FieldKind.BOOLEAN:
            return _boolean(field, value)
        case FieldKind.TEXT:
            return _text(field, value)
        case _:
            return ordered_value(field, value)


def ordered_value(field: Field, value: Scalar) -> int | float:
    """Read the value a range filter compares with."""
    if isinstance(value, bool):
        raise _refused(field)
    if field.kind.is_time:
        return _time(field, value)
    return _integer(field, value) if field.kind is FieldKind.INTEGER else _number(field, value)


def _boolean(field: Field, value: Scalar) -> bool:
    if isinstance(value, bool):
        return value
    if value in {"true", "false"}:
        return value == "true"
    raise _refused(field)


def _text(field: Field, value: Scalar) -> str:
    text = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) > _MAX_TEXT or "\0" in text:
        raise _refused(field)
    return text


def _time(field: Field, value: str | float) -> int:
    moment = instant(value) if isinstance(value, str) else None
    if moment is None or (field.kind is FieldKind.DATE and not is_date(str(value))):
        raise _refused(field)
    return moment


def _integer(field: Field, value: str | float) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise _refused(field)
        value = int(value)
    if isinstance(value, float):
        if not value.is_integer():
            raise _refused(field)
        value = int(value)
    if abs(value) > _LARGEST:
        raise _refused(field)
    return value


def _number(field: Field, value: str | float) -> int | float:
    if isinstance(value, str):
        if not _NUMBER.fullmatch(value):
            raise _refused(field)
        value = int(value) if _INTEGER.fullmatch(value) else float(value)
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise _refused(field)
    return value


_EXPECTED = {
    FieldKind.TEXT: "a text",
    FieldKind.INTEGER: "a whole number",
    FieldKind.NUMBER: "a number",
    FieldKind.BOOLEAN: "true or false",
    FieldKind.DATE: "a date such as 2026-04-01",
    FieldKind.DATE_TIME: "a time such as 2026-04-01T09:30:00Z",
    FieldKind.JSON: "nothing: it cannot be compared",
}


def _refused(field: Field) -> InvalidRequest:
    return InvalidRequest(f"'{field.name}' is compared with {_EXPECTED[field.kind]}.", param="filter")


MAX_FILTERS = 16
_LOWER = {RangeOperator.GTE, RangeOperator.GT}


def select(
    scope: StreamScope, fields: Sequence[FieldName] | None, view: str | None = None
) -> tuple[FieldName, ...]:
    """Resolve the selected fields: the asked ones, a view's, or all that are visible."""
    if view is not None:
        if fields is not None:
            raise InvalidRequest("Pass fields or a view, not both.", param="view")
        if view not in scope.capability.views:
            offered = near_or_all(view, list(scope.capability.views), "Views")
            raise InvalidRequest(f"{scope.stream} has no view {quoted(view)}.{offered}", param="view")
        fields = scope.capability.views[view].fields
    if fields is None:
        return tuple(scope.capability.fields)
    return tuple(dict.fromkeys(authorize(scope, name, Use.SELECT).name for name in fields))


def filters(scope: StreamScope, requested: Sequence[Filter]) -> tuple[Filter, ...]:
    """Authorize every filter and read its value by the kind of its field."""
    if len(requested) > MAX_FILTERS:
        raise InvalidRequest(f"At most {MAX_FILTERS} filters are allowed.", param="filter")
    authorized = tuple(_filter(scope, condition) for condition in requested)
    if scope.time is not None:
        for condition in authorized:
            _keep_inside(condition, scope.time)
    return authorized


def _filter(scope: StreamScope, condition: Filter) -> Filter:
    if isinstance(condition, ExactFilter):
        field = authorize(scope, condition.field, Use.EXACT_FILTER)
        return ExactFilter(field.name, exact_value(field, condition.value))
    field = authorize(scope, condition.field, Use.RANGE_FILTER)
    operators = scope.capability.fields[field.name].operators
    if condition.operator not in operators:
        raise InvalidRequest(
            f"'{field.name}' has no range filter '{condition.operator}'.",
            param="filter",
            hint=f"In filter, '{field.name}' takes {', '.join(operators)}.",
        )
    return RangeFilter(field.name, condition.operator, ordered_value(field, condition.value))


def _keep_inside(condition: Filter, time: TimeConstraint) -> None:
    if condition.field != time.field or not isinstance(condition.value, int):
        return
    is_exact = isinstance(condition, ExactFilter)
    starts_early = time.since is not None and condition.value < time.since
    ends_late = time.until is not None and condition.value > time.until
    bounds_start = is_exact or condition.operator in _LOWER
    bounds_end = is_exact or condition.operator not in _LOWER
    if (starts_early and bounds_start) or (ends_late and bounds_end):
        raise TimeRangeExceeded(param="filter")


def order(scope: StreamScope, query: ListQuery) -> Order:
    """Resolve the order from ``sort`` and ``order`` together."""
    if query.sort is None:
        return query.order or Order.DESC
    direction = Order.DESC if query.sort.startswith("-") else Order.ASC
    name = FieldName(query.sort.removeprefix("-"))
    if scope.is_owner and name not in scope.capability.fields:
        raise not_sorted(scope, name)
    authorize(scope, name, Use.SORT)
    if query.order not in {None, direction}:
        raise InvalidSort("sort and order disagree.", param="sort")
    return direction


def expand(
    allowance: Allowance, scope: StreamScope, requests: Sequence[ExpandRequest]
) -> tuple[ExpandPlan, ...]:
    """Make a plan for the children of every relation that was asked for."""
    if len({request.name for request in requests}) != len(requests):
        raise InvalidExpand("A relation was asked for twice.", param="expand")
    return tuple(_expand(allowance, scope, request) for request in requests)


def _expand(allowance: Allowance, scope: StreamScope, request: ExpandRequest) -> ExpandPlan:
    capability = scope.capability.relations.get(request.name)
    if capability is None:
        raise _no_relation(scope, request.name)
    relation = capability.relation
    child = _child(allowance, scope, capability)
    authorize(child, relation.foreign_key, Use.SELECT)
    return ExpandPlan(
        name=relation.name,
        child=child.reach(tuple(child.capability.fields)),
        foreign_key=relation.foreign_key,
        cardinality=relation.cardinality,
        limit=_expand_limit(capability, request),
        by_cursor_field=child.capability.sort_field is not None,
    )


def _no_relation(scope: StreamScope, name: str) -> HeadgateError:
    """Make the refusal of a relation; one into a hidden stream and one that does not exist are the same to a client."""
    message = f"{scope.stream} has no relation {quoted(name)} that you may read."
    others = [relation for relation in scope.capability.relations if relation != name]
    message += near_or_all(name, others, "Relations")
    return (InvalidExpand if scope.is_owner else InsufficientScope)(message, param="expand")


def _child(allowance: Allowance, scope: StreamScope, capability: RelationCapability) -> StreamScope:
    """Find the child stream under the same grants and source, on connections that both reach."""
    parts = scope.parts or (scope,)
    children = [_child_of_grant(allowance, part, capability) for part in parts]
    joined = join(children)
    if joined is None:
        raise ambiguous(allowance.access, parts)
    return joined


def _child_of_grant(allowance: Allowance, scope: StreamScope, capability: RelationCapability) -> StreamScope:
    for other in allowance.by_stream.get(capability.relation.stream, ()):
        if (other.grant_id, other.connector_key) == (scope.grant_id, scope.connector_key):
            shared = [connection for connection in other.connections if connection in scope.connections]
            if shared:
                return other.among(shared)
    raise _no_relation(scope, capability.relation.name)


def _expand_limit(capability: RelationCapability, request: ExpandRequest) -> int:
    expansion = capability.expansion
    if request.limit is None:
        return expansion.default_limit
    if not 1 <= request.limit <= expansion.max_limit:
        raise InvalidExpand(
            f"expand_limit of '{request.name}' must be 1 to {expansion.max_limit}.", param="expand_limit"
        )
    return request.limit


_USES: Mapping[SearchMode, Sequence[Use]] = {
    SearchMode.LEXICAL: (Use.LEXICAL_SEARCH,),
    SearchMode.SEMANTIC: (Use.SEMANTIC_SEARCH,),
    SearchMode.HYBRID: (Use.LEXICAL_SEARCH, Use.SEMANTIC_SEARCH),
}


def searched_scopes(allowance: Allowance, query: SearchQuery) -> tuple[StreamScope, ...]:
    if query.mode is not SearchMode.LEXICAL and not allowance.rules.has_meaning:
        raise Unsupported(f"This server has no {query.mode} search.", param="mode")
    scopes = _named(allowance, query)
    if query.in_fields is not None:
        _check_searched(scopes, query.in_fields, _USES[query.mode])
    searched = tuple(
        scope
        for scope in scopes
        if any(searched_fields(scope, use, query.in_fields) for use in _USES[query.mode])
    )
    return searched if query.streams is not None else tuple(_without_repeats(searched, query))


def _without_repeats(scopes: Sequence[StreamScope], query: SearchQuery) -> Iterator[StreamScope]:
    """Leave out a stream on connections where another that is searched as well has all its words.

    The grants and the query decide alone, whatever is stored.
    """
    for scope in scopes:
        repeated = {
            connection.id
            for other in scopes
            if _has_words_of(other, scope, query)
            for connection in other.connections
        }
        rest = [connection for connection in scope.connections if connection.id not in repeated]
        if rest:
            yield scope if len(rest) == len(scope.connections) else scope.among(rest)


def _has_words_of(scope: StreamScope, other: StreamScope, query: SearchQuery) -> bool:
    """Return whether a stream shows every record that another repeats, and all fields in which that is searched."""
    if (scope.connector_key, scope.stream) != (other.connector_key, other.declaration.repeats):
        return False
    is_whole = scope.time is None and scope.resources is None
    return is_whole and all(
        set(searched_fields(other, use, query.in_fields)) <= set(searched_fields(scope, use, query.in_fields))
        for use in _USES[query.mode]
    )


def _named(allowance: Allowance, query: SearchQuery) -> tuple[StreamScope, ...]:
    scopes = allowance.scopes
    if query.streams is not None:
        if not allowance.access.is_owner:
            for name in query.streams:
                # The refusal is the same as for reading it.
                if name not in allowance.by_stream:
                    choose(allowance, name, None)
        scopes = tuple(scope for scope in scopes if scope.stream in query.streams)
    if query.connector_key is not None:
        # A connector without such streams is searched, and has no hits; one that is not visible is refused.
        of_connector(allowance.scopes, query.connector_key)
        scopes = tuple(scope for scope in scopes if scope.connector_key == query.connector_key)
    if query.connection_id is None:
        return scopes
    if not any(scope.on(query.connection_id) for scope in allowance.scopes):
        raise no_connection(allowance.scopes, query.connection_id)
    return tuple(part for scope in scopes if (part := scope.on(query.connection_id)) is not None)


def searched_fields(scope: StreamScope, use: Use, names: Sequence[FieldName] | None) -> tuple[FieldName, ...]:
    """Return the fields that a search looks at: all that can be searched so, or those of them that were named."""
    usable = scope.capability.with_use(use)
    return usable if names is None else tuple(name for name in usable if name in names)


def quoted_fields(
    scope: StreamScope, searched: Sequence[FieldName], names: Sequence[FieldName] | None
) -> tuple[FieldName, ...]:
    """Return those of the searched fields that hold quoted text: none if they were named, or are all there is."""
    if names is not None:
        return ()
    quoted = tuple(name for name in searched if name == scope.declaration.line.quoted)
    return quoted if len(quoted) < len(searched) else ()


def _check_searched(scopes: Sequence[StreamScope], names: Sequence[FieldName], uses: Sequence[Use]) -> None:
    """Refuse a name that no searched stream has as a field, or only as one that cannot be searched."""
    if not names:
        raise InvalidRequest("in needs the name of a field.", param="in")
    for name in names:
        if scopes and not any(searched_fields(scope, use, [name]) for scope in scopes for use in uses):
            # One that is visible somewhere is refused for its use, every other one in the same words.
            seen = (scope for scope in scopes if name in scope.capability.fields)
            authorize(next(seen, scopes[0]), name, uses[0])


def word_condition(scope: StreamScope, query: AggregateQuery) -> WordCondition | None:
    """Resolve the words that counted records hold, and the fields that hold them."""
    if query.q is None:
        return None
    fields = _text_fields(scope, query.in_fields, "q")
    return WordCondition(parse_terms(query.q), fields, quoted_fields(scope, fields, query.in_fields))


def text_value(scope: StreamScope, query: AggregateQuery) -> TextValue | None:
    """Resolve the value that is read from texts, and the fields that it is looked for in."""
    if query.extract is None:
        return None
    fields = _text_fields(scope, query.in_fields, "extract")
    quoted = quoted_fields(scope, fields, query.in_fields)
    own = tuple(name for name in fields if name not in quoted)
    return TextValue(phrase_of(query.extract.after), query.extract.type, own)


def _text_fields(scope: StreamScope, names: Sequence[FieldName] | None, param: str) -> tuple[FieldName, ...]:
    if names is not None:
        _check_searched([scope], names, [Use.LEXICAL_SEARCH])
    fields = searched_fields(scope, Use.LEXICAL_SEARCH, names)
    if not fields:
        raise InvalidRequest(
            f"Stream '{scope.stream}' has no field that can be searched by words.",
            param=param,
            hint=f"Leave {param} out, and narrow with filter.",
        )
    return tuple(authorize(scope, name, Use.LEXICAL_SEARCH).name for name in fields)


def search_filters(
    scopes: Sequence[StreamScope], query: SearchQuery
) -> tuple[tuple[StreamScope, ...], tuple[Filter, ...], tuple[ReadWarning, ...]]:
    """Read the filters of a search, and leave the scopes that have their fields; they mean the same in each.

    Sources of one stream name may have different fields: a search goes on where the filter applies, and says so.
    """
    uses = [
        (condition.field, Use.EXACT_FILTER if isinstance(condition, ExactFilter) else Use.RANGE_FILTER)
        for condition in query.filters
    ]
    fitting = tuple(scope for scope in scopes if all(_is_usable(scope, *use) for use in uses))
    if scopes and not fitting:
        raise _fits_nowhere(scopes, uses)
    meanings = {filters(scope, query.filters) for scope in fitting}
    if len(meanings) > 1:
        raise InvalidRequest("The filter means different things in several sources.", param="filter")
    left_out = [scope for scope in scopes if scope not in fitting]
    warnings = (_filter_partial(left_out, uses),) if left_out else ()
    return fitting, next(iter(meanings), ()), warnings


def _is_usable(scope: StreamScope, name: FieldName, use: Use) -> bool:
    capability = scope.capability.fields.get(name)
    return capability is not None and capability.usable(use)


def _fits_nowhere(scopes: Sequence[StreamScope], uses: Sequence[tuple[FieldName, Use]]) -> HeadgateError:
    name, use = next((use for use in uses if not any(_is_usable(scope, *use) for scope in scopes)), uses[0])
    visible = next((scope for scope in scopes if name in scope.capability.fields), None)
    if visible is None:
        return invisible(scopes, name, use)
    try:
        authorize(visible, name, use)
    except HeadgateError as error:
        return error
    return InvalidRequest("No source has all fields of the filter.", param="filter")


def _filter_partial(left_out: Sequence[StreamScope], uses: Sequence[tuple[FieldName, Use]]) -> ReadWarning:
    lacking = dict.fromkeys(
        name for scope in left_out for name, use in uses if not _is_usable(scope, name, use)
    )
    return filter_partial(
        list(lacking),
        list(dict.fromkeys(scope.connector_key for scope in left_out)),
        [connection.id for scope in left_out for connection in scope.connections],
    )
