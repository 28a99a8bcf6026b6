"""Mistakes in the envelopes of remote results."""

from __future__ import annotations

from tests.structure.planted import Bug

_CONTENT = "src/headgate/mcp/client/forward.py"
_FORWARD = "src/headgate/mcp/client/forward.py"
_NORMALISE = "src/headgate/schema/normalise.py"
_SPEC = "src/headgate/operations/spec.py"

BUGS = (
    Bug(
        "S4-01",
        "an output that is not declared is called declared",
        "src/headgate/mcp/client/mapping.py",
        "OutputKind.DECLARED if declared else OutputKind.CONTENT_BLOCKS if blocks else None",
        "OutputKind.DECLARED",
    ),
    Bug(
        "S4-02",
        "the handler raises the failure of a tool",
        _FORWARD,
        "return envelope_of(tool, raw, forwarding, request_id=context.request_id)",
        "envelope = envelope_of(tool, raw, forwarding, request_id=context.request_id)\n"
        "            envelope.unwrap()\n"
        "            return envelope",
    ),
    Bug(
        "S4-03",
        "blocks are data beside structured content",
        _FORWARD,
        "        data,\n        is_error=is_error,",
        "        content or data,\n        is_error=is_error,",
    ),
    Bug("S4-04", "links to resources are unknown", _CONTENT, '    "resource_link": _resource_link,\n', ""),
    Bug(
        "S4-05",
        "unknown blocks are left out",
        _CONTENT,
        'return [_mapped(block) for block in cast("list[Any]", blocks)]',
        'return [_mapped(one) for one in cast("list[Any]", blocks) if isinstance(one, dict) and one.get("type") in _KNOWN]',
    ),
    Bug(
        "S4-06",
        "a default is shared by all results",
        _NORMALISE,
        'copy.deepcopy(schema["default"])',
        'schema["default"]',
    ),
    Bug(
        "S4-06",
        "a null is replaced by the default",
        _NORMALISE,
        "if name not in value and _has_default(inner):",
        "if value.get(name) is None and _has_default(inner):",
    ),
    Bug(
        "S4-07",
        "a failure passes as a result",
        _FORWARD,
        'is_error = raw.get("isError") not in (None, False)',
        "is_error = False",
    ),
    Bug(
        "S4-08",
        "a token that is refused at a call is a failure of the transport",
        _FORWARD,
        'code = "MCP_UNAUTHORIZED"',
        'code = "MCP_TRANSPORT_ERROR"',
    ),
    Bug(
        "S4-09",
        "a registration does not show the type of its spec",
        "src/headgate/operations/registration.py",
        "op_type = _OfSpec(lambda spec: spec.op_type)",
        "op_type = _OfSpec(lambda spec: OperationType.QUERY)",
    ),
    Bug(
        "S4-B1",
        "keys of the protocol are dropped from the metadata",
        _FORWARD,
        '    blocks, meta = raw.get("content"), raw.get("_meta")\n',
        '    blocks, meta = raw.get("content"), {k: v for k, v in (raw.get("_meta") or {}).items() if k[:3] != "io."} or None\n',
    ),
    Bug(
        "S4-B1",
        "structured content is not in the metadata",
        _FORWARD,
        "        structured_content=structured,\n        meta=",
        "        meta=",
    ),
    Bug(
        "S4-B2",
        "blocks beside structured content are lost",
        _FORWARD,
        "        content=content,\n        structured_content",
        "        content=content if structured is None else [],\n        structured_content",
    ),
    Bug(
        "S4-B3",
        "all tools have the schema of the first that was called",
        _FORWARD,
        "forwarding.shape(tool.output, structured)",
        'forwarding.shape(globals().setdefault("_first", {}).setdefault(id(forwarding), tool.output), structured)',
    ),
    Bug(
        "S4-B4",
        "only an empty schema is unknown",
        _SPEC,
        "if schema is True or schema == {}:",
        "if schema == {}:",
    ),
    Bug(
        "S4-B5",
        "any namespace is taken",
        "src/headgate/mcp/client/from_mcp.py",
        "return check_namespace(namespace)",
        "return namespace",
    ),
    Bug(
        "S4-B6",
        "an unknown tool is a failure of the transport",
        _FORWARD,
        "_PROTOCOL = (UpstreamProtocolError, UpstreamTooLarge, UpstreamUnsupported)",
        "_PROTOCOL = (UpstreamTooLarge, UpstreamUnsupported)",
    ),
)
