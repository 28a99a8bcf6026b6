"""The outcome of a tool call, before it is written for a transport: text, structure, links, and whether it failed."""

from __future__ import annotations

import msgspec

from headgate.model.wire import Json
from headgate.text.quote import UNTRUSTED


class Outcome(msgspec.Struct, frozen=True):
    """One answer of one tool."""

    #: Encoded already, where the size or the text needed that anyway.
    structured: Json | msgspec.Raw
    text: str
    is_error: bool = False
    #: Resource links, always after the text.
    links: tuple[Json, ...] = ()
    #: Whether the structure says itself that it holds texts of records; else the metadata of the answer do.
    has_trust: bool = False

    def wire(self) -> Json:
        """Write it as the result of ``tools/call``."""
        content: list[Json] = [{"type": "text", "text": self.text}, *self.links]
        # Left out, it means false; a model pays for every byte.
        failing = {"isError": True} if self.is_error else {}
        trust = {} if self.has_trust else {"_meta": dict(UNTRUSTED)}
        return {"content": content, "structuredContent": self.structured, **failing, **trust}

    def whole(self) -> Json:
        """Write it with every part decoded, as the SDK and a person take it."""
        encoded = self.structured
        if not isinstance(encoded, msgspec.Raw):
            encoded = msgspec.json.encode(encoded)
        return {**self.wire(), "structuredContent": msgspec.json.decode(encoded)}


def link(uri: str, name: str, *, mime_type: str | None = None, size: int | None = None) -> Json:
    """Write a link to a resource."""
    found: Json = {"type": "resource_link", "uri": uri, "name": name}
    if mime_type is not None:
        found["mimeType"] = mime_type
    return found if size is None else {**found, "size": size}
