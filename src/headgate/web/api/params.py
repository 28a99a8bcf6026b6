"""Read query parameters by their definition; what is not defined is refused, never ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from headgate.errors import InvalidArgument, InvalidFieldPath, InvalidRequest, InvalidWindow
from headgate.model.declaration import RangeOperator
from headgate.model.ids import ConnectionId, FieldName, connection_id, field_name
from headgate.model.query import ExactFilter, ExpandRequest, Filter, RangeFilter
from headgate.model.warning import ReadWarning, WarningCode
from headgate.web.api.definitions import Endpoint, Param, Shape

MAX_PARAMS = 200
_OLD_NAMES = {"connector_instance_id": "connection_id", "connector_id": "connector_key"}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_BRACKET = re.compile(r"(filter|expand_limit)\[(.+)\]")
_RANGE = re.compile(r"(.+)\]\[(\w+)")


class Given(msgspec.Struct, frozen=True):
    """The parameters of one request."""

    values: Mapping[str, Any]
    filters: tuple[Filter, ...] = ()
    expand_limits: Mapping[str, int] = {}
    warnings: tuple[ReadWarning, ...] = ()

    def get(self, name: str) -> Any:
        """Return a parameter's value, or None."""
        return self.values.get(name)

    def connection(self) -> ConnectionId | None:
        """Return the connection that was chosen."""
        chosen = self.values.get("connection_id")
        return None if chosen is None else connection_id(chosen)

    def fields(self) -> tuple[FieldName, ...] | None:
        """Return the fields that were asked for."""
        names = self.values.get("fields")
        return None if names is None else tuple(field_name(name) for name in names)

    def expand(self) -> tuple[ExpandRequest, ...]:
        """Return the relations that were asked for, with their limits."""
        names: list[str] = self.values.get("expand") or []
        for name in self.expand_limits:
            if name not in names:
                raise InvalidRequest(f"expand_limit of '{name}' needs expand={name}.", param="expand_limit")
        return tuple(ExpandRequest(name, self.expand_limits.get(name)) for name in names)


#: No parameters at all, as with most reads of one record.
NOTHING = Given({})


def read_params(endpoint: Endpoint, query_string: bytes) -> Given:
    """Read a query string."""
    if not query_string and not endpoint.requires:
        return NOTHING
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=MAX_PARAMS,
            strict_parsing=False,
        )
    except ValueError:
        raise InvalidRequest("The query string cannot be read.") from None
    known = {param.name: param for param in endpoint.params}
    values: dict[str, Any] = {}
    filters: list[Filter] = []
    limits: dict[str, int] = {}
    warnings: list[ReadWarning] = []
    for name, text in pairs:
        bracket = _BRACKET.fullmatch(name)
        if bracket is not None and bracket[1] in known:
            if bracket[1] == "filter":
                filters.append(_filter(bracket[2], text))
            else:
                limits[bracket[2]] = _integer("expand_limit", text)
            continue
        _take(known, values, name, text, warnings)
    return _checked(endpoint, values, Given(values, tuple(filters), limits, tuple(warnings)))


def _take(
    known: Mapping[str, Param], values: dict[str, Any], name: str, text: str, warnings: list[ReadWarning]
) -> None:
    param = known.get(name) or known.get(name.removesuffix("[]"))
    if param is None or (name != param.name and param.shape is not Shape.REPEATED):
        raise InvalidRequest(f"There is no parameter '{name[:80]}' here.", param=name[:80])
    match param.shape:
        case Shape.FILTER | Shape.LIMITS:
            raise InvalidRequest(f"{param.name} needs a name in brackets.", param=param.name)
        case Shape.NAMES:
            found = [one for one in text.split(",") if one]
            values[param.name] = [*values.get(param.name, ()), *found]
        case Shape.REPEATED:
            values[param.name] = [*values.get(param.name, ()), text]
        case _:
            if param.name in values:
                raise InvalidRequest(f"{param.name} was given twice.", param=param.name)
            values[param.name] = _single(param, text, warnings)


def _single(param: Param, text: str, warnings: list[ReadWarning]) -> Any:
    if param.shape is Shape.INTEGER:
        return _integer(param.name, text)
    if param.shape is Shape.LENIENT_INTEGER:
        return _lenient(param, text, warnings)
    if param.choices and text not in param.choices:
        raise InvalidRequest(f"{param.name} must be one of {', '.join(param.choices)}.", param=param.name)
    return text


def _integer(name: str, text: str) -> int:
    if _INTEGER.fullmatch(text):
        return int(text)
    error = InvalidWindow if name.endswith("_chars") else InvalidRequest
    raise error(f"{name} must be a whole number.", param=name)


def _lenient(param: Param, text: str, warnings: list[ReadWarning]) -> int | None:
    if _INTEGER.fullmatch(text) and int(text) > 0:
        return int(text)
    warnings.append(
        ReadWarning(
            WarningCode.COMPATIBILITY_FALLBACK, f"{param.name} cannot be used; the default was.", param.name
        )
    )
    return None


def _filter(inside: str, text: str) -> Filter:
    ranged = _RANGE.fullmatch(inside)
    if ranged is None:
        return ExactFilter(field_name(inside), text)
    try:
        operator = RangeOperator(ranged[2])
    except ValueError:
        raise InvalidRequest("A range filter is gte, gt, lte or lt.", param="filter") from None
    return RangeFilter(field_name(ranged[1]), operator, text)


def _checked(endpoint: Endpoint, values: dict[str, Any], given: Given) -> Given:
    warnings = given.warnings
    for old, new in _OLD_NAMES.items():
        value = values.pop(old, None)
        if value is None:
            continue
        if values.setdefault(new, value) != value:
            raise InvalidArgument(f"{new} and {old} disagree.", param=old)
        message = f"{old} is an old name; send {new}."
        warnings = (*warnings, ReadWarning(WarningCode.DEPRECATED_ALIAS, message, old))
    for param in endpoint.requires:
        if not values.get(param.name):
            raise _missing(endpoint, param)
    return Given(values, given.filters, given.expand_limits, warnings)


def _missing(endpoint: Endpoint, param: Param) -> InvalidRequest:
    if endpoint.id == "window":
        return InvalidFieldPath("field is required.", param=param.name)
    if param.choices:
        return InvalidRequest(f"{param.name} must be one of {', '.join(param.choices)}.", param=param.name)
    return InvalidRequest(f"{param.name} is required.", param=param.name)
