"""Typed operations: what they are, who may run them, and the one door through which they run.

Knows nothing of MCP, HTTP or the web; adapters of those make registrations and hand them in.
"""

from headgate.operations.access import AccessControl, Identity
from headgate.operations.content import MCP_CONTENT_SCHEMA, ContentBlock, blocks_text
from headgate.operations.context import AbortPolicy, Env, OperationContext
from headgate.operations.envelope import (
    HttpMeta,
    LocalMeta,
    McpMeta,
    ResponseEnvelope,
    http_envelope,
    local_envelope,
    mcp_envelope,
    tool_error,
    unwrap,
)
from headgate.operations.names import parse_operation_id
from headgate.operations.registration import (
    CompositionAuthority,
    HandlerRegistration,
    OperationAdapter,
    OutputPolicy,
    Provenance,
    ScopedEnv,
    expose,
)
from headgate.operations.secrets import Capabilities, Secret
from headgate.operations.spec import ErrorDefinition, OperationSpec, OperationType, OutputKind, Visibility

__all__ = [
    "MCP_CONTENT_SCHEMA",
    "AbortPolicy",
    "AccessControl",
    "Capabilities",
    "CompositionAuthority",
    "ContentBlock",
    "Env",
    "ErrorDefinition",
    "HandlerRegistration",
    "HttpMeta",
    "Identity",
    "LocalMeta",
    "McpMeta",
    "OperationAdapter",
    "OperationContext",
    "OperationSpec",
    "OperationType",
    "OutputKind",
    "OutputPolicy",
    "Provenance",
    "ResponseEnvelope",
    "ScopedEnv",
    "Secret",
    "Visibility",
    "blocks_text",
    "expose",
    "http_envelope",
    "local_envelope",
    "mcp_envelope",
    "parse_operation_id",
    "tool_error",
    "unwrap",
]
