"""Headgate: a gate for personal data, and typed operations from remote MCP servers.

The public doorway, and nothing else. A name is imported when it is first asked for, so that the command line
does not wait for what it does not use, and so that the bare package works without any extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.errors import AdapterError, CallError, HeadgateError, OperationError

    # The aliases say that these are part of the doorway, although the bare package has none of them.
    from headgate.mcp.client import (
        FilePins as FilePins,
        FromMCP as FromMCP,
        ImportedOperations as ImportedOperations,
        ImportOptions as ImportOptions,
        Limits as Limits,
        Question as Question,
        Reply as Reply,
        from_mcp as from_mcp,
        import_servers as import_servers,
        map_mcp_content_blocks as map_mcp_content_blocks,
    )
    from headgate.mcp.gateway.server import gateway_app as gateway_app, to_mcp as to_mcp
    from headgate.operations.access import AccessControl, Identity
    from headgate.operations.batch import BatchEntry, BatchOutcome
    from headgate.operations.binding import input_schema_of, output_schema_of
    from headgate.operations.content import MCP_CONTENT_SCHEMA
    from headgate.operations.context import AbortPolicy, OperationContext
    from headgate.operations.envelope import (
        HttpMeta,
        LocalMeta,
        McpMeta,
        ResponseEnvelope,
        http_envelope,
        local_envelope,
        mcp_envelope,
        unwrap,
    )
    from headgate.operations.registration import (
        CompositionAuthority,
        HandlerRegistration,
        OperationAdapter,
        OutputPolicy,
        Provenance,
        ScopedEnv,
        expose,
    )
    from headgate.operations.registry import Overlay, Registry
    from headgate.operations.secrets import Capabilities, Secret
    from headgate.operations.spec import (
        ErrorDefinition,
        OperationSpec,
        OperationType,
        OutputKind,
        Visibility,
    )

__version__ = "0.1.0"

__all__ = [
    "MCP_CONTENT_SCHEMA",
    "AbortPolicy",
    "AccessControl",
    "AdapterError",
    "BatchEntry",
    "BatchOutcome",
    "CallError",
    "Capabilities",
    "CompositionAuthority",
    "ErrorDefinition",
    "HandlerRegistration",
    "HeadgateError",
    "HttpMeta",
    "Identity",
    "LocalMeta",
    "McpMeta",
    "OperationAdapter",
    "OperationContext",
    "OperationError",
    "OperationSpec",
    "OperationType",
    "OutputKind",
    "OutputPolicy",
    "Overlay",
    "Provenance",
    "Registry",
    "ResponseEnvelope",
    "ScopedEnv",
    "Secret",
    "Visibility",
    "__version__",
    "expose",
    "http_envelope",
    "input_schema_of",
    "local_envelope",
    "mcp_envelope",
    "output_schema_of",
    "unwrap",
]

_ROOMS = {
    "headgate.errors": ("AdapterError", "CallError", "HeadgateError", "OperationError"),
    "headgate.operations.access": ("AccessControl", "Identity"),
    "headgate.operations.batch": ("BatchEntry", "BatchOutcome"),
    "headgate.operations.binding": ("input_schema_of", "output_schema_of"),
    "headgate.operations.content": ("MCP_CONTENT_SCHEMA",),
    "headgate.operations.context": ("AbortPolicy", "OperationContext"),
    "headgate.operations.envelope": (
        "HttpMeta",
        "LocalMeta",
        "McpMeta",
        "ResponseEnvelope",
        "http_envelope",
        "local_envelope",
        "mcp_envelope",
        "unwrap",
    ),
    "headgate.operations.registration": (
        "CompositionAuthority",
        "HandlerRegistration",
        "OperationAdapter",
        "OutputPolicy",
        "Provenance",
        "ScopedEnv",
        "expose",
    ),
    "headgate.operations.registry": ("Overlay", "Registry"),
    "headgate.operations.secrets": ("Capabilities", "Secret"),
    "headgate.operations.spec": (
        "ErrorDefinition",
        "OperationSpec",
        "OperationType",
        "OutputKind",
        "Visibility",
    ),
}
#: What comes with an extra: not in ``__all__``, because the bare package does not have it.
_EXTRAS = {
    "headgate.mcp.client": (
        "FilePins",
        "FromMCP",
        "ImportOptions",
        "ImportedOperations",
        "Limits",
        "Question",
        "Reply",
        "from_mcp",
        "import_servers",
        "map_mcp_content_blocks",
    ),
    "headgate.mcp.gateway.server": ("gateway_app", "to_mcp"),
}
_HOMES = {name: room for rooms in (_ROOMS, _EXTRAS) for room, names in rooms.items() for name in names}


def __getattr__(name: str) -> Any:
    room = _HOMES.get(name)
    if room is None:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    try:
        if room in _EXTRAS:
            import_module("mcp")
        value = getattr(import_module(room), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "headgate":
            raise
        raise ImportError(
            f"headgate.{name} needs more: pip install 'headgate[mcp]'", name=error.name
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for names in _EXTRAS.values() for name in names)]
