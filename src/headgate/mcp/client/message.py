"""One JSON-RPC message of a server: measured as bytes, then parsed, then without our token.

Pure functions. The size of a message says little about what it costs: eight megabytes of ``{}`` are two million
objects. So the values are counted, and the depth is measured, before anything is built from them. The count is taken of
the whole message, never of the parts in which it arrived, so that no check depends on how the bytes were split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

import msgspec

from headgate.errors import UpstreamProtocolError, UpstreamTooLarge
from headgate.mcp.client.redaction import redact_value, sanitise
from headgate.operations.secrets import Secret

#: Levels of a message. Whatever a tool declares or returns is bounded further where it is checked.
MAX_DEPTH = 192
_SLICE_BYTES = 64 * 1024
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_LONG_NUMBER = re.compile(rb"[0-9]{400}")
_TOKENS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message: a reply with a result or an error, or else a request or notification of the server."""

    #: As it was written; None when there is none.
    id: bytes | None = None
    is_reply: bool = False
    result: dict[str, Any] | None = None
    #: The code and the message of an error.
    error: tuple[int, str] | None = None
    #: What the error says besides, such as the versions that the server speaks.
    error_data: Any = None
    #: What the server asks or tells, and of what.
    method: str = ""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: How many JSON values it holds.
    values: int = 0


class _WireMessage(msgspec.Struct):
    jsonrpc: str
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: dict[str, Any] | list[Any] | None = None
    result: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    error: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def read_message(
    data: bytes, token: Secret | None, *, max_values: int, cuts_depth: bool = False
) -> IncomingMessage:
    """Parse a message.

    A tool list is cut at the depth limit instead of being refused: the cut definition is still deeper than a
    definition may be, so that one tool is refused and the others stay.

    Raises:
        UpstreamTooLarge: it holds too many values.
        UpstreamProtocolError: it is no JSON-RPC message, or nested too deeply.
    """
    values, depth = measure(data, max_values)
    if depth > MAX_DEPTH:
        if not cuts_depth:
            raise UpstreamProtocolError("The server's answer is nested too deeply.")
        data = cut_depth(data, MAX_DEPTH)
    try:
        wire = msgspec.json.decode(data, type=_WireMessage)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise UpstreamProtocolError("The server's answer is no JSON-RPC message.") from None
    message_id = (
        None if isinstance(wire.id, msgspec.UnsetType) or bytes(wire.id) == b"null" else bytes(wire.id)
    )
    has_result, has_error = wire.result is not msgspec.UNSET, wire.error is not msgspec.UNSET
    if wire.jsonrpc != "2.0" or (has_result, has_error, wire.method is not msgspec.UNSET).count(True) != 1:
        raise UpstreamProtocolError("The server's answer is no JSON-RPC message.")
    if has_error:
        fields = cast("dict[str, Any]", wire.error)
        more = redact_value(fields.get("data"), token)
        return IncomingMessage(
            message_id, is_reply=True, error=_error(fields, token), error_data=more, values=values
        )
    if not has_result:
        params: dict[str, Any] = redact_value(wire.params, token) if isinstance(wire.params, dict) else {}
        return IncomingMessage(message_id, method=cast("str", wire.method), params=params, values=values)
    # A token can hide from a search of the bytes in escapes, and nowhere else.
    result = redact_value(wire.result, token) if b"\\u" in data else wire.result
    return IncomingMessage(message_id, is_reply=True, result=cast("dict[str, Any]", result), values=values)


def _error(fields: dict[str, Any], token: Secret | None) -> tuple[int, str]:
    code, message = fields.get("code"), fields.get("message")
    if type(code) is not int or not isinstance(message, str):
        raise UpstreamProtocolError("The server's error is none of JSON-RPC.")
    return code, sanitise(message, token)


def measure(data: bytes, max_values: int) -> tuple[int, int]:
    """Count the values of a JSON text, and how deep it is nested; no text is parsed.

    Raises:
        UpstreamTooLarge: there are more values than allowed.
        UpstreamProtocolError: a number is longer than any reader takes.
    """
    values, depth, deepest, end = 1, 0, 0, b""
    for outside in _outside_strings(data):
        # Objects and lists take the memory, and the time to check, of several other values.
        values += outside.count(b",") + 2 * outside.count(b"[") + 4 * outside.count(b"{")
        if values > max_values:
            raise UpstreamTooLarge(f"The server's answer holds more than {max_values} values.")
        if _LONG_NUMBER.search(end + outside):
            raise UpstreamProtocolError("The server's answer holds a number that is too long.")
        end = (end + outside)[-400:]
        brackets = outside.translate(None, _NOT_BRACKETS)
        levels = list(accumulate((_STEPS[bracket] for bracket in brackets), initial=depth))
        depth, deepest = levels[-1], max(deepest, *levels)
    return values, deepest


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """Yield what stands outside of strings, slice by slice, each in place of every string one quote."""
    in_string, held = False, b""
    for start in range(0, len(data), _SLICE_BYTES):
        piece = (held + data[start : start + _SLICE_BYTES]).replace(b"\\\\", b"")
        held = b"\\" if piece.endswith(b"\\") else b""
        parts = piece.removesuffix(held).replace(b'\\"', b"").split(b'"')
        yield b'"'.join(parts[in_string::2])
        in_string ^= len(parts) % 2 == 0


def cut_depth(data: bytes, most: int) -> bytes:
    """Replace every value that begins below a depth by null."""
    pieces: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKENS.finditer(data):
        step = _STEPS.get(data[token.start()], 0)
        depth += step
        if step == 1 and depth == most + 1:
            pieces += [data[start : token.start()], b"null"]
        elif step == -1 and depth == most:
            start = token.end()
    return b"".join([*pieces, data[start:]])
