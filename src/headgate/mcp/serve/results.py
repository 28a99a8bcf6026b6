"""Results as each version of the protocol carries them. Needs nothing of the SDK, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.mcp.serve.outcome import Outcome

Json = dict[str, Any]

SERVER_NAME = "headgate"
TITLE = "Headgate"
#: Versions in which every request stands alone, and says which version it is.
MODERN = frozenset({"2026-07-28"})
#: Versions that begin with a handshake, and know structured content.
LEGACY = frozenset({"2025-06-18", "2025-11-25"})
#: How long a client may keep a list.
LIST_TTL_MS = 300_000
_FIRST_WITH_LINKS = "2025-06-18"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@dataclass(frozen=True, slots=True)
class Identity:
    """How the server names itself."""

    version: str
    name: str = SERVER_NAME
    #: Where its icon is, if it is anywhere.
    icon: str | None = None

    @property
    def stamp(self) -> Json:
        """The short form that goes with every answer."""
        return {"name": self.name, "version": self.version}


def result_of(outcome: Outcome, identity: Identity, version: str) -> Json:
    """Write an outcome as a client of a protocol version can read it."""
    result = stamped(outcome.wire(), identity, version)
    if version < _FIRST_WITH_LINKS:
        # Clients of that time know neither links nor structure; the text is enough.
        result["content"] = result["content"][:1]
    return result


def stamped(result: Json, identity: Identity, version: str) -> Json:
    """Put on a result what its protocol version wants on every one."""
    if version not in MODERN:
        # A session that began with a handshake has heard who we are.
        return result
    # The SDK would put the whole self-description into every answer.
    meta = {**result.get("_meta", {}), _SERVER_INFO: identity.stamp}
    return {**result, "_meta": meta, "resultType": "complete"}
