"""Results as each version of the protocol carries them. Needs nothing of the SDK, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.tools import Surface

Json = dict[str, Any]

SERVER_NAME = "headgate"
TITLE = "Headgate"
#: Versions in which every request stands alone, and says which version it is.
MODERN = frozenset({"2026-07-28"})
#: Versions that begin with a handshake, and know structured content.
LEGACY = frozenset({"2025-06-18", "2025-11-25"})
#: How long a client may keep a list.
LIST_TTL_MS = 300_000
_KEPT: Json = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
_FIRST_WITH_LINKS = "2025-06-18"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """How the server names itself."""

    version: str
    name: str = SERVER_NAME
    #: Where its icon is, if it is anywhere.
    icon: str | None = None

    @property
    def stamp(self) -> Json:
        """The short form that goes with every answer."""
        return {"name": self.name, "version": self.version}


def result_of(outcome: Outcome, identity: ServerIdentity, version: str) -> Json:
    """Write an outcome as a client of a protocol version can read it."""
    result = stamped(outcome.wire(), identity, version)
    if version < _FIRST_WITH_LINKS:
        # Clients of that time know neither links nor structure; the text is enough.
        result["content"] = result["content"][:1]
    return result


def stamped(result: Json, identity: ServerIdentity, version: str) -> Json:
    """Put on a result, which is nobody else's, what its protocol version wants on every one."""
    if version not in MODERN:
        # A session that began with a handshake has heard who we are.
        return result
    # The SDK would put the whole self-description into every answer.
    result["_meta"] = {**result.get("_meta", {}), _SERVER_INFO: identity.stamp}
    result["resultType"] = "complete"
    return result


def greeting(identity: ServerIdentity, surface: Surface, version: str) -> Json:
    """Answer the handshake of a version that begins with one."""
    return {**_description(surface), "protocolVersion": version, "serverInfo": _whole(identity)}


def discovered(identity: ServerIdentity, surface: Surface) -> Json:
    """Answer who the server is, in a version without a handshake."""
    return {
        **_description(surface),
        **_KEPT,
        "supportedVersions": sorted(MODERN),
        "resultType": "complete",
        "_meta": {_SERVER_INFO: _whole(identity)},
    }


def listed(method: str, identity: ServerIdentity, surface: Surface, version: str) -> Json:
    """Answer one of the lists, which are the same for everybody.

    A person's records are not enumerated: the URIs of resources are found in answers.
    """
    lists: dict[str, Json] = {
        "tools/list": {"tools": list(surface.tools)},
        "resources/list": {"resources": list[Json]()},
        "resources/templates/list": {"resourceTemplates": list(surface.templates)},
    }
    return stamped({**lists[method], **(_KEPT if version in MODERN else {})}, identity, version)


def _description(surface: Surface) -> Json:
    offers = {"resources": {"listChanged": False, "subscribe": False}, "tools": {"listChanged": False}}
    return {"capabilities": offers, "instructions": surface.instructions}


def _whole(identity: ServerIdentity) -> Json:
    return {**identity.stamp, "title": TITLE}
