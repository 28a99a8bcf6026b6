"""What the two eras of the protocol require on each request; the only module that depends on the difference.

Before 2026-07-28 a handshake opens a session; since then every request carries version, client and capabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp import types
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from headgate import __version__

CLIENT = types.Implementation(name="headgate", version=__version__)


@dataclass(frozen=True, slots=True)
class Era:
    """The protocol revision that was negotiated with a server."""

    version: str
    #: The client capabilities sent to the server; none without a callback that answers questions.
    offered: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_modern(self) -> bool:
        """Whether requests are independent of each other, without a session."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def stamp(
        self, method: str, params: Mapping[str, Any], param_headers: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the parameters and the headers that a request must have."""
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if not self.is_modern:
            return dict(params), headers
        headers[MCP_METHOD_HEADER] = method
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        return {**params, "_meta": self._introduction()}, {**headers, **param_headers}

    def _introduction(self) -> dict[str, Any]:
        return {
            types.PROTOCOL_VERSION_META_KEY: self.version,
            types.CLIENT_INFO_META_KEY: {"name": CLIENT.name, "version": CLIENT.version},
            types.CLIENT_CAPABILITIES_META_KEY: dict(self.offered),
        }
