"""Filter values, read by the kind of their field: times become microseconds, numbers numbers."""

from __future__ import annotations

import math
import re

from headgate.errors import InvalidRequest
from headgate.model.declaration import Field, FieldKind
from headgate.model.instants import instant, is_date
from headgate.model.query import Scalar

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
