"""The references of a batch: a step takes values out of the answers of earlier ones. Checked before anything runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headgate.errors import CallError
from headgate.mcp.gateway.selecting import Selection, matching, parse_path, select
from headgate.operations.registry import MAX_ENTRIES

_REFERENCE = re.compile(r"\$(?P<step>\d{1,3}|item)(?P<path>(?:[.\[].*)?)", re.DOTALL)
#: In an input, where "$5" and "$1.50" are amounts of money.
_IN_INPUT = re.compile(r"\$item|\$(?:\d{1,3}|item)(?:\.[^\W\d]|\[).*", re.DOTALL)


def check_plan(calls: Sequence[Mapping[str, Any]]) -> None:
    """Check that every reference is to an earlier step, and every path can be read.

    Raises:
        CallError: one is not.
    """
    for place, call in enumerate(calls, 1):
        each = call.get("for_each")
        if each is not None:
            _check(each, place, has_item=False)
        elif "where" in call or "limit" in call:
            raise _wrong(place, "where and limit choose among the values of for_each")
        for text in _texts(call.get("input", {})):
            if _IN_INPUT.fullmatch(text):
                _check(text, place, has_item=each is not None)
        if "select" in call:
            parse_path(call["select"])


def _check(text: str, place: int, *, has_item: bool) -> None:
    match = _REFERENCE.fullmatch(text)
    if match is None or (match["step"] == "item" and not has_item):
        raise _wrong(place, f"{text[:80]!a} is no path into an earlier answer, such as $1.items")
    if match["step"] != "item" and not 1 <= int(match["step"]) < place:
        raise _wrong(place, f"{text[:80]!a} is not the answer of an earlier call")
    parse_path(match["path"])


def _wrong(place: int, why: str) -> CallError:
    return CallError("INVALID_INPUT", f"Call {place}: {why}. Nothing was run.")


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case list():
            return [text for item in cast("list[Any]", value) for text in _texts(item)]
        case dict():
            return [text for item in cast("dict[str, Any]", value).values() for text in _texts(item)]
        case _:
            return []


def items_of(call: Mapping[str, Any], answers: Sequence[Any]) -> list[Any]:
    """Return the values that a step with ``for_each`` runs for.

    Raises:
        CallError: the path leads to no list, or to more values than may be run.
    """
    rows = _selected(call["for_each"], answers, None).rows
    if rows is None:
        raise CallError("INVALID_INPUT", f"{call['for_each'][:80]!a} leads to no list.")
    chosen = matching(rows, call.get("where", {}), ())[: call.get("limit", MAX_ENTRIES + 1)]
    if len(chosen) > MAX_ENTRIES:
        raise CallError(
            "RESOURCE_LIMIT",
            f"There are {len(chosen)} values or more; give a limit of at most {MAX_ENTRIES}.",
        )
    return chosen


def filled(value: Any, answers: Sequence[Any], item: Any = None) -> Any:
    """Put what references lead to in their place.

    Raises:
        CallError: one leads nowhere, or to an answer that is an error.
    """
    match value:
        case str():
            if not _IN_INPUT.fullmatch(value):
                return value
            selection = _selected(value, answers, item)
            return list(selection.values) if selection.is_many else selection.values[0]
        case list():
            return [filled(inner, answers, item) for inner in cast("list[Any]", value)]
        case dict():
            return {
                name: filled(inner, answers, item) for name, inner in cast("dict[str, Any]", value).items()
            }
        case _:
            return value


def _selected(text: str, answers: Sequence[Any], item: Any) -> Selection:
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    if match["step"] == "item":
        return select(item, parse_path(match["path"]))
    answer = answers[int(match["step"]) - 1]
    if isinstance(answer, CallError):
        raise CallError("INVALID_INPUT", f"Call {match['step']} failed, so {text[:80]!a} has no value.")
    return select(answer, parse_path(match["path"]))
