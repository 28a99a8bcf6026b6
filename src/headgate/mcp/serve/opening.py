"""The plain part of a session on stdio, answered without the SDK, which takes longer to import than to answer.

Only messages of a form that is fully understood are taken. The first one that is not ends this part: the SDK
takes over, hears how the session began, and alone decides from there on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from headgate.mcp.serve.results import LEGACY, MODERN, ServerIdentity, discovered, greeting, listed
from headgate.mcp.serve.tools import Surface

Json = dict[str, Any]

_READY: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list"})
_PREFIX = "io.modelcontextprotocol/"
_LARGEST_ID = 2**53
_REQUEST = frozenset({"jsonrpc", "id", "method", "params"})
_CALL = frozenset({"name", "arguments", "_meta"})
_HANDSHAKE = frozenset({"protocolVersion", "capabilities", "clientInfo"})
_CLIENT = frozenset({"name", "version", "title", "websiteUrl", "description"})
_CAPABILITIES: Mapping[str, Mapping[str, type]] = {
    "roots": {"listChanged": bool},
    "sampling": {"tools": dict, "context": dict},
    "elicitation": {"form": dict, "url": dict},
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A request that can be answered: by a result that is known, or by calling a tool."""

    id: int | str
    version: str
    result: Json | None = None
    tool: str = ""
    arguments: Json = field(default_factory=dict[str, Any])


@dataclass(slots=True)
class Opening:
    """One session, up to the first message that is not plain."""

    identity: ServerIdentity
    surface: Surface
    #: What the SDK has to hear when it takes over, and the id of the answer that was given to it already.
    heard: list[bytes] = field(default_factory=list[bytes], init=False)
    answered: int | str | None = field(default=None, init=False)
    _version: str | None = field(default=None, init=False)
    #: Whether the client has ended the handshake.
    _is_ready: bool = field(default=False, init=False)

    def take(self, line: bytes) -> list[Reply] | None:
        """Give the answers to a message, none for a notification; None says that it is not plain."""
        message = _message(line)
        if message is None:
            return None
        if message == _READY and self._version in LEGACY and not self._is_ready:
            self.heard.append(line)
            self._is_ready = True
            return []
        reply = self._reply(message)
        if reply is None:
            return None
        if self._version is None:
            self._version, self.answered = reply.version, reply.id
            self.heard.append(line)
        return [reply]

    def _reply(self, message: Json) -> Reply | None:
        method, params, request_id = message.get("method"), message.get("params", {}), message.get("id")
        if not _is_request_id(request_id) or not message.keys() <= _REQUEST or not isinstance(params, dict):
            return None
        given = cast("Json", params)
        if self._version is None and method == "initialize":
            return self._greeting(request_id, given)
        if self._version in LEGACY and not self._is_ready:
            return None
        version = _version_of(given) if self._version is None else self._version
        if version is None or not _is_meta(given.get("_meta"), version):
            return None
        return self._answer(request_id, str(method), given, version)

    def _greeting(self, request_id: Any, given: Json) -> Reply | None:
        version = given.get("protocolVersion")
        is_plain = (
            given.keys() == _HANDSHAKE
            and _is_capabilities(given["capabilities"])
            and _is_client(given["clientInfo"])
        )
        if not is_plain or not isinstance(version, str) or version not in LEGACY:
            return None
        return Reply(request_id, version, greeting(self.identity, self.surface, version))

    def _answer(self, request_id: Any, method: str, given: Json, version: str) -> Reply | None:
        if method == "tools/call":
            arguments, name = given.get("arguments", {}), given.get("name")
            is_plain = given.keys() <= _CALL and isinstance(arguments, dict)
            if not is_plain or not isinstance(name, str) or name not in self.surface.names:
                return None
            return Reply(request_id, version, tool=name, arguments=cast("Json", arguments))
        if not given.keys() <= {"_meta"}:
            return None
        if method in _LISTS:
            return Reply(request_id, version, listed(method, self.identity, self.surface, version))
        if method == "server/discover" and version in MODERN:
            return Reply(request_id, version, discovered(self.identity, self.surface))
        return None


def _message(line: bytes) -> Json | None:
    try:
        message: Any = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    known = cast("Json", message)
    return known if known.get("jsonrpc") == "2.0" else None


def _is_request_id(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_ID
    )


def _version_of(given: Json) -> str | None:
    """Read which version opens a session without a handshake."""
    meta = given.get("_meta")
    version = cast("Json", meta).get(f"{_PREFIX}protocolVersion") if isinstance(meta, dict) else None
    return version if version in MODERN else None


def _is_meta(meta: Any, version: str) -> bool:
    if version in LEGACY:
        return meta is None or (
            isinstance(meta, dict)
            and not any(name.startswith(_PREFIX) for name in cast("Json", meta))
            and _is_request_id(cast("Json", meta).get("progressToken", ""))
        )
    if not isinstance(meta, dict):
        return False
    known = {name.removeprefix(_PREFIX): value for name, value in cast("Json", meta).items()}
    return (
        len(known) == len(cast("Json", meta))
        and known.keys() <= {"protocolVersion", "clientCapabilities", "clientInfo"}
        and all(name.startswith(_PREFIX) for name in cast("Json", meta))
        and known.get("protocolVersion") == version
        and _is_capabilities(known.get("clientCapabilities"))
        and ("clientInfo" not in known or _is_client(known["clientInfo"]))
    )


def _is_capabilities(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    for name, told in cast("Json", value).items():
        shape = _CAPABILITIES.get(name)
        if shape is None or not isinstance(told, dict):
            return False
        members = cast("Json", told)
        if not all(key in shape and isinstance(member, shape[key]) for key, member in members.items()):
            return False
    return True


def _is_client(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"name", "version"} <= cast("Json", value).keys() <= _CLIENT
        and all(isinstance(told, str) for told in cast("Json", value).values())
    )
