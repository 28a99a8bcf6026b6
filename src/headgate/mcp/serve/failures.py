"""Failures as outcomes of tools: the code, the argument, a sentence that names the next call, and what a retry needs.

Below this edge a failure names a parameter of REST; here it gets the name that the tool has for it, and a remedy that
is a call of a tool. A model pays for each byte of both channels: a failure is short in each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from headgate.errors import HeadgateError, IntegrityBroken, InvalidRequest, QueryTimeout, StorageUnusable
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.tools import TOOLS
from headgate.model.wire import Json
from headgate.text.writing import cut, json_text, name as written_name, size

#: A failure in one channel, and one that lists connections in both together.
FAILURE_BYTES = 400
CHOICES_BYTES = 2_500
_RESOURCE_BYTES = 2_000
#: What is left for a hint must be worth reading.
_LEAST_HINT = 24
_NAME_CHARS = 64
_NAME_BYTES = 64
_CHOICES = "available_connections"
_MAX_CHOICES = 12
#: What a failure that lists connections has beside them.
_HEAD_BYTES = 640
_ID_CHARS = 200
#: The members of an entry, those last that are left out first, and the parts of its line.
_MEMBERS = ("connection_id", "connector_key", "grant_id", "display_name", "stream")
_LINE = ("connection_id", "connector_key", "display_name")
#: What a retry needs beside the sentence, and of another server's data nothing else.
_RETRY = (
    _CHOICES,
    "retry_with",
    "available_connection_count",
    "available_connections_truncated",
    "available_connections_omitted",
    "discovery_hint",
    "retry_after_seconds",
)
#: What the text of a long list leaves out: its sentence says it.
_COUNTS = _RETRY[2:5]
_INPUTS: Mapping[str, Json] = {str(tool["name"]): tool["inputSchema"]["properties"] for tool in TOOLS}
#: Failures whose hints are commands, which an agent cannot run.
_OPERATORS = (StorageUnusable, IntegrityBroken)
#: The argument of a tool in which a parameter of REST is given, where their names differ.
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "aggregate": {"q": "query"},
    "search": {"q": "query", "stream": "streams"},
    "fetch": {"stream": "id", "record_id": "id"},
    "read_record_field": {"field": "field_path", "fields": "field_path"},
}


def refused(error: HeadgateError, tool: str) -> Outcome:
    """Answer that the arguments cannot be used; no read was made."""
    return _outcome({"error": {"type": "adapter_error", **_facts(error, tool)}})


def failed(error: HeadgateError, tool: str | None, request_id: str | None = None) -> Outcome:
    """Answer with the failure of the resource server, its code unchanged; without a tool, of a resource."""
    request_id = error.data.get("request_id", request_id)
    named = {"request_id": _within(request_id, _NAME_BYTES)} if isinstance(request_id, str) else {}
    facts = {"type": _within(error.type, _NAME_BYTES), **_facts(error, tool)}
    # What a resource cannot be read for goes into the error of the protocol, once.
    limit = FAILURE_BYTES if tool is not None else _RESOURCE_BYTES
    return _outcome({"error": facts, "http_status": error.status, **named}, limit)


def _facts(error: HeadgateError, tool: str | None) -> dict[str, Any]:
    param = error.param if tool is None else _argument(tool, error.param)
    hint = error.hint if tool is None else _remedy(tool, param, error)
    return {
        "code": _within(error.code, _NAME_BYTES),
        "message": error.message,
        **({} if param is None else {"param": _within(param, _NAME_BYTES)}),
        **({"hint": hint} if hint else {}),
        **{key: short for key in _RETRY if (short := _short(error.data.get(key))) is not None},
    }


def _short(value: Any) -> Any:
    """Return what another call needs of the data of a failure; another server can send anything."""
    if isinstance(value, str):
        return cut(value, _ID_CHARS)
    return cast("Any", value) if isinstance(value, int | list) else None


def _argument(tool: str, param: str | None) -> str | None:
    if param is None:
        return None
    return _ARGUMENTS.get(tool, {}).get(param, param)


def _remedy(tool: str, param: str | None, error: HeadgateError) -> str:
    """Replace the hint that only says to correct something by the description of what is to be corrected."""
    if isinstance(error, _OPERATORS) and not isinstance(error, QueryTimeout):
        return f"No other call helps. For the operator of the server: {error.hint}"
    if error.hint != InvalidRequest.hint:
        return error.hint
    inputs = _INPUTS[tool]
    if param not in inputs:
        return f"Correct the arguments and call {tool} again; it takes {', '.join(inputs)}."
    return f"Correct {param} and call {tool} again. {param}: {inputs[param]['description']}"


# What fits


def _outcome(structured: Json, limit_bytes: int = FAILURE_BYTES) -> Outcome:
    entries = [entry for entry in _listed(structured["error"].pop(_CHOICES, None)) if _is_choice(entry)]
    if entries:
        return _with_choices(structured, entries[:_MAX_CHOICES])
    fitted = _fitted(structured, limit_bytes)
    return Outcome(fitted, json_text(fitted), is_error=True)


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _is_choice(entry: Any) -> bool:
    """Return whether an entry names a connection; another server can send anything."""
    named: Any = cast("Json", entry).get("connection_id") if isinstance(entry, dict) else None
    return isinstance(named, str) and len(named) <= _ID_CHARS


def _with_choices(structured: Json, entries: Sequence[Json]) -> Outcome:
    """Answer with connections to choose from: with less of each, and at last with fewer, until both channels fit."""
    head = _fitted(structured, _HEAD_BYTES)
    brief = {key: value for key, value in head["error"].items() if key not in _COUNTS}
    ways = _ways(head, {**head, "error": brief}, entries)
    structure, text = next(ways)
    while size(json_text(structure)) + size(json_text(text)) > CHOICES_BYTES:
        following = next(ways, None)
        if following is None:
            break
        structure, text = following
    return Outcome(structure, json_text(text), is_error=True)


def _ways(head: Json, brief: Json, entries: Sequence[Json]) -> Iterator[tuple[Json, Json]]:
    """Write the structure and the text, each time shorter; a text that differs lists each connection in a line."""
    for members in (_MEMBERS, _MEMBERS[:-1]):
        same = _put(head, [_only(entry, members) for entry in entries])
        yield same, same
    for count in range(len(entries), 0, -1):
        for members, parts in ((_MEMBERS[:-1], _LINE), (_MEMBERS[:-2], _LINE), (_MEMBERS[:-2], _LINE[:-1])):
            some = entries[:count]
            yield (
                _put(
                    _counted(head, len(entries), len(entries) - count),
                    [_only(entry, members) for entry in some],
                ),
                _put(brief, [_choice_line(entry, parts) for entry in some]),
            )


def _counted(head: Json, entry_count: int, left_out: int) -> Json:
    """Count the entries that do not fit among those that were left out before."""
    if not left_out:
        return head
    total, _, omitted = (head["error"].get(name) for name in _COUNTS)
    before = omitted if isinstance(omitted, int) else 0
    total = total if isinstance(total, int) else entry_count
    counts = dict(zip(_COUNTS, (total, True, before + left_out), strict=True))
    return {**head, "error": {**head["error"], **counts}}


def _put(structured: Json, choices: Sequence[Any]) -> Json:
    return {**structured, "error": {**structured["error"], _CHOICES: list(choices)}}


def _only(entry: Json, members: Sequence[str]) -> Json:
    return {member: cut(str(entry[member]), _ID_CHARS) for member in members if entry.get(member) is not None}


def _choice_line(entry: Json, parts: Sequence[str]) -> str:
    return " ".join(written_name(cut(str(entry[part]), _NAME_CHARS)) for part in parts if entry.get(part))


def _fitted(structured: Json, limit_bytes: int) -> Json:
    """Cut the sentence of a failure to what a channel has room for, and leave the hint what is left of it."""
    error = dict(structured["error"])
    message, hint = error.get("message", ""), error.pop("hint", "")
    space = limit_bytes - size(json_text({**structured, "error": {**error, "message": ""}}))
    error["message"] = _within(message, space)
    space -= size(json_text(error["message"])) + len(',"hint":')
    if hint and space >= _LEAST_HINT:
        error["hint"] = _within(hint, space)
    return {**structured, "error": error}


def _within(text: str, limit_bytes: int) -> str:
    """Cut a text at the end of a word, so that it takes a number of bytes as JSON."""
    limit_chars = min(len(text), max(1, limit_bytes))
    short = text
    while size(json_text(short)) - 2 > limit_bytes and limit_chars > 1:
        limit_chars = min(limit_chars - 1, limit_chars * 7 // 8)
        short = cut(text, limit_chars)
    begun = short[:-1].rpartition(" ")[0]
    return f"{begun}…" if short != text and len(begun) > limit_chars // 2 else short
