"""MCP content blocks as plain JSON: their shapes, and the schema that all of them fit.

A block is a view over what the server sent, so keys unknown here survive. This module does not use the MCP library.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict


class Annotations(TypedDict, total=False):
    """Hints of the server about a block."""

    audience: list[Literal["user", "assistant"]]
    priority: float
    lastModified: str


class _Common(TypedDict, total=False):
    annotations: Annotations
    #: A wire name, not a private attribute.
    _meta: dict[str, Any]


class TextBlock(_Common):
    type: Literal["text"]
    text: str


class ImageBlock(_Common):
    """An image in base64."""

    type: Literal["image"]
    data: str
    mimeType: str


class AudioBlock(_Common):
    """Audio in base64."""

    type: Literal["audio"]
    data: str
    mimeType: str


class ResourceBlock(_Common):
    """A resource, enclosed."""

    type: Literal["resource"]
    resource: dict[str, Any]


class _ResourceLink(_Common, total=False):
    title: str
    description: str
    mimeType: str
    size: int


class ResourceLinkBlock(_ResourceLink):
    """A resource, by address; it is data and never fetched."""

    type: Literal["resource_link"]
    uri: str
    name: str


ContentBlock: TypeAlias = TextBlock | ImageBlock | AudioBlock | ResourceBlock | ResourceLinkBlock

_STRING: Mapping[str, Any] = {"type": "string"}

_ANNOTATIONS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "audience": {"type": "array", "items": {"enum": ["user", "assistant"]}},
        "priority": {"type": "number", "minimum": 0, "maximum": 1},
        "lastModified": _STRING,
    },
}


def _block(kind: str, required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "type": {"const": kind},
            **required,
            **optional,
            "annotations": _ANNOTATIONS,
            "_meta": {"type": "object"},
        },
        "required": ["type", *required],
    }


_RESOURCE: Mapping[str, Any] = {
    "type": "object",
    "properties": {"uri": _STRING, "mimeType": _STRING, "text": _STRING, "blob": _STRING},
    "required": ["uri"],
}

#: The output schema of a tool that declares none: a list of the five kinds of block.
MCP_CONTENT_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "anyOf": [
            _block("text", {"text": _STRING}),
            _block("image", {"data": _STRING, "mimeType": _STRING}),
            _block("audio", {"data": _STRING, "mimeType": _STRING}),
            _block("resource", {"resource": _RESOURCE}),
            _block(
                "resource_link",
                {"uri": _STRING, "name": _STRING},
                title=_STRING,
                description=_STRING,
                mimeType=_STRING,
                size={"type": "integer"},
            ),
        ]
    },
}


@dataclass(frozen=True, slots=True)
class Image:
    """An image of a result."""

    data: bytes
    mime_type: str


def images_of(blocks: Iterable[Mapping[str, Any]]) -> list[Image]:
    """Return the images among content blocks.

    Raises:
        ValueError: one of them is not base64.
    """
    return [
        Image(base64.b64decode(block["data"], validate=True), block["mimeType"])
        for block in blocks
        if block.get("type") == "image"
    ]


def blocks_text(blocks: Iterable[Mapping[str, Any]], *, separator: str = "\n") -> str:
    """Join the text blocks; the text is not parsed."""
    return separator.join(str(block["text"]) for block in blocks if block.get("type") == "text")
