"""Content blocks of a tool result, mapped to the five kinds that Headgate has.

One block in, one block out, in order. Nothing is parsed, fetched or dropped, and no block makes the mapping fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast


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
