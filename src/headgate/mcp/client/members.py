"""What a server has beside its tools: resources to read and prompts to fill in. Both are data, and never run."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from headgate.errors import AdapterError, UpstreamProtocolError
from headgate.mcp.client.forward import call_error, map_mcp_content_blocks
from headgate.mcp.client.upstream import Upstream, list_all
from headgate.operations.secrets import Secret

_T = TypeVar("_T")


class Resource(msgspec.Struct, frozen=True, rename="camel"):
    """A resource of a server."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class ResourceContent(msgspec.Struct, frozen=True, rename="camel"):
    """A part of a resource: text, or bytes in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None

    @property
    def data(self) -> bytes:
        """The content as bytes.

        Raises:
            CallError: it is not base64.
        """
        if self.blob is None:
            return (self.text or "").encode()
        try:
            return base64.b64decode(self.blob, validate=True)
        except binascii.Error:
            raise call_error(UpstreamProtocolError("The resource is not base64.")) from None


class PromptArgument(msgspec.Struct, frozen=True):
    """What a prompt wants to know."""

    name: str
    description: str | None = None
    required: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """A prompt of a server."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a prompt that was filled in."""

    role: str
    block: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of one server."""

    upstream: Upstream
    token: Secret | None

    async def list(self) -> list[Resource]:
        """List the resources.

        Raises:
            CallError: they could not be listed.
        """
        return await _listed(self.upstream, self.token, "resources", Resource)

    async def read(self, uri: str) -> list[ResourceContent]:
        """Read a resource, which can have several parts.

        Raises:
            CallError: it could not be read.
        """
        answer = await _asked(self.upstream, self.token, "resources/read", {"uri": uri})
        return _as(list[ResourceContent], answer.get("contents"))


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of one server."""

    upstream: Upstream
    token: Secret | None

    async def list(self) -> list[Prompt]:
        """List the prompts.

        Raises:
            CallError: they could not be listed.
        """
        return await _listed(self.upstream, self.token, "prompts", Prompt)

    async def get(self, name: str, /, **arguments: str) -> list[PromptMessage]:
        """Fill in a prompt and return its messages.

        Raises:
            CallError: there is none of that name, or its arguments do not fit.
        """
        params = {"name": name, "arguments": arguments}
        answer = await _asked(self.upstream, self.token, "prompts/get", params)
        messages = _as(list[dict[str, Any]], answer.get("messages"))
        return [
            PromptMessage(str(message.get("role")), map_mcp_content_blocks([message.get("content")])[0])
            for message in messages
        ]


async def _listed(upstream: Upstream, token: Secret | None, kind: str, of: type[_T]) -> list[_T]:
    try:
        return _as(list[of], await list_all(upstream, kind, token, upstream.deadline()))
    except AdapterError as error:
        raise call_error(error) from error.with_traceback(None)


async def _asked(
    upstream: Upstream, token: Secret | None, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        return await upstream.request(
            method, params, token=token, deadline=upstream.deadline(), is_repeatable=True
        )
    except AdapterError as error:
        raise call_error(error) from error.with_traceback(None)


def _as(kind: type[_T], raw: Any) -> _T:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise call_error(UpstreamProtocolError(f"The server's answer does not fit: {error}.")) from None
