"""The envelope of every result: the data, where it came from, and where it breaks its schema.

Reading ``data`` never raises, even when the remote tool failed; ``unwrap()`` raises. Only an instance of this
class is an envelope; a mapping of the same shape is one only when it is read from a wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Never, TypeAlias, TypeVar

import msgspec
from pydantic import TypeAdapter

from headgate.errors import CallError
from headgate.operations.content import Image, blocks_text, images_of
from headgate.operations.spec import OutputKind
from headgate.operations.typed import as_model
from headgate.schema.value import Issue

_MESSAGE_CHARS = 500
_T = TypeVar("_T")
#: The code of an issue: a declared output was not sent.
OUTPUT_MISSING = "MCP_OUTPUT_MISSING"


@dataclass(frozen=True, slots=True)
class LocalMeta:
    """The data was made in this process."""

    source: ClassVar[str] = "local"
    operation_id: str
    #: Milliseconds since 1970.
    timestamp: int | float


@dataclass(frozen=True, slots=True)
class McpMeta:
    """The data came from an MCP tool."""

    source: ClassVar[str] = "mcp"
    is_error: bool
    content: Sequence[Mapping[str, Any]]
    #: As the server sent it, before anything was normalised; None when it sent none.
    structured_content: Any = None
    meta: Mapping[str, Any] | None = None


Meta: TypeAlias = LocalMeta | McpMeta


@dataclass(frozen=True, slots=True)
class ResponseEnvelope:
    """A result: ``data`` with its ``meta``."""

    data: Any
    meta: Meta
    _: KW_ONLY
    request_id: str = ""
    #: Where the data breaks the declared output schema.
    issues: tuple[Issue, ...] = ()
    #: What ``unwrap`` raises; filled in when the tool failed or there are issues.
    error: CallError | None = field(default=None, compare=False)
    #: Set by an adapter that has normalised and checked the data itself.
    is_checked: bool = False
    #: Set by an adapter when it differs from what the spec says.
    output_kind: OutputKind | None = None

    def __post_init__(self) -> None:
        if self.error is None and (self.issues or self.is_error):
            object.__setattr__(self, "error", _failure_of(self))

    @property
    def is_error(self) -> bool:
        """Whether the remote result is an error result."""
        return isinstance(self.meta, McpMeta) and self.meta.is_error

    @property
    def ok(self) -> bool:
        """Whether ``unwrap`` would give the data."""
        return self.error is None

    @property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        """The content blocks of a remote result, as the server sent them."""
        return self.meta.content if isinstance(self.meta, McpMeta) else ()

    @property
    def text(self) -> str:
        """The text of the content blocks; of data without one, its JSON."""
        text = blocks_text(self.blocks)
        return text if text or self.data is self.blocks else msgspec.json.encode(self.data).decode()

    @property
    def images(self) -> list[Image]:
        """The images of a remote result.

        Raises:
            CallError: one of them is not base64 (``INVALID_OUTPUT``).
        """
        try:
            return images_of(self.blocks)
        except ValueError:
            raise CallError("INVALID_OUTPUT", "An image of the result is not base64.") from None

    def into(self, model: type[_T]) -> _T:
        """Return the data as a model, or as any type that pydantic knows.

        Raises:
            CallError: the call failed, or its data does not fit (``INVALID_OUTPUT``).
        """
        return as_model(TypeAdapter(model), self.unwrap(allow_issues=True))

    def unwrap(self, *, allow_issues: bool = False) -> Any:
        """Return the data, or raise the error.

        Raises:
            CallError: the tool failed, or the data breaks its schema and issues are not allowed.
        """
        if self.error is None or (allow_issues and not self.is_error and self.issues):
            return self.data
        raise self.error.with_traceback(None)

    def unwrap_or_none(self) -> Any:
        """Return the data, or None when the remote result is an error."""
        return None if self.is_error else self.data

    def __bool__(self) -> Never:
        raise TypeError("An envelope is neither true nor false; ask .ok")

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form; what is absent is left out, not null."""
        wire: dict[str, Any] = {"data": self.data, "meta": _meta_to_dict(self.meta)}
        if self.request_id:
            wire["requestId"] = self.request_id
        if self.issues:
            wire["issues"] = [issue.to_dict() for issue in self.issues]
        if self.error is not None:
            wire["error"] = error_to_dict(self.error)
        return wire

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> ResponseEnvelope:
        """Read the wire form.

        Raises:
            CallError: it is not an envelope (``INVALID_OUTPUT``).
        """
        if not is_envelope_dict(wire):
            raise CallError("INVALID_OUTPUT", "This is not a response envelope.")
        error = wire.get("error")
        return cls(
            wire["data"],
            _meta_from_dict(wire["meta"]),
            request_id=wire.get("requestId", ""),
            issues=tuple(Issue.from_dict(issue) for issue in wire.get("issues", ())),
            error=None if error is None else error_from_dict(error),
        )


def local_envelope(
    data: Any, operation_id: str, *, timestamp: float, request_id: str = ""
) -> ResponseEnvelope:
    """Wrap what a handler of this process returned."""
    return ResponseEnvelope(data, LocalMeta(operation_id, timestamp), request_id=request_id)


def mcp_envelope(  # noqa: PLR0913 - one keyword for each part of a tool result
    data: Any,
    *,
    is_error: bool = False,
    content: Sequence[Mapping[str, Any]] = (),
    structured_content: Any = None,
    meta: Mapping[str, Any] | None = None,
    issues: Sequence[Issue] = (),
    error: CallError | None = None,
    is_checked: bool = False,
    output_kind: OutputKind | None = None,
    request_id: str = "",
) -> ResponseEnvelope:
    """Wrap the result of an MCP tool, error results too."""
    return ResponseEnvelope(
        data,
        McpMeta(is_error, list(content), structured_content, meta),
        request_id=request_id,
        issues=tuple(issues),
        error=error,
        is_checked=is_checked,
        output_kind=output_kind,
    )


def unwrap(envelope: ResponseEnvelope) -> Any:
    """Return an envelope's data, or raise its error."""
    return envelope.unwrap()


def tool_error(
    content: Sequence[Mapping[str, Any]],
    *,
    structured_content: Any = None,
    tool: str | None = None,
    namespace: str | None = None,
) -> CallError:
    """Make the error of a tool that answered ``isError``; all its content is in the details."""
    details = {
        "content": list(content),
        "structuredContent": structured_content,
        "tool": tool,
        "namespace": namespace,
    }
    message = blocks_text(content, separator="; ")[:_MESSAGE_CHARS]
    return CallError(
        "MCP_TOOL_ERROR",
        message or "The tool reported an error without saying which.",
        details={name: value for name, value in details.items() if value is not None},
    )


def error_to_dict(error: CallError) -> dict[str, Any]:
    """Return the wire form of a call error."""
    wire: dict[str, Any] = {"code": error.code, "message": error.message, "retryable": error.retryable}
    return wire if error.details is None else {**wire, "details": error.details}


def error_from_dict(wire: Mapping[str, Any]) -> CallError:
    """Read the wire form of a call error; an unknown code counts as internal, not retryable."""
    return CallError(
        str(wire["code"]),
        str(wire.get("message", "")),
        details=wire.get("details"),
        retryable=bool(wire.get("retryable", False)),
    )


def is_envelope_dict(value: object) -> bool:
    """Return whether a value read from a wire has the shape of an envelope; not for a handler's result."""
    match value:
        case {
            "data": object(),
            "meta": {"source": "local", "operationId": str(), "timestamp": int() | float() as at},
        }:
            return not isinstance(at, bool)
        case {"data": object(), "meta": {"source": "mcp", "isError": bool(), "content": list()}}:
            return True
        case _:
            return False


def _failure_of(envelope: ResponseEnvelope) -> CallError:
    meta = envelope.meta
    if isinstance(meta, McpMeta) and meta.is_error:
        return tool_error(meta.content, structured_content=meta.structured_content)
    details = {"issues": [issue.to_dict() for issue in envelope.issues]}
    if any(issue.keyword == OUTPUT_MISSING for issue in envelope.issues):
        return CallError(OUTPUT_MISSING, "The tool declares an output and sent none.", details=details)
    message = f"The output breaks its schema at {places_of(envelope.issues)}."
    return CallError("INVALID_OUTPUT", message, details=details)


def places_of(issues: Sequence[Issue]) -> str:
    """Name the first places and the rules that are broken there."""
    return ", ".join(f"{issue.path} ({issue.keyword})" for issue in issues[:5])


def _meta_to_dict(meta: Meta) -> dict[str, Any]:
    match meta:
        case LocalMeta():
            return {"source": "local", "operationId": meta.operation_id, "timestamp": meta.timestamp}
        case McpMeta():
            wire: dict[str, Any] = {"source": "mcp", "isError": meta.is_error, "content": list(meta.content)}
            if meta.structured_content is not None:
                wire["structuredContent"] = meta.structured_content
            return wire if meta.meta is None else {**wire, "_meta": dict(meta.meta)}


def _meta_from_dict(wire: Mapping[str, Any]) -> Meta:
    if wire["source"] == "local":
        return LocalMeta(wire["operationId"], wire["timestamp"])
    return McpMeta(wire["isError"], wire["content"], wire.get("structuredContent"), wire.get("_meta"))
