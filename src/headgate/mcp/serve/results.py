"""Results and failures, as each version of the protocol carries them. Needs nothing of the SDK, which is slow to import.

Below this edge a failure names a parameter of REST; here it gets the name that the tool has for it, and a remedy that
is a call of a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from headgate.errors import HeadgateError, IntegrityBroken, InvalidRequest, QueryTimeout, StorageUnusable
from headgate.mcp.serve.tools import TOOLS
from headgate.model.wire import Json
from headgate.text.writing import UNTRUSTED, json_text


class Outcome(msgspec.Struct, frozen=True):
    """One answer of one tool."""

    #: Encoded already, where the size or the text needed that anyway.
    structured: Json | msgspec.Raw
    text: str
    is_error: bool = False
    #: Resource links, always after the text.
    links: tuple[Json, ...] = ()
    #: Whether the structure says itself that it holds texts of records; else the metadata of the answer do.
    has_trust: bool = False

    def wire(self) -> Json:
        """Write it as the result of ``tools/call``."""
        content: list[Json] = [{"type": "text", "text": self.text}, *self.links]
        # Left out, it means false; a model pays for every byte.
        failing = {"isError": True} if self.is_error else {}
        trust = {} if self.has_trust else {"_meta": dict(UNTRUSTED)}
        return {"content": content, "structuredContent": self.structured, **failing, **trust}

    def whole(self) -> Json:
        """Write it with every part decoded, as the SDK and a person take it."""
        encoded = self.structured
        if not isinstance(encoded, msgspec.Raw):
            encoded = msgspec.json.encode(encoded)
        return {**self.wire(), "structuredContent": msgspec.json.decode(encoded)}


def link(uri: str, name: str, *, mime_type: str | None = None, size: int | None = None) -> Json:
    """Write a link to a resource."""
    members: Json = {"type": "resource_link", "uri": uri, "name": name}
    if mime_type is not None:
        members["mimeType"] = mime_type
    return members if size is None else {**members, "size": size}


SERVER_NAME = "headgate"
TITLE = "Headgate"
#: Versions without a handshake: every request names its version.
MODERN = frozenset({"2026-07-28"})
#: Versions with a handshake that have structured content. Only the SDK serves the ones before.
LEGACY = frozenset({"2025-06-18", "2025-11-25"})
#: Of the id of a request, which every answer repeats.
MAX_ID_CHARS = 256
#: How long a client may keep a list.
LIST_TTL_MS = 300_000
_FIRST_WITH_LINKS = "2025-06-18"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """How the server names itself."""

    version: str
    name: str = SERVER_NAME
    #: The address of its icon.
    icon: str | None = None

    @property
    def stamp(self) -> Json:
        """The short form that goes with every answer."""
        return {"name": self.name, "version": self.version}

    @property
    def description(self) -> Json:
        """The long form, for clients that ask who the server is."""
        return {**self.stamp, "title": TITLE, **({"icons": self.icons} if self.icons else {})}

    @property
    def icons(self) -> list[Json]:
        """The icon as the protocol writes it."""
        return [{"src": self.icon, "mimeType": "image/svg+xml", "sizes": ["any"]}] if self.icon else []


def result_of(outcome: Outcome, identity: ServerIdentity, version: str) -> Json:
    """Write an outcome as a client of a protocol version can read it."""
    result = stamped(outcome.whole(), identity, version)
    if version < _FIRST_WITH_LINKS:
        # Clients of that time know neither links nor structure; the text is enough.
        result["content"] = result["content"][:1]
    return result


def stamped(result: Json, identity: ServerIdentity, version: str) -> Json:
    """Add in place the members that a protocol version requires of every result."""
    if version not in MODERN:
        # The handshake of the session has named the server.
        return result
    # The SDK would put the whole self-description into every answer.
    result["_meta"] = {**result.get("_meta", {}), SERVER_INFO: identity.stamp}
    result["resultType"] = "complete"
    return result


_MESSAGE_CHARS = 1000
_NAME_CHARS = 64
#: Caps error details: a remote server controls their size.
_DATA_BYTES = 20_000
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
    facts: dict[str, Any] = {"code": error.code[:_NAME_CHARS], "message": error.message[:_MESSAGE_CHARS]}
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
    chosen: dict[str, Any] = {}
    space = _DATA_BYTES
    for key, value in data.items():
        short = value
        while isinstance(short, list) and short and _size(key, short) > space:
            short = cast("list[Any]", short)[: len(cast("list[Any]", short)) // 2]
        if key not in without and _size(key, short) <= space:
            chosen[key] = short
            space -= _size(key, short)
    return chosen


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
