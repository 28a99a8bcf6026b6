"""Map a tool, as a server describes it, to an operation spec; or give the reason why it cannot be used.

Pure functions. Names and schemas are checked here, before any other module sees them. Hints and descriptions of
a server are passed on and decide nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from headgate.errors import CALL_ERRORS, NameCollision, OperationError, SchemaParse
from headgate.mcp.client.limits import MAX_META_BYTES, Limits
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.operations.spec import ErrorDefinition, OperationSpec, OperationType, OutputKind, Visibility
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.diff import digest
from headgate.schema.guard import PatternBudget
from headgate.schema.value import MAX_VALUE_DEPTH, is_deeper_than

#: Where a tool may declare its own errors, in its ``_meta``: a list of ``{code, description, schema}``. It then
#: answers ``isError`` with ``{"error": {code, message, details}}`` as its structured content.
ERRORS_META_KEY = "headgate/errors"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_ERROR_CODE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_MAX_DESCRIPTION = 4096
_MAX_ERRORS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the operations of one server are called, and where the server is."""

    namespace: str
    #: Scheme, host and path.
    endpoint: str
    #: The name the server declares; part of the digest, and used for nothing else.
    server_name: str = ""
    has_prefix: bool = False
    version: str = "1.0.0"
    #: ``content_blocks`` or ``unknown``: the output of a tool without an output schema.
    undeclared_output: str = "content_blocks"
    #: Whether the negotiated revision sends annotated arguments as headers.
    has_param_headers: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that can be used."""

    name: str
    #: As the server wrote it.
    definition: Mapping[str, Any]
    digest: str
    spec: OperationSpec
    input: CompiledSchema
    #: None when the tool declares no output.
    output: CompiledSchema | None
    #: The error codes that the tool declares, and the schema of their details.
    errors: Mapping[str, CompiledSchema]
    #: Which arguments are sent as headers too.
    header_map: Mapping[tuple[str, ...], str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tool that cannot be used, and why."""

    name: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingBounds:
    """How much the tools of one server may cost, all together."""

    patterns: PatternBudget = field(default_factory=lambda: PatternBudget(Limits().max_patterns))
    #: The tools as they were mapped before; one that has not changed is used again.
    known: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    #: Called before each tool; raises when the time is over.
    between_tools: Callable[[], None] = lambda: None


def map_tools(
    definitions: Sequence[Any], naming: Naming, bounds: MappingBounds | None = None, *, skip_bad: bool
) -> tuple[list[Tool], list[Skipped]]:
    """Map every tool that can be used."""
    tools: list[Tool] = []
    skipped: list[Skipped] = []
    ambiguous = _ambiguous(_name_of(definition) for definition in definitions)
    bounds = bounds or MappingBounds()
    for definition in definitions:
        bounds.between_tools()
        name = _name_of(definition)
        try:
            if name.casefold() in ambiguous:
                raise NameCollision(f"The server lists more than one tool called {name!a}.")
            known = bounds.known.get(name)
            is_known = known is not None and known.digest == _digest_of(definition, naming)
            tools.append(known if known and is_known else map_tool(definition, naming, bounds.patterns))
        except _HeaderInvalid as error:
            # The protocol requires that such a tool is left out and the others stay.
            skipped.append(Skipped(name, error.code, error.message))
        except OperationError as error:
            if not skip_bad:
                raise
            skipped.append(Skipped(name, error.code, error.message))
    return tools, skipped


def map_tool(definition: Any, naming: Naming, patterns: PatternBudget | None = None) -> Tool:
    """Map one tool."""
    fields = _checked_fields(definition)
    name: str = fields["name"]
    notes: list[str] = []
    header_map = _header_map(name, fields["inputSchema"]) if naming.has_param_headers else {}
    compiled_input = _compiled(name, "inputSchema", fields["inputSchema"], patterns)
    notes += compiled_input.notes
    declared = fields.get("outputSchema")
    output = None if not declared else _compiled(name, "outputSchema", declared, patterns)
    notes += output.notes if output is not None else ()
    description = fields.get("description") or ""
    if len(description) > _MAX_DESCRIPTION:
        notes.append(f"The description was cut at {_MAX_DESCRIPTION} characters.")
    digest_of_tool = tool_digest(fields, naming)
    declared_errors = _declared_errors(fields.get("_meta"), patterns)
    own = tuple(definition for definition, _ in declared_errors)
    return Tool(
        name=name,
        definition=fields,
        digest=digest_of_tool,
        spec=_spec(fields, naming, description[:_MAX_DESCRIPTION], digest_of_tool, own),
        input=compiled_input,
        output=output,
        errors={definition.code: compiled for definition, compiled in declared_errors},
        header_map=header_map,
        notes=tuple(notes),
    )


def tool_digest(definition: Mapping[str, Any], naming: Naming) -> str:
    """Return the digest of a whole definition at its server; the order of keys does not change it."""
    return digest({"server": naming.endpoint, "identity": naming.server_name, "tool": dict(definition)})


def _digest_of(definition: Any, naming: Naming) -> str:
    return tool_digest(_checked_fields(definition), naming)


def _spec(
    fields: Mapping[str, Any],
    naming: Naming,
    description: str,
    digest_of_tool: str,
    errors: tuple[ErrorDefinition, ...],
) -> OperationSpec:
    name: str = fields["name"]
    declared = fields.get("outputSchema")
    blocks = naming.undeclared_output == "content_blocks"
    annotations = fields.get("annotations")
    declared_meta = {"annotations": annotations, "_meta": fields.get("_meta")}
    return OperationSpec(
        f"{naming.namespace}/{name}" if naming.has_prefix else name,
        naming.namespace,
        # Only the server claims that a tool is read-only, so every tool counts as one that changes things.
        # A tool answers once; should MCP let tools stream, that would be another type of operation: a subscription.
        op_type=OperationType.MUTATION,
        version=naming.version,
        visibility=Visibility.INTERNAL,
        title=_title(fields, annotations),
        description=description,
        input_schema=fields["inputSchema"],
        output_schema=declared or (MCP_CONTENT_SCHEMA if blocks else {}),
        output_kind=OutputKind.DECLARED if declared else OutputKind.CONTENT_BLOCKS if blocks else None,
        error_schemas=(*GENERIC_ERRORS, *errors),
        meta={
            "mcp": {
                "tool": name,
                "endpoint": naming.endpoint,
                "digest": digest_of_tool,
                **{key: value for key, value in declared_meta.items() if value is not None},
            }
        },
    )


def _title(fields: Mapping[str, Any], annotations: Any) -> str | None:
    hint = cast("Mapping[str, Any]", annotations).get("title") if isinstance(annotations, Mapping) else None
    title = fields.get("title") or hint
    return title if isinstance(title, str) else None


# What is wrong with a tool


class _HeaderInvalid(SchemaParse):
    """The tool sends arguments as headers in a way that the protocol forbids."""


def _name_of(definition: Any) -> str:
    name = cast("Mapping[str, Any]", definition).get("name") if isinstance(definition, Mapping) else None
    return name if isinstance(name, str) else ""


def _ambiguous(names: Iterable[str]) -> set[str]:
    """Find names that differ only in case or in the form of their letters."""
    seen: set[str] = set()
    twice: set[str] = set()
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        (twice if plain in seen else seen).add(plain)
    return twice - {""}


def _checked_fields(definition: Any) -> dict[str, Any]:
    name = _name_of(definition)
    if not _NAME.fullmatch(name):
        raise _bad(name, "its name is not 1 to 128 letters, digits, '_', '-' or '.'", "name")
    fields = dict(cast("Mapping[str, Any]", definition))
    if is_deeper_than(fields, MAX_VALUE_DEPTH):
        raise _bad(name, "its definition is nested too deeply", "")
    for key in ("title", "description"):
        if not isinstance(fields.get(key) or "", str):
            raise _bad(name, f"its {key} is not a text", key)
    for key in ("_meta", "annotations", "icons"):
        if len(msgspec.json.encode(fields.get(key))) > MAX_META_BYTES:
            raise _bad(name, f"its {key} has more than {MAX_META_BYTES} bytes", key)
    root = fields.get("inputSchema")
    if not isinstance(root, dict) or cast("dict[str, Any]", root).get("type", "object") != "object":
        raise _bad(name, "its inputSchema does not describe an object", "inputSchema")
    if not isinstance(fields.get("outputSchema") or {}, dict):
        raise _bad(name, "its outputSchema is not a schema", "outputSchema")
    return fields


def _compiled(name: str, place: str, schema: Any, patterns: PatternBudget | None) -> CompiledSchema:
    try:
        return compile_schema(schema, budget=patterns)
    except SchemaParse as error:
        raise _bad(name, f"its {place} is refused: {error.message}", place, error.details) from error


def _header_map(name: str, schema: Any) -> dict[tuple[str, ...], str]:
    reason = find_invalid_x_mcp_header(schema)
    if reason is not None:
        raise _HeaderInvalid(f"The tool {name!a} was left out: its x-mcp-header is not valid.")
    return x_mcp_header_map(schema)


def _bad(name: str, why: str, place: str, more: Mapping[str, Any] | None = None) -> SchemaParse:
    details: dict[str, Any] = {"reason": "upstream_schema_rejected", "tool": name[:128], "place": place}
    details.update(more or {})
    return SchemaParse(f"The tool {name[:128]!a} cannot be used: {why}", details=details)


# What may go wrong with a call

_REASON: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "status": {"type": "integer"},
        "www_authenticate": {"type": "string"},
        "server_message": {"type": "string"},
        "retry_after": {"type": ["number", "null"]},
        "maybe_executed": {"type": "boolean"},
        "rpcCode": {"type": "integer"},
        "rpcMessage": {"type": "string"},
    },
    "required": ["reason"],
}
_TOOL_ERROR: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "content": MCP_CONTENT_SCHEMA,
        "structuredContent": True,
        "tool": {"type": "string"},
        "namespace": {"type": "string"},
    },
    "required": ["content"],
}
_ISSUES: Mapping[str, Any] = {
    "type": "object",
    "properties": {"issues": {"type": "array"}},
    "required": ["issues"],
}
_CHANGE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"tool": {"type": "string"}, "grade": {"type": "string"}},
    "required": ["tool", "grade"],
}

#: No revision of the protocol lets a tool describe its errors, so every tool can fail in these ways.
GENERIC_ERRORS = (
    ErrorDefinition("MCP_TOOL_ERROR", "The tool says that it failed.", schema=dict(_TOOL_ERROR)),
    ErrorDefinition("MCP_TRANSPORT_ERROR", "The server could not be asked.", schema=dict(_REASON)),
    ErrorDefinition("MCP_UNAUTHORIZED", "The server refused our token.", schema=dict(_REASON)),
    ErrorDefinition("MCP_PROTOCOL_ERROR", "The server broke the protocol.", schema=dict(_REASON)),
    ErrorDefinition("MCP_OUTPUT_MISSING", "A declared output was not sent.", schema=dict(_ISSUES)),
    ErrorDefinition("tool_definition_changed", "The tool is not what was approved.", schema=dict(_CHANGE)),
)


# Compiled once, because every imported operation has them.
COMPILED_CONTENT = compile_schema(MCP_CONTENT_SCHEMA)
COMPILED_ERRORS = {definition.code: compile_schema(definition.schema) for definition in GENERIC_ERRORS}


def _declared_errors(
    meta: Any, patterns: PatternBudget | None
) -> list[tuple[ErrorDefinition, CompiledSchema]]:
    declared = cast("Mapping[str, Any]", meta).get(ERRORS_META_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(declared, list):
        return []
    by_code: dict[str, tuple[ErrorDefinition, CompiledSchema]] = {}
    for entry in cast("list[Any]", declared)[:_MAX_ERRORS]:
        pair = _error_definition(entry, patterns)
        if pair is not None:
            by_code.setdefault(pair[0].code, pair)
    return list(by_code.values())


def _error_definition(
    entry: Any, patterns: PatternBudget | None
) -> tuple[ErrorDefinition, CompiledSchema] | None:
    if not isinstance(entry, Mapping):
        return None
    fields = cast("Mapping[str, Any]", entry)
    code, description, schema = fields.get("code"), fields.get("description", ""), fields.get("schema", True)
    # A server must not redefine the codes that Headgate itself uses.
    if not isinstance(code, str) or not _ERROR_CODE.fullmatch(code) or code in CALL_ERRORS:
        return None
    try:
        compiled = compile_schema(schema, budget=patterns)
    except SchemaParse:
        return None
    return ErrorDefinition(code, description if isinstance(description, str) else "", schema=schema), compiled
