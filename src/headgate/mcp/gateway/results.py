"""The answer of an operation as a tool result: its content blocks as they came, and its structure where it has one. Pure.

Each channel is counted alone, because a model sees one of them. An answer that is longer than one channel may be is
represented by its handle, its shape and its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.errors import CallError
from headgate.mcp.gateway.selecting import pruned, shape_of
from headgate.mcp.gateway.stored import StoredCall
from headgate.operations.envelope import error_to_dict
from headgate.schema.value import copy_json

#: The most of one channel. Images and sound are counted apart: hosts do not show them as text.
ANSWER_BYTES = 12_000
MEDIA_BYTES = 1_000_000
_BEGINNING_CHARS = 4_000
_DETAIL_BYTES = 4_000
_MEDIA = frozenset({"image", "audio"})
_HOW_TO_READ = (
    "The whole answer is stored for an hour; read gives parts of it: path, where, fields, q, offset, limit."
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call."""

    structured: dict[str, Any] | None
    content: Sequence[Mapping[str, Any]]
    is_error: bool = False


def structure(document: dict[str, Any]) -> ToolResult:
    """Return a result of this gateway's own, the same in both channels."""
    return ToolResult(document, mirror(document))


def text(words: str) -> ToolResult:
    """Return a result that is text alone."""
    return ToolResult(None, [{"type": "text", "text": words}])


def failed(error: CallError) -> ToolResult:
    """Turn an error into a result."""
    structured = {"error": shown_error(error)}
    return ToolResult(structured, mirror(structured), is_error=True)


def shown_error(error: CallError) -> dict[str, Any]:
    """Return the wire form of an error; details that are too long are left out, its code and message are not."""
    wire = error_to_dict(error)
    details, problem = copy_json(wire.pop("details", None))
    too_long = problem is not None or len(msgspec.json.encode(details)) > _DETAIL_BYTES
    document = wire if details is None or too_long else {**wire, "details": details}
    return {**document, "hint": error.hint} if error.hint else document


def mirror(structured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write a structure as the text block that stands beside it."""
    return [{"type": "text", "text": msgspec.json.encode(structured).decode()}]


def answer_of(call: StoredCall, handle: str) -> ToolResult:
    """Show the answer of a call whole, or what there is of it where it is too long."""
    size = max(_text_bytes(call.content), _size(call.structured) if call.has_structure else 0)
    if size > ANSWER_BYTES:
        return _beginning(call, handle)
    structured = {"output": call.structured} if call.has_structure else None
    blocks = [*_within_limits(call.content), *_how_to_read_links(call.content, handle)]
    return ToolResult(structured, blocks or (mirror(structured) if structured else ()))


def output_of(call: StoredCall, handle: str, most: int) -> Any:
    """Return the answer of a call as one value; one that is too long is a part of it, and the handle."""
    document = document_of(call)
    return document if _size(document) <= most else _summary(document, handle, most)


def document_of(call: StoredCall) -> Any:
    """Return an answer as one JSON value: its structure, else what its text is as JSON, else its text."""
    if call.has_structure:
        return call.structured
    words = text_of(call.content)
    if words[:1] in {"{", "["}:
        try:
            return msgspec.json.decode(words)
        except msgspec.DecodeError:
            return words
    return words


def text_of(blocks: Iterable[Mapping[str, Any]]) -> str:
    """Write content blocks as one text."""
    return "\n".join(_text_of_block(block) for block in blocks)


def media_of(call: StoredCall) -> list[Mapping[str, Any]]:
    """Return the images and the sound of an answer."""
    return [block for block in _within_limits(call.content) if block.get("type") in _MEDIA]


def links_of(blocks: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the addresses of the resources that content blocks link to."""
    return [str(block["uri"]) for block in blocks if block.get("type") == "resource_link"]


def _beginning(call: StoredCall, handle: str) -> ToolResult:
    document = document_of(call)
    media = media_of(call)
    if isinstance(document, str):
        note = f'The answer has {len(document)} characters, and begins so. read(answer="{handle}", offset={_BEGINNING_CHARS}) goes on; q finds words in it.'
        return ToolResult(
            None, [{"type": "text", "text": f"{note}\n\n{document[:_BEGINNING_CHARS]}"}, *media]
        )
    summary = _summary(document, handle, ANSWER_BYTES)
    return ToolResult(summary if call.has_structure else None, [*mirror(summary), *media])


def _summary(document: Any, handle: str, most: int) -> dict[str, Any]:
    facts = {"answer": handle, "note": _HOW_TO_READ, "bytes": _size(document)}
    shape = shape_of(document)
    while shape and _size(shape) > most // 4:
        shape = shape[: len(shape) // 2]
    return {**facts, "shape": shape, "beginning": pruned(document, most // 3)}


def _text_of_block(block: Mapping[str, Any]) -> str:
    match block:
        case {"type": "text", "text": str(words)} | {"type": "resource", "resource": {"text": str(words)}}:
            return words
        case {"type": "resource_link", "name": str(name), "uri": str(uri)}:
            return f"[{name}: {uri}]"
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return ""


def _within_limits(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Pass blocks on; of images and sound as much as a host takes."""
    left = MEDIA_BYTES
    for block in blocks:
        size = _media_bytes([block])
        left -= size
        if left >= 0:
            yield block
            continue
        left += size
        kind = block.get("mimeType") or block.get("type")
        yield {"type": "text", "text": f"[{kind}: {size} characters of base64, too many for one answer]"}


def _how_to_read_links(blocks: Sequence[Mapping[str, Any]], handle: str) -> list[Mapping[str, Any]]:
    links = links_of(blocks)
    if not links:
        return []
    listed = "\n".join(links[:10])
    return [{"type": "text", "text": f'read(answer="{handle}", uri=…) reads what is linked:\n{listed}'}]


def _text_bytes(blocks: Iterable[Mapping[str, Any]]) -> int:
    return sum(_size(block) for block in blocks if not _media_bytes([block]))


def _media_bytes(blocks: Iterable[Mapping[str, Any]]) -> int:
    size = 0
    for block in blocks:
        match block:
            case {"type": "image" | "audio", "data": str(data)}:
                size += len(data)
            case {"type": "resource", "resource": {"blob": str(data)}}:
                size += len(data)
            case _:
                pass
    return size


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))
