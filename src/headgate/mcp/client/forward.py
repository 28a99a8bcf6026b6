"""The handler of an imported operation: one call of the remote tool, one envelope.

A result is data, even when the tool reports a failure; whatever prevents a result is raised. Text is never parsed as
JSON, and the token comes from the context of the call.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec
from mcp.shared.inbound import mcp_param_headers

from headgate.errors import (
    AdapterError,
    CallError,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamUnsupported,
)
from headgate.mcp.client.limits import MAX_META_BYTES
from headgate.mcp.client.mapping import Tool
from headgate.mcp.client.message import checked_token, sanitise
from headgate.mcp.client.questions import Progress, QuestionHandler
from headgate.mcp.client.request_state import IMPATIENT, WAITING, Waiting
from headgate.mcp.client.upstream import Upstream
from headgate.operations.envelope import OUTPUT_MISSING, ResponseEnvelope, mcp_envelope, tool_error
from headgate.operations.registration import Handler, OperationContext
from headgate.operations.running import off_loop
from headgate.operations.secrets import Secret
from headgate.operations.spec import OutputKind
from headgate.schema.check import CompiledSchema
from headgate.schema.normalise import normalise
from headgate.schema.value import Issue, is_larger_than

Shape = Callable[[CompiledSchema, object], tuple[Any, tuple[Issue, ...]]]
_INPUT_REQUIRED = "input_required"
_QUICK_VALUES = 500
_PROTOCOL = (UpstreamProtocolError, UpstreamTooLarge, UpstreamUnsupported)


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What all handlers of one import use."""

    upstream: Upstream
    namespace: str
    #: Raises when the tool is blocked, or when that is not known by a time on the loop's clock.
    check: Callable[[str, float], Awaitable[None]]
    #: Answers a tool's questions; without one it may ask none.
    questions: QuestionHandler | None = None
    #: Fits a structured result to its schema, and lists what is still wrong.
    shape: Shape = normalise


def forwarding_handler(tool: Tool, forwarding: Forwarding) -> Handler:
    """Return the handler that calls one remote tool."""

    async def forward(value: Any, context: OperationContext) -> ResponseEnvelope:
        arguments = _arguments(value)
        waiting = context.metadata.get(WAITING, IMPATIENT)
        deadline = forwarding.upstream.deadline(_time_for(context.remaining_seconds()), waiting)
        try:
            token = _token(forwarding.namespace, context)
            raw = await _call(tool, forwarding, arguments, token=token, deadline=deadline, waiting=waiting)
            if _is_quick(tool, raw):
                return envelope_of(tool, raw, forwarding, request_id=context.request_id)
            return await off_loop(deadline, envelope_of, tool, raw, forwarding, request_id=context.request_id)
        except AdapterError as error:
            raise call_error(error) from error.with_traceback(None)

    return forward


async def _call(
    tool: Tool,
    forwarding: Forwarding,
    arguments: dict[str, Any],
    *,
    token: Secret | None,
    deadline: float,
    waiting: Waiting,
) -> dict[str, Any]:
    """Call the tool, and repeat the call with the input it asks for until it gives a result."""
    headers = mcp_param_headers(tool.header_map, arguments) if tool.header_map else None
    progress = Progress(tool.name)
    more: dict[str, Any] = {}
    while True:
        await forwarding.check(tool.name, deadline)
        raw = await forwarding.upstream.request(
            "tools/call",
            {"name": tool.name, "arguments": arguments, **more},
            token=token,
            deadline=deadline,
            param_headers=headers,
            waiting=waiting,
        )
        if forwarding.questions is None or raw.get("resultType") != _INPUT_REQUIRED:
            return raw
        more = await forwarding.questions.next_round(raw, progress=progress, token=token, deadline=deadline)


def _is_quick(tool: Tool, raw: Mapping[str, Any]) -> bool:
    """Return whether a result takes so little work that a thread would only delay it."""
    checks = [*([] if tool.output is None else [tool.output]), *tool.errors.values()]
    return all(check.is_light for check in checks) and not is_larger_than(raw, _QUICK_VALUES)


def _time_for(remaining: float | None) -> float | None:
    """Leave a little of the caller's time, so that the error of this deadline, which has details, comes first."""
    return None if remaining is None else remaining - min(0.25, remaining / 8)


def _arguments(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise CallError("INVALID_INPUT", "The arguments of a tool are an object.")
    return dict(cast("Mapping[str, Any]", value))


def _token(namespace: str, context: OperationContext) -> Secret | None:
    token = context.capabilities.get(namespace) or context.capabilities.get("mcp")
    return None if token is None else checked_token(token)


def envelope_of(
    tool: Tool, raw: Mapping[str, Any], forwarding: Forwarding, *, request_id: str = ""
) -> ResponseEnvelope:
    """Wrap a tool's raw result."""
    if raw.get("resultType", "complete") != "complete":
        raise UpstreamUnsupported("The tool asks for input that this client does not give.")
    limits = forwarding.upstream.limits
    blocks, meta = raw.get("content"), raw.get("_meta")
    if isinstance(blocks, list) and len(cast("list[Any]", blocks)) > limits.max_blocks:
        raise UpstreamTooLarge(f"The result has more than {limits.max_blocks} content blocks.")
    if len(msgspec.json.encode(meta)) > MAX_META_BYTES:
        raise UpstreamTooLarge(f"The _meta of the result has more than {MAX_META_BYTES} bytes.")
    content = map_mcp_content_blocks(cast("Any", blocks))
    structured = raw.get("structuredContent")
    data = content if structured is None else structured
    # Any other value counts as an error: a failure must never pass as a result.
    is_error = raw.get("isError") not in (None, False)
    issues: tuple[Issue, ...] = ()
    kind = tool.spec.output_kind
    if not is_error and tool.output is not None:
        if structured is None:
            kind, issues = OutputKind.CONTENT_BLOCKS, (_MISSING,)
        else:
            data, issues = forwarding.shape(tool.output, structured)
    elif structured is not None and not is_error:
        kind = OutputKind.STRUCTURED_UNDECLARED
    return mcp_envelope(
        data,
        is_error=is_error,
        content=content,
        structured_content=structured,
        meta=cast("Mapping[str, Any]", meta) if isinstance(meta, Mapping) else None,
        issues=issues,
        error=_tool_error(tool, content, structured, forwarding.namespace) if is_error else None,
        is_checked=True,
        output_kind=kind,
        request_id=request_id,
    )


_MISSING = Issue("$", OUTPUT_MISSING, "is declared, and was not sent")


def _tool_error(tool: Tool, content: list[dict[str, Any]], structured: Any, namespace: str) -> CallError:
    """Make the error of a failed tool: one that it declared, or else the general one."""
    general = tool_error(content, structured_content=structured, tool=tool.name, namespace=namespace)
    return _declared_error(tool, structured, general) or general


def _declared_error(tool: Tool, structured: Any, general: CallError) -> CallError | None:
    """Read ``{"error": {code, message, details}}``; the code alone selects the error, never the message."""
    match structured:
        case {"error": {"code": str(code), **rest}} if code in tool.errors:
            message, details = rest.get("message"), rest.get("details")
        case _:
            return None
    if not tool.errors[code].is_valid(details):
        return None
    # The server does not decide whether a call may be repeated.
    text = sanitise(message, None) if isinstance(message, str) else general.message
    return CallError(code, text, details=details, retryable=False)


def call_error(error: AdapterError) -> CallError:
    """Make the call error for a call without a result; its details hold the reason."""
    if isinstance(error, UpstreamAuthFailed):
        code = "MCP_UNAUTHORIZED"
    elif isinstance(error, UpstreamTimeout):
        code = "TIMEOUT"
    else:
        code = "MCP_PROTOCOL_ERROR" if isinstance(error, _PROTOCOL) else "MCP_TRANSPORT_ERROR"
    return CallError(code, error.message, details=reason_details(error), retryable=error.retryable)


def reason_details(error: AdapterError) -> dict[str, Any]:
    """Return the details of an error that another error is raised for."""
    return {"reason": error.code, **cast("Mapping[str, Any]", error.details or {})}


def map_mcp_content_blocks(blocks: object) -> list[dict[str, Any]]:
    """Map a result's content to known blocks; what is unknown becomes text that holds its JSON.

    Unknown keys of a known block are passed through.
    """
    if not isinstance(blocks, list):
        return []
    return [_mapped(block) for block in cast("list[Any]", blocks)]


def _mapped(block: Any) -> dict[str, Any]:
    if isinstance(block, dict):
        fields = cast("dict[str, Any]", block)
        kind = fields.get("type")
        known = _KNOWN.get(kind) if isinstance(kind, str) else None
        mapped = known(fields) if known is not None else None
        if mapped is not None:
            return _without_misfits(mapped)
    return {"type": "text", "text": _json(cast("Any", block))}


def _text(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, "text": _string(fields.get("text"))}


def _image(fields: Mapping[str, Any]) -> dict[str, Any]:
    return _media(fields, "application/octet-stream")


def _audio(fields: Mapping[str, Any]) -> dict[str, Any]:
    return _media(fields, "audio/octet-stream")


def _media(fields: Mapping[str, Any], fallback: str) -> dict[str, Any]:
    kind = fields.get("mimeType")
    data = _string(fields.get("data"))
    return {**fields, "data": data, "mimeType": kind if isinstance(kind, str) else fallback}


def _resource(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    resource = fields.get("resource")
    if not isinstance(resource, dict):
        return None
    inner = cast("dict[str, Any]", resource)
    strings = {name: _string(inner[name]) for name in ("mimeType", "text", "blob") if name in inner}
    return {**fields, "resource": {**inner, **strings, "uri": _string(inner.get("uri"))}}


def _resource_link(fields: Mapping[str, Any]) -> dict[str, Any]:
    link = {**fields, "uri": _string(fields.get("uri")), "name": _string(fields.get("name"))}
    size = link.get("size")
    if "size" in link and (isinstance(size, bool) or not isinstance(size, int)):
        del link["size"]
    for name in ("title", "description", "mimeType"):
        if not isinstance(link.get(name, ""), str):
            del link[name]
    return link


_KNOWN: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any] | None]] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource": _resource,
    "resource_link": _resource_link,
}


def _without_misfits(block: dict[str, Any]) -> dict[str, Any]:
    """Drop hints that do not have the form of the protocol; a bad hint must not fail a result."""
    if not isinstance(block.get("_meta", {}), dict):
        del block["_meta"]
    if "annotations" in block:
        hints = block["annotations"]
        if not isinstance(hints, dict):
            del block["annotations"]
        else:
            block["annotations"] = {
                name: value for name, value in cast("dict[str, Any]", hints).items() if _is_hint(name, value)
            }
    return block


def _is_hint(name: str, value: object) -> bool:
    match name:
        case "audience":
            return isinstance(value, list) and all(
                role in ("user", "assistant") for role in cast("list[Any]", value)
            )
        case "priority":
            return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        case "lastModified":
            return isinstance(value, str)
        case _:
            return True


def _string(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
