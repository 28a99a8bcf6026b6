"""What ``read`` answers: the calls of the last hour, a stored answer in parts, or a resource that one links to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from headgate.errors import CallError
from headgate.mcp.gateway.results import (
    ANSWER_BYTES,
    ToolResult,
    answer_of,
    document_of,
    links_of,
    structure,
    text,
)
from headgate.mcp.gateway.selecting import (
    Selection,
    kind_of,
    matching,
    parse_path,
    pruned,
    rows_that_fit,
    select,
    shape_of,
    with_fields,
)
from headgate.mcp.gateway.stored import ANSWERED, SENT, ListedCall, StoredCall, StoredCalls

_ROWS, _TEXT_CHARS = 25, 8_000
_ROW_BYTES = ANSWER_BYTES - 1_000
_LISTED_CALLS = 20
#: A call that was sent this long ago and has no answer never gets one.
_LONGEST_SECONDS = 60
_PLACE_CHARS = 200
_MINUTE = 60

#: Shows a call that ended with an error, or an answer as a whole.
Shown = Callable[[StoredCall, str], ToolResult]
ReadLink = Callable[[str, str], Awaitable[Sequence[Mapping[str, Any]]]]


async def read_stored(
    calls: StoredCalls, caller: str | None, arguments: Mapping[str, Any], shown: Shown, read_link: ReadLink
) -> ToolResult:
    """Answer ``read``.

    Raises:
        CallError: there is no such answer, or no such part of it.
    """
    handle: str | None = arguments.get("answer")
    if handle is None:
        if caller is None:
            raise CallError("INVALID_INPUT", "Name the answer to read.")
        return text(_list(await calls.calls(caller, _LISTED_CALLS), calls.clock()))
    call = await calls.find(caller, handle)
    if call.outcome == SENT:
        raise _no_answer(calls.clock() - call.at)
    if "uri" in arguments:
        return await _linked(calls, caller, call, arguments["uri"], read_link)
    if len(arguments) == 1:
        return await asyncio.to_thread(shown, call, handle)
    # An answer has up to 8 MB.
    return await asyncio.to_thread(lambda: part_of(document_of(call), handle, arguments))


def _no_answer(seconds: float) -> CallError:
    if seconds < _LONGEST_SECONDS:
        return CallError("TIMEOUT", "It has not ended yet. Read it again in some seconds.", retryable=True)
    return CallError(
        "MCP_TRANSPORT_ERROR",
        "It was sent, and no answer came: it may have run. Look what became of it before you call it again.",
        details={"maybe_executed": True},
    )


def _list(calls: Sequence[ListedCall], now: float) -> str:
    if not calls:
        return "You called nothing in the last hour."
    return "\n".join(_line(call, now) for call in calls)


def _line(call: ListedCall, now: float) -> str:
    minutes = int((now - call.at) // _MINUTE)
    ended = f"{call.outcome}, {call.size} bytes" if call.outcome == ANSWERED else call.outcome
    if call.outcome == SENT and now - call.at >= _LONGEST_SECONDS:
        ended = "no answer came: it may have run"
    return f'read(answer="{call.handle}"): {call.operation}, {minutes} min ago, {ended}'


async def _linked(
    calls: StoredCalls, caller: str | None, call: StoredCall, uri: str, read_link: ReadLink
) -> ToolResult:
    if uri not in links_of(call.content):
        raise CallError("NOT_FOUND", "This answer links to no such resource.")
    blocks = await read_link(call.operation, uri)
    resource = StoredCall(f"{call.operation}: {uri}"[:500], calls.clock(), ANSWERED, content=blocks)
    handle = await calls.begin(caller, resource.operation)
    await calls.end(caller, handle, resource)
    return answer_of(resource, handle)


def part_of(document: Any, handle: str, arguments: Mapping[str, Any]) -> ToolResult:
    """Return a part of an answer.

    Raises:
        CallError: the path leads nowhere, or what is asked for does not suit what is there.
    """
    path: str = arguments.get("path", "$")
    selection = select(document, parse_path(path))
    value = selection.values[0] if selection.values else None
    if not selection.is_many and isinstance(value, str):
        return text(_text_part(value, handle, arguments))
    facts = {"answer": handle, "path": path}
    rows = selection.rows
    if rows is None:
        return structure({**facts, **_single(selection, arguments)})
    words = arguments.get("q", "").casefold().split()
    rows = [
        with_fields(row, arguments.get("fields", ()))
        for row in matching(rows, arguments.get("where", {}), words)
    ]
    offset = arguments.get("offset", 0)
    window = rows_that_fit(rows, offset, arguments.get("limit", _ROWS), _ROW_BYTES)
    document = {**facts, "count": len(rows), "offset": offset, "rows": window.rows}
    if window.is_cut:
        document["note"] = "The row is long and was cut inside: go on with a path into it, or with fields."
    if window.next_offset is not None:
        document["next_offset"] = window.next_offset
    return structure(document)


def _single(selection: Selection, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if "where" in arguments or "q" in arguments:
        raise CallError(
            "INVALID_INPUT", f"where and q choose rows of a list; here is {kind_of(selection.values[0])}."
        )
    value = with_fields(selection.values[0], arguments.get("fields", ()))
    if len(msgspec.json.encode(value)) <= _ROW_BYTES:
        return {"value": value}
    return {"shape": shape_of(value), "beginning": pruned(value, _ROW_BYTES // 2)}


def _text_part(words: str, handle: str, arguments: Mapping[str, Any]) -> str:
    if "where" in arguments or "fields" in arguments:
        raise CallError("INVALID_INPUT", "Here is a text: read it with offset and limit, or with q.")
    if "q" in arguments:
        return _places(words, arguments["q"], arguments.get("offset", 0))
    offset = min(arguments.get("offset", 0), len(words))
    window = words[offset : offset + min(arguments.get("limit", _TEXT_CHARS), _TEXT_CHARS)]
    # What JSON writes in several bytes must fit as well.
    while len(msgspec.json.encode(window)) > _ROW_BYTES:
        window = window[: len(window) * 3 // 4]
    end = offset + len(window)
    more = f'read(answer="{handle}", offset={end}) goes on.' if end < len(words) else "This is the end."
    return f"Characters {offset} to {end} of {len(words)}. {more}\n\n{window}"


def _places(words: str, query: str, offset: int) -> str:
    wanted = query.casefold().split()
    lines: list[str] = []
    size = 0
    for place, line in _lines(words):
        folded = line.casefold()
        if place < offset or not wanted or not all(word in folded for word in wanted):
            continue
        near = max(0, folded.find(wanted[0]) - _PLACE_CHARS // 2)
        shown = f"[{place + near}] {line[near : near + _PLACE_CHARS].strip()}"
        size += len(msgspec.json.encode(shown))
        if size > _ROW_BYTES:
            return "\n".join([*lines, f"There are more: offset={place}."])
        lines.append(shown)
    if not lines:
        return f"No line has all of: {query[:100]}."
    return "\n".join(["Lines that have all words, each with its offset:", *lines])


def _lines(words: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"[^\n]+", words):
        for start in range(match.start(), match.end(), 2_000):
            yield start, words[start : min(start + 2_000, match.end())]
