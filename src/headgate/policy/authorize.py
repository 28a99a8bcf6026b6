"""The one rule for fields: every clause of every query asks here before it names a field."""

from __future__ import annotations

from headgate.errors import FieldNotGranted, HeadgateError, InvalidRequest, InvalidSort, UnknownField
from headgate.model.declaration import Field
from headgate.model.ids import FieldName
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import FILTERS, Use


def authorize(scope: StreamScope, name: FieldName, use: Use) -> Field:
    """Give the field, if this access may use it so.

    For clients a field that is not granted and one that does not exist are the same.

    Raises:
        FieldNotGranted: a client may not see it.
        UnknownField: the owner's stream has no such field.
        InvalidSort: it is not the field the stream is ordered by.
        InvalidRequest: it is not declared for this use, or clients may not make it here.
    """
    capability = scope.capability.fields.get(name)
    if capability is None:
        raise _invisible(scope, name, use)
    if not capability.usable(use):
        raise _unusable(name, use)
    return capability.field


def _invisible(scope: StreamScope, name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SELECT and name == "*":
        return InvalidRequest("fields names fields one by one; '*' is not one.", param="fields")
    if scope.is_owner:
        return UnknownField(f"The stream has no field '{name}'.", param=_PARAMS[use])
    return FieldNotGranted(f"Field '{name}' is outside this grant.", param=_PARAMS[use])


def _unusable(name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SORT:
        return InvalidSort(f"The stream is not ordered by '{name}'.", param="sort")
    if use in FILTERS:
        return InvalidRequest(f"'{name}' cannot be filtered so.", param="filter", hint=_FILTER_HINT)
    hint = f"Use a field that the schema of the stream flags with a={use.value}."
    return InvalidRequest(f"'{name}' is not declared for {use.value}.", param=_PARAMS[use], hint=hint)


_FILTER_HINT = "Filter by a field that the schema of the stream flags with eq, or by a range of one with r= and its operators."
_PARAMS = {
    Use.SELECT: "fields",
    Use.SORT: "sort",
    Use.EXACT_FILTER: "filter",
    Use.RANGE_FILTER: "filter",
    Use.LEXICAL_SEARCH: "q",
    Use.SEMANTIC_SEARCH: "q",
    Use.COUNT_DISTINCT: "field",
    Use.GROUP_BY: "group_by",
    Use.GROUP_BY_TIME: "group_by_time",
    Use.SUM: "field",
    Use.MIN: "field",
    Use.MAX: "field",
}
