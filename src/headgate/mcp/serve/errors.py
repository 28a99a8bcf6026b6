"""Failures as results that a model can act on, and as data of a protocol error.

Below this edge a failure names a parameter of REST; here it gets the name that the tool has for it, and a remedy that
is a call of a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.errors import (
    HeadgateError,
    IntegrityBroken,
    InvalidRequest,
    QueryTimeout,
    StorageUnusable,
)
from headgate.mcp.serve.results import Outcome
from headgate.mcp.serve.tools import TOOLS
from headgate.model.wire import Json
from headgate.text.quote import json_text

_MESSAGE_CHARS = 1000
_NAME_CHARS = 64
#: Caps error details: a remote server controls their size.
_DATA_BYTES = 20_000
_INPUTS: Mapping[str, Json] = {str(tool["name"]): tool["inputSchema"]["properties"] for tool in TOOLS}
#: Failures whose hints are commands, which an agent cannot run.
_OPERATORS = (StorageUnusable, IntegrityBroken)
#: The argument of a tool in which a parameter of REST is given, where their names differ.
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "search": {"stream": "streams"},
    "fetch": {"stream": "id", "record_id": "id"},
    "read_record_field": {"field": "field_path", "fields": "field_path"},
}


def refused(error: HeadgateError, tool: str) -> Outcome:
    """Answer that the arguments cannot be used; no read was made."""
    return _outcome({"error": {"type": "adapter_error", **_facts(error, tool)}})


def failed(error: HeadgateError, tool: str, provider_url: str, request_id: str | None = None) -> Outcome:
    """Answer with the failure of the resource server, its code and data unchanged."""
    return _outcome(failure(error, provider_url, request_id, tool=tool))


def failure(
    error: HeadgateError, provider_url: str, request_id: str | None = None, *, tool: str | None = None
) -> dict[str, Any]:
    """Write a failure of the resource server as a structure."""
    request_id = error.data.get("request_id", request_id)
    return {
        "error": {"type": error.type[:_NAME_CHARS], **_facts(error, tool)},
        "provider_url": provider_url,
        "http_status": error.status,
        "request_id": request_id if isinstance(request_id, str) else None,
    }


def _facts(error: HeadgateError, tool: str | None) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "code": error.code[:_NAME_CHARS],
        "message": error.message[:_MESSAGE_CHARS],
    }
    param = error.param if tool is None else _argument(tool, error.param)
    hint = error.hint if tool is None else _remedy(tool, param, error)
    if param is not None:
        facts["param"] = param[:_NAME_CHARS]
    if hint:
        facts["hint"] = hint[:_MESSAGE_CHARS]
    # The request is named beside the failure.
    return {**facts, **_fitting(error.data, without={*facts, "request_id"})}


def _fitting(data: Mapping[str, Any], without: set[str]) -> dict[str, Any]:
    """Return the data of a failure that fit in their order; a list loses its last entries before it is left out."""
    found: dict[str, Any] = {}
    space = _DATA_BYTES
    for key, value in data.items():
        shown = value
        while isinstance(shown, list) and shown and _size(key, shown) > space:
            shown = cast("list[Any]", shown)[: len(cast("list[Any]", shown)) // 2]
        if key not in without and _size(key, shown) <= space:
            found[key] = shown
            space -= _size(key, shown)
    return found


def _size(key: str, value: Any) -> int:
    return len(msgspec.json.encode({key: value}))


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


def _outcome(structured: dict[str, Any]) -> Outcome:
    return Outcome(structured, json_text(structured), is_error=True)
