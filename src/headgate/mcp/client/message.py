"""One JSON-RPC message of a server: measured as bytes, then parsed, then without our token.

Pure functions. The size of a message says little about what it costs: eight megabytes of ``{}`` are two million
objects. So the values are counted, and the depth is measured, before anything is built from them. The count is taken of
the whole message, never of the parts in which it arrived, so that no check depends on how the bytes were split. Our
token is taken out of whatever a server sends, and a server's text is made safe before it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

import msgspec

from headgate.errors import AdapterConfigInvalid, AdapterError, UpstreamProtocolError, UpstreamTooLarge
from headgate.operations.secrets import REDACTED, Secret

_MIN_TOKEN_CHARS = 8
_MAX_QUOTED_CHARS = 500
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def checked_token(token: Secret) -> Secret:
    """Return a token that can be taken out of text; a short one occurs in ordinary words and headers."""
    if len(token.expose()) < _MIN_TOKEN_CHARS:
        raise AdapterConfigInvalid(f"A token has at least {_MIN_TOKEN_CHARS} characters.")
    return token


class Redactor:
    """Takes a token out of bytes that come in parts, without holding back more than it must."""

    def __init__(self, token: Secret | None) -> None:
        self._token = token.expose().encode() if token is not None else b""
        self._held = b""

    def __call__(self, chunk: bytes) -> bytes:
        """Return those of the bytes so far that cannot be part of the token."""
        if not self._token:
            return chunk
        text = (self._held + chunk).replace(self._token, REDACTED.encode())
        keep = self._unfinished(text)
        self._held = text[len(text) - keep :] if keep else b""
        return text[: len(text) - keep]

    def rest(self) -> bytes:
        """Return what was held back; no more will come."""
        rest, self._held = self._held, b""
        return rest

    def _unfinished(self, text: bytes) -> int:
        """Count the bytes at the end that could be the beginning of the token."""
        longest = min(len(self._token) - 1, len(text))
        return next((n for n in range(longest, 0, -1) if self._token.startswith(text[-n:])), 0)


def redact_value(value: Any, token: Secret | None) -> Any:
    """Take the token out of a parsed response, which may spell it in escapes."""
    match value:
        case str():
            return redact_text(value, token)
        case list():
            return [redact_value(item, token) for item in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return {redact_value(key, token): redact_value(item, token) for key, item in pairs}
        case _:
            return value


def redact_text(text: str, token: Secret | None) -> str:
    """Take the token out of a text."""
    return text if token is None else text.replace(token.expose(), REDACTED)


def sanitise(text: str, token: Secret | None, *, most: int = _MAX_QUOTED_CHARS) -> str:
    """Make a server's text safe to quote: short, without control characters or the token."""
    short = redact_text(text, token)[:most]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def readable(body: bytes, token: Secret | None) -> str:
    """Return the beginning of an error's body as text that is safe to quote; escapes could hide the token."""
    text = body.decode("utf-8", "replace")
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return sanitise(" ".join(plain.split()), token)


def strip_tracebacks(error: AdapterError) -> AdapterError:
    """Take the tracebacks off an error and its causes: their frames hold the request, and so the token."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


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
    """Count the values of a JSON text, and how deep it is nested; no text is parsed."""
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
    in_string, backslash = False, b""
    for start in range(0, len(data), _SLICE_BYTES):
        piece = (backslash + data[start : start + _SLICE_BYTES]).replace(b"\\\\", b"")
        backslash = b"\\" if piece.endswith(b"\\") else b""
        parts = piece.removesuffix(backslash).replace(b'\\"', b"").split(b'"')
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
