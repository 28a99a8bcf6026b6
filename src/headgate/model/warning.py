"""Warnings of an answer; they change neither its status nor its meaning."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

_MOST_NAMES = 12
_FEW_NAMES = 3


class WarningCode(StrEnum):
    """The closed set of warnings."""

    LIMIT_CLAMPED = "limit_clamped"
    DEPRECATED_ALIAS = "deprecated_alias_used"
    COMPATIBILITY_FALLBACK = "compatibility_fallback"
    PAGE_CUT = "page_cut"
    RECORD_DAMAGED = "record_damaged"
    INDEX_BUILDING = "index_building"
    SEARCH_PARTIAL = "search_partial"
    BUDGET_REACHED = "budget_reached"
    FILTER_PARTIAL = "filter_partial"
    VALUE_UNKNOWN = "value_unknown"
    FILTER_EMPTY = "filter_empty"
    PERIOD_COVERED = "period_covered"


@dataclass(frozen=True, slots=True)
class ReadWarning:
    """One warning of an answer."""

    code: WarningCode
    message: str
    param: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        members: dict[str, Any] = {"code": self.code.value, "message": self.message}
        if self.param is not None:
            members["param"] = self.param
        if self.detail:
            members["detail"] = dict(self.detail)
        return members


def limit_clamped(param: str, requested: int, most: int) -> ReadWarning:
    """Build the warning for a limit that was reduced to the maximum."""
    return ReadWarning(
        WarningCode.LIMIT_CLAMPED,
        f"{param} was cut to {most}.",
        param=param,
        detail={"requested_limit": requested, "max_limit": most},
    )


def page_cut(returned: int) -> ReadWarning:
    """Build the warning for a page that has fewer records than it could, because they are large."""
    return ReadWarning(
        WarningCode.PAGE_CUT,
        f"The page ends after {returned} records because they are large; next_cursor goes on with the next one.",
        param="limit",
        detail={"returned": returned},
    )


def filter_partial(
    fields: Sequence[str], connectors: Sequence[str], connections: Sequence[str]
) -> ReadWarning:
    """Build the warning for a filter whose fields some sources of the stream do not have."""
    return ReadWarning(
        WarningCode.FILTER_PARTIAL,
        f"Left out: records of {_first(connectors)}, which cannot be filtered by {_first(fields)}.",
        param="filter",
        detail={"left_out_connections": list(connections[:_MOST_NAMES])},
    )


def value_unknown(field: str, near: Sequence[str]) -> ReadWarning:
    """Build the note that no visible record has the value of a filter, with the visible values nearest to it."""
    listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in near)
    return ReadWarning(
        WarningCode.VALUE_UNKNOWN,
        f"No record has that {field}. Near: {listed}.",
        param="filter",
        detail={"near": list(near)},
    )


def filter_empty(stream: str) -> ReadWarning:
    """Build the note that a search found nothing because no visible record passes its filter."""
    return ReadWarning(
        WarningCode.FILTER_EMPTY,
        f"No record of {stream} passes the filter, whatever its words.",
        param="filter",
    )


def period_covered(stream: str, start: str | None, end: str | None) -> ReadWarning:
    """Build the note that says of which period every record of a stream is there."""
    since = "the beginning" if start is None else start
    until = "the last import" if end is None else end
    return ReadWarning(WarningCode.PERIOD_COVERED, f"{stream} is complete from {since} to {until}.")


def _first(names: Sequence[str]) -> str:
    """Write the first names of a list."""
    return ", ".join([*names[:_FEW_NAMES], *(["…"] if len(names) > _FEW_NAMES else [])])


def index_building() -> ReadWarning:
    """Build the warning for a search that cannot find every record yet."""
    return ReadWarning(
        WarningCode.INDEX_BUILDING,
        "The search index is being made: of the records that are not in it yet, only the newest that hold all words as "
        "they were typed are found. Search again later.",
    )


def search_partial() -> ReadWarning:
    """Build the warning for a search whose words stand in more places than one search reads."""
    return ReadWarning(
        WarningCode.SEARCH_PARTIAL,
        "The words of q stand in more places than one search reads: records may be missing, or not be left out, "
        "and counts may be wrong. Search for fewer or longer words.",
        param="q",
    )


def budget_reached(returned: int, next_day: str) -> ReadWarning:
    """Build the warning for an answer that was cut to what the grant may still show that day."""
    return ReadWarning(
        WarningCode.BUDGET_REACHED,
        f"Cut to the {returned} records left of the grant's daily budget; go on after {next_day}.",
        detail={"returned": returned, "next_day_at": next_day},
    )


def records_damaged(record_ids: Sequence[str]) -> tuple[ReadWarning, ...]:
    """Build a warning for each record that is left out because it is not what was stored."""
    return tuple(
        ReadWarning(
            WarningCode.RECORD_DAMAGED,
            f"Record {json.dumps(key, ensure_ascii=False)} is damaged and left out; the owner can restore it.",
            detail={"record_id": key},
        )
        for key in dict.fromkeys(record_ids)
    )
