"""One spelling for each JSON value (RFC 8785), and its fingerprint.

Key order, blanks and the spelling of numbers do not matter; anything else does. Integers beyond what a
double holds are outside the RFC and keep all their digits, so that no two of them look alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

# ECMAScript writes numbers between these powers of ten without an exponent.
_PLAIN_FROM, _PLAIN_TO = -6, 21
_MAX_DEPTH = 192


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical spelling, as ``sha256:...``."""
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def canonical_json(value: Any) -> bytes:
    """Spell a JSON value the one canonical way."""
    # Half a character cannot be UTF-8; it is kept as it is, because a fingerprint must not fail on it.
    return "".join(_pieces(value, _MAX_DEPTH)).encode("utf-8", "surrogatepass")


def _pieces(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        raise ValueError("The value is nested too deeply.")
    match value:
        case None | bool() | str():
            yield json.dumps(value, ensure_ascii=False)
        case int():
            yield str(int(value))
        case float():
            yield _number(value)
        case list() | tuple():
            yield from _list(cast("list[Any]", value), depth - 1)
        case dict():
            yield from _object(cast("dict[str, Any]", value), depth - 1)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON.")


def _list(value: list[Any], depth: int) -> Iterator[str]:
    for index, inner in enumerate(value):
        yield "," if index else "["
        yield from _pieces(inner, depth)
    yield "]" if value else "[]"


def _object(value: dict[str, Any], depth: int) -> Iterator[str]:
    # The RFC sorts by UTF-16 units, which differs from code points beyond the first plane.
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    for index, name in enumerate(names):
        yield "," if index else "{"
        yield json.dumps(name, ensure_ascii=False)
        yield ":"
        yield from _pieces(value[name], depth)
    yield "}" if value else "{}"


def _number(value: float) -> str:
    if value in {float("inf"), float("-inf")} or value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise ValueError("A number that is not finite is not JSON.")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + cast("int", exponent)
    return ("-" if sign else "") + _spell(text, point)


def _spell(digits: str, point: int) -> str:
    """Write digits with the decimal point after so many of them, as ECMAScript does."""
    if _PLAIN_FROM < point <= 0:
        return f"0.{'0' * -point}{digits}"
    if 0 < point <= _PLAIN_TO:
        whole = digits.ljust(point, "0")
        return whole if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"
