"""Headgate: a gate for personal data, and typed operations from remote MCP servers.

Every public name is imported from here and loaded on first use, so that the command line does not import what it
does not use, and the bare package works without an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # What type checkers see; at run time __getattr__ loads the same names from the table below.
    from headgate.errors import (
        AdapterError as AdapterError,
        CallError as CallError,
        HeadgateError as HeadgateError,
        OperationError as OperationError,
    )
    from headgate.mcp.client import (
        FilePins as FilePins,
        FromMCP as FromMCP,
        ImportedOperations as ImportedOperations,
        ImportOptions as ImportOptions,
        Limits as Limits,
        Question as Question,
        Reply as Reply,
        SyncImport as SyncImport,
        from_mcp as from_mcp,
        from_mcp_sync as from_mcp_sync,
        from_servers as from_servers,
        map_mcp_content_blocks as map_mcp_content_blocks,
    )
    from headgate.mcp.gateway.server import gateway_app as gateway_app, to_mcp as to_mcp
    from headgate.operations.calling import (
        input_schema_of as input_schema_of,
        output_schema_of as output_schema_of,
    )
    from headgate.operations.content import MCP_CONTENT_SCHEMA as MCP_CONTENT_SCHEMA
    from headgate.operations.envelope import (
        LocalMeta as LocalMeta,
        McpMeta as McpMeta,
        ResponseEnvelope as ResponseEnvelope,
        local_envelope as local_envelope,
        mcp_envelope as mcp_envelope,
        unwrap as unwrap,
    )
    from headgate.operations.registration import (
        CompositionAuthority as CompositionAuthority,
        HandlerRegistration as HandlerRegistration,
        OperationAdapter as OperationAdapter,
        OperationContext as OperationContext,
        OutputPolicy as OutputPolicy,
        Provenance as Provenance,
        ScopedEnv as ScopedEnv,
        expose as expose,
    )
    from headgate.operations.registry import (
        BatchEntry as BatchEntry,
        BatchOutcome as BatchOutcome,
        Overlay as Overlay,
        Registry as Registry,
    )
    from headgate.operations.secrets import Capabilities as Capabilities, Secret as Secret
    from headgate.operations.spec import (
        AccessControl as AccessControl,
        ErrorDefinition as ErrorDefinition,
        Identity as Identity,
        OperationSpec as OperationSpec,
        OperationType as OperationType,
        OutputKind as OutputKind,
        Visibility as Visibility,
    )

__version__ = "0.1.0"

#: The public names by module.
_CORE = {
    "headgate.errors": ("AdapterError", "CallError", "HeadgateError", "OperationError"),
    "headgate.operations.calling": ("input_schema_of", "output_schema_of"),
    "headgate.operations.content": ("MCP_CONTENT_SCHEMA",),
    "headgate.operations.envelope": (
        "LocalMeta",
        "McpMeta",
        "ResponseEnvelope",
        "local_envelope",
        "mcp_envelope",
        "unwrap",
    ),
    "headgate.operations.registration": (
        "CompositionAuthority",
        "HandlerRegistration",
        "OperationAdapter",
        "OperationContext",
        "OutputPolicy",
        "Provenance",
        "ScopedEnv",
        "expose",
    ),
    "headgate.operations.registry": ("BatchEntry", "BatchOutcome", "Overlay", "Registry"),
    "headgate.operations.secrets": ("Capabilities", "Secret"),
    "headgate.operations.spec": (
        "AccessControl",
        "ErrorDefinition",
        "Identity",
        "OperationSpec",
        "OperationType",
        "OutputKind",
        "Visibility",
    ),
}
#: The same for names that need the ``mcp`` extra; ``__all__`` leaves them out, because the bare package lacks them.
_MCP_EXTRA = {
    "headgate.mcp.client": (
        "FilePins",
        "FromMCP",
        "ImportOptions",
        "ImportedOperations",
        "Limits",
        "Question",
        "Reply",
        "SyncImport",
        "from_mcp",
        "from_mcp_sync",
        "from_servers",
        "map_mcp_content_blocks",
    ),
    "headgate.mcp.gateway.server": ("gateway_app", "to_mcp"),
}
_MODULE_OF = {
    name: module for table in (_CORE, _MCP_EXTRA) for module, names in table.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return ["__version__", *(public for names in _CORE.values() for public in names)]
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'headgate' has no attribute {name!r}")
    try:
        if module in _MCP_EXTRA:
            import_module("mcp")
        value = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "headgate":
            raise
        raise ImportError(
            f"headgate.{name} needs more: pip install 'headgate[mcp]'", name=error.name
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__all__", "__version__", *_MODULE_OF]
