"""Results, as each version of the protocol carries them. Needs nothing of the SDK, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from headgate.model.wire import Json
from headgate.text.writing import UNTRUSTED


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
#: Versions with a handshake. Cline, which gives up after three seconds, speaks the first.
LEGACY = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})
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
