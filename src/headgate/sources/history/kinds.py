"""What each kind of history gives: how its files are recognised, declared and read; and values they have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from headgate.model.instants import instant, iso
from headgate.sources.declaring import StreamSpec
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import json_values, object_of
from headgate.sources.per_file import ReadFile
from headgate.sources.protocol import Reject, Row

_FIRST_US = -62_135_596_800_000_000
_LAST_US = 253_402_300_799_999_999
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class HistoryKind:
    """One kind of history; it becomes one connection."""

    variant: str
    title: str
    streams: Sequence[StreamSpec]
    #: Looks at the name and the head of a file.
    is_of: Callable[[InputFile], bool]
    read: ReadFile


def json_rows(
    file: InputFile,
    content: IO[bytes],
    paths: frozenset[str],
    row: Callable[[str, dict[str, Any]], list[Row]],
) -> Iterator[Row | Reject]:
    """Read the objects at some paths of a JSON file; one that becomes no row is rejected."""
    for number, found in enumerate(json_values(content, paths), 1):
        place = f"{file.name}, entry {number}"
        if found.problem is not None:
            yield Reject(place, found.problem)
            continue
        rows = row(found.path, object_of(found.value))
        yield from rows or [Reject(place, "It has no time, or nothing else that can be read.")]


def iso_of(value: Any) -> str | None:
    """Read a time that is written as text, also with a space before its zone."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    head, space, zone = text.rpartition(" ")
    at = instant(head + zone if space and zone[:1] in {"+", "-"} else text)
    return None if at is None else iso(at)


def iso_us(microseconds: Any) -> str | None:
    """Write microseconds since 1970 as text, unless no calendar has such a day."""
    is_time = isinstance(microseconds, int) and _FIRST_US <= microseconds <= _LAST_US
    return iso(microseconds) if is_time else None


def number_of(value: Any) -> float | None:
    """Read a number, also one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value) if not isinstance(value, str) or len(value) <= 40 else math.nan  # noqa: PLR2004
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < _MOST else None
