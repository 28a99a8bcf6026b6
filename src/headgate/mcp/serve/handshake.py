"""How a session on stdio begins: who the server is, a ping, the lists. Answered here, because hosts wait a second or two.

Importing the SDK takes longer than that. It takes over with the first message that is anything else, is shown the
messages that began the session, and answers everything from there on. So do messages here that are not of the plain
form that is described below: they are not wrong, but the SDK's to judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from headgate.mcp.serve.results import (
    LEGACY,
    LIST_TTL_MS,
    MAX_ID_CHARS,
    MODERN,
    SERVER_INFO,
    ServerIdentity,
    stamped,
)
from headgate.mcp.serve.skill import SKILLS_EXTENSION, skill_resource
from headgate.mcp.serve.tools import Surface
from headgate.model.wire import Json

_LARGEST_ID = 2**53
_PREFIX = "io.modelcontextprotocol/"
_CACHE_HINT: Json = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
#: Notifications that change nothing once their session has begun, or before it does.
_WITHOUT_EFFECT = frozenset({"notifications/initialized", "notifications/cancelled"})


class _Roots(msgspec.Struct):
    listChanged: bool | UnsetType = UNSET  # noqa: N815 - as the protocol spells it


class _Capabilities(msgspec.Struct, forbid_unknown_fields=True):
    roots: _Roots | UnsetType = UNSET
    sampling: dict[str, Json] | UnsetType = UNSET
    elicitation: dict[str, Json] | UnsetType = UNSET
    experimental: dict[str, Json] | UnsetType = UNSET
    extensions: dict[str, Json] | UnsetType = UNSET


class _Client(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: str
    title: str | UnsetType = UNSET
    websiteUrl: str | UnsetType = UNSET  # noqa: N815 - as the protocol spells it
    description: str | UnsetType = UNSET


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """What every request of a version without a handshake carries in ``_meta``."""

    version: str = msgspec.field(name=f"{_PREFIX}protocolVersion")
    capabilities: _Capabilities = msgspec.field(name=f"{_PREFIX}clientCapabilities")
    client: _Client | UnsetType = msgspec.field(name=f"{_PREFIX}clientInfo", default=UNSET)
    progressToken: str | int | UnsetType = UNSET  # noqa: N815 - as the protocol spells it


class _Greeting(msgspec.Struct, forbid_unknown_fields=True):
    protocolVersion: str  # noqa: N815 - as the protocol spells it
    capabilities: _Capabilities
    clientInfo: _Client  # noqa: N815 - the same


class _LegacyMeta(msgspec.Struct, forbid_unknown_fields=True):
    progressToken: str | int | UnsetType = UNSET  # noqa: N815 - as the protocol spells it


class _Legacy(msgspec.Struct, forbid_unknown_fields=True):
    meta: _LegacyMeta = msgspec.field(name="_meta", default_factory=_LegacyMeta)


class _Modern(msgspec.Struct, forbid_unknown_fields=True):
    meta: _Envelope = msgspec.field(name="_meta")


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    method: str
    id: int | str | UnsetType = UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")


_Params = TypeVar("_Params", _Greeting, _Legacy, _Modern)


@dataclass(slots=True)
class Handshake:
    """The beginning of one session."""

    identity: ServerIdentity
    surface: Surface
    #: What the SDK has to be shown when it takes over, and the id of the one among them that is answered already.
    shown: list[bytes] = field(default_factory=list[bytes], init=False)
    answered: int | str | None = field(default=None, init=False)
    _version: str | None = field(default=None, init=False)
    _is_ready: bool = field(default=False, init=False)

    def answer(self, line: bytes) -> bytes | None:
        """Return the answer to a message, empty for a notification; None when the SDK has to take over with it."""
        try:
            message = msgspec.json.decode(line, type=_Message)
            if message.jsonrpc != "2.0":
                return None
            if message.id is UNSET:
                return self._note(message.method, line)
            result = self._result(message, line) if _is_exact(message.id) else None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if result is None:
            return None
        # The SDK sorts the members of results.
        answer = {"jsonrpc": "2.0", "id": message.id, "result": dict(sorted(result.items()))}
        return msgspec.json.encode(answer) + b"\n"

    def _note(self, method: str, line: bytes) -> bytes | None:
        if method not in _WITHOUT_EFFECT:
            return None
        if method == "notifications/initialized" and self._version in LEGACY:
            self._is_ready = True
            self.shown.append(line)
        return b""

    def _result(self, message: _Message, line: bytes) -> Json | None:
        """Answer a request; a session's first that is more than a question who the server is fixes its version."""
        if message.method == "initialize":
            return None if self._version else self._greet(message, line)
        if message.method == "ping":
            # The versions without a handshake have none.
            return {} if self._version in LEGACY and _read(message.params, _Legacy) else None
        if self._version in LEGACY:
            version = self._version if self._is_ready and _read(message.params, _Legacy) else None
        else:
            version = _read(message.params, _Modern).meta.version
        if version is None or (version not in MODERN and version != self._version):
            return None
        if message.method == "server/discover":
            return self._introduction() if version in MODERN else None
        result = self._list(message.method, version)
        if result is not None and self._version is None:
            self._begin(version, message.id, line)
        return result

    def _greet(self, message: _Message, line: bytes) -> Json | None:
        version = _read(message.params, _Greeting).protocolVersion
        if version not in LEGACY:
            return None
        self._begin(version, message.id, line)
        return {"protocolVersion": version, **self._description(), "serverInfo": self.identity.description}

    def _begin(self, version: str, request_id: Any, line: bytes) -> None:
        self._version, self.answered = version, request_id
        self.shown.append(line)

    def _introduction(self) -> Json:
        return {
            "supportedVersions": sorted(MODERN),
            # Extensions belong to the versions without a handshake.
            **self._description(extensions={SKILLS_EXTENSION: Json()}),
            **_CACHE_HINT,
            "resultType": "complete",
            "_meta": {SERVER_INFO: self.identity.description},
        }

    def _description(self, **extensions: Json) -> Json:
        offers = {"resources": {"listChanged": False, "subscribe": False}, "tools": {"listChanged": False}}
        return {"capabilities": {**extensions, **offers}, "instructions": self.surface.instructions}

    def _list(self, method: str, version: str) -> Json | None:
        tools = self.surface.tools if version in MODERN else map(_in_older_order, self.surface.tools)
        lists: dict[str, Json] = {
            "tools/list": {"tools": list(tools)},
            # A person's records are not enumerated: the URIs of resources are found in answers.
            "resources/list": {"resources": [skill_resource(self.surface.kinds)]},
            "resources/templates/list": {"resourceTemplates": list(self.surface.templates)},
        }
        if method not in lists:
            return None
        return stamped(
            {**lists[method], **(_CACHE_HINT if version in MODERN else {})}, self.identity, version
        )


def _in_older_order(tool: Json) -> Json:
    """Put the members of a tool's schemas in the order in which the SDK writes them for versions with a handshake."""
    named = ("properties", "required", "type")
    ordered = {
        name: {key: schema[key] for key in sorted(schema, key=lambda key: (*named, key).index(key))}
        for name, schema in tool.items()
        if name.endswith("Schema")
    }
    return {**tool, **ordered}


def _is_exact(request_id: int | str | UnsetType) -> bool:
    """Return whether an id comes back to every client as it was sent."""
    if isinstance(request_id, str):
        return len(request_id) <= MAX_ID_CHARS
    return isinstance(request_id, int) and abs(request_id) <= _LARGEST_ID


def _read(params: msgspec.Raw, shape: type[_Params]) -> _Params:
    return msgspec.json.decode(params, type=shape)
