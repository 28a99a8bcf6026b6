"""The one rule for fields: every clause of every query asks here before it names a field."""

from __future__ import annotations

from headgate.errors import FieldNotGranted, HeadgateError, InvalidRequest, InvalidSort, UnknownField
from headgate.model.declaration import Field
from headgate.model.ids import FieldName
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import FILTERS, Use


def authorize(scope: StreamScope, name: FieldName, use: Use) -> Field:
    """Return the field, if this access may use it so.

    For clients a field that is not granted and one that does not exist are the same.
    """
    capability = scope.capability.fields.get(name)
    if capability is None:
        raise _invisible(scope, name, use)
    if not capability.usable(use):
        raise _unusable(scope, name, use)
    return capability.field


def _invisible(scope: StreamScope, name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SELECT and name == "*":
        return InvalidRequest("fields names fields one by one; '*' is not one.", param="fields")
    if scope.is_owner:
        return UnknownField(f"The stream has no field '{name}'.", param=_PARAMS[use])
    return FieldNotGranted(f"Field '{name}' is outside this grant.", param=_PARAMS[use])


def _unusable(scope: StreamScope, name: FieldName, use: Use) -> HeadgateError:
    if use is Use.SORT:
        return InvalidSort(f"The stream is not ordered by '{name}'.", param="sort")
    param, hint = _PARAMS[use], _fields_with(scope, use)
    if use not in FILTERS:
        return InvalidRequest(f"'{name}' is not declared for {use.value}.", param=param, hint=hint)
    operators = scope.capability.fields[name].operators
    if use is Use.EXACT_FILTER and operators:
        hint = f"'{name}' has a range ({', '.join(operators)}). {hint}"
    return InvalidRequest(f"'{name}' has no {use.value.replace('_', ' ')}.", param=param, hint=hint)


def _fields_with(scope: StreamScope, use: Use) -> str:
    """Name the fields that this access may use so, as many as a hint has room for."""
    names = [name for name, capability in scope.capability.fields.items() if capability.usable(use)]
    param, words = _PARAMS[use], use.value.replace("_", " ")
    if not names:
        return f"No field of this stream can be used so; leave {param} out."
    rest = "; call schema with the stream for the others" if len(names) > _MOST_NAMES else ""
    return f"In {param}, these fields have {words}: {', '.join(names[:_MOST_NAMES])}{rest}."


_MOST_NAMES = 20
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
