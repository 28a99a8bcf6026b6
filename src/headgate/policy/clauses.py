"""The clauses of a query, each made concrete under a scope: select, filter, sort, expand."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.errors import (
    InsufficientScope,
    InvalidExpand,
    InvalidRequest,
    InvalidSort,
    TimeRangeExceeded,
)
from headgate.model.declaration import RangeOperator
from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName
from headgate.model.plan import ExpandPlan
from headgate.model.query import ExactFilter, ExpandRequest, Filter, ListQuery, Order, RangeFilter
from headgate.policy.allowance import Allowance, StreamScope
from headgate.policy.authorize import authorize
from headgate.policy.capability import RelationCapability, Use
from headgate.policy.choose import ambiguous, join
from headgate.policy.values import exact_value, ordered_value

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
            raise InvalidRequest(f"The stream has no view '{view}'.", param="view")
        fields = scope.capability.views[view].fields
    if fields is None:
        return tuple(scope.capability.fields)
    return tuple(dict.fromkeys(authorize(scope, name, Use.SELECT).name for name in fields))


def filters(scope: StreamScope, asked: Sequence[Filter]) -> tuple[Filter, ...]:
    """Authorize every filter and read its value by the kind of its field."""
    if len(asked) > MAX_FILTERS:
        raise InvalidRequest(f"At most {MAX_FILTERS} filters are allowed.", param="filter")
    made = tuple(_filter(scope, one) for one in asked)
    if scope.time is not None:
        for one in made:
            _keep_inside(one, scope.time)
    return made


def _filter(scope: StreamScope, asked: Filter) -> Filter:
    if isinstance(asked, ExactFilter):
        field = authorize(scope, asked.field, Use.EXACT_FILTER)
        return ExactFilter(field.name, exact_value(field, asked.value))
    field = authorize(scope, asked.field, Use.RANGE_FILTER)
    operators = scope.capability.fields[field.name].operators
    if asked.operator not in operators:
        raise InvalidRequest(
            f"'{field.name}' has no range filter '{asked.operator}'.",
            param="filter",
            hint=f"In filter, '{field.name}' takes {', '.join(operators)}.",
        )
    return RangeFilter(field.name, asked.operator, ordered_value(field, asked.value))


def _keep_inside(made: Filter, time: TimeConstraint) -> None:
    if made.field != time.field or not isinstance(made.value, int):
        return
    is_exact = isinstance(made, ExactFilter)
    starts_early = time.since is not None and made.value < time.since
    ends_late = time.until is not None and made.value > time.until
    bounds_start = is_exact or made.operator in _LOWER
    bounds_end = is_exact or made.operator not in _LOWER
    if (starts_early and bounds_start) or (ends_late and bounds_end):
        raise TimeRangeExceeded(param="filter")


def order(scope: StreamScope, query: ListQuery) -> Order:
    """Resolve the order from ``sort`` and ``order`` together."""
    if query.sort is None:
        return query.order or Order.DESC
    asked = Order.DESC if query.sort.startswith("-") else Order.ASC
    name = FieldName(query.sort.removeprefix("-"))
    if scope.is_owner and name not in scope.capability.fields:
        raise InvalidSort(f"The stream is not ordered by '{name}'.", param="sort")
    authorize(scope, name, Use.SORT)
    if query.order not in {None, asked}:
        raise InvalidSort("sort and order disagree.", param="sort")
    return asked


def expand(
    allowance: Allowance, scope: StreamScope, asked: Sequence[ExpandRequest]
) -> tuple[ExpandPlan, ...]:
    """Make a plan for the children of every relation that was asked for."""
    if len({request.name for request in asked}) != len(asked):
        raise InvalidExpand("A relation was asked for twice.", param="expand")
    return tuple(_expand(allowance, scope, request) for request in asked)


def _expand(allowance: Allowance, scope: StreamScope, asked: ExpandRequest) -> ExpandPlan:
    capability = scope.capability.relations.get(asked.name)
    if capability is None:
        if scope.is_owner:
            raise InvalidExpand(f"The stream has no relation '{asked.name}' to expand.", param="expand")
        # A relation into a hidden stream and one that does not exist are the same to a client.
        raise InsufficientScope(f"Relation '{asked.name}' is outside this grant.", param="expand")
    relation = capability.relation
    child = _child(allowance, scope, capability)
    authorize(child, relation.foreign_key, Use.SELECT)
    return ExpandPlan(
        name=relation.name,
        child=child.reach(tuple(child.capability.fields)),
        foreign_key=relation.foreign_key,
        cardinality=relation.cardinality,
        limit=_expand_limit(capability, asked),
        by_cursor_field=child.capability.sort_field is not None,
    )


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
    raise InsufficientScope(f"Relation '{capability.relation.name}' is outside this grant.", param="expand")


def _expand_limit(capability: RelationCapability, asked: ExpandRequest) -> int:
    expansion = capability.expansion
    if asked.limit is None:
        return expansion.default_limit
    if not 1 <= asked.limit <= expansion.max_limit:
        raise InvalidExpand(
            f"expand_limit of '{asked.name}' must be 1 to {expansion.max_limit}.", param="expand_limit"
        )
    return asked.limit
