"""Takes our token out of what a server sends, and makes a server's text safe to quote."""

from __future__ import annotations

import math
from typing import Any, cast

from headgate.errors import AdapterError, UpstreamProtocolError
from headgate.operations.secrets import REDACTED, Secret

_MIN_TOKEN_BYTES = 8
_MAX_QUOTED_CHARS = 500
#: What may hide a token from a search for it, or is no JSON at all.
_SUSPECT = (b"\\u", b"NaN", b"Infinity")


class Redactor:
    """Takes a token out of bytes that come in parts, without holding back more than it must."""

    def __init__(self, token: Secret | None) -> None:
        text = token.expose().encode() if token is not None else b""
        # A token this short protects nothing, and replacing it would damage ordinary text.
        self._token = text if len(text) >= _MIN_TOKEN_BYTES else b""
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


def needs_redaction(clean: bytes) -> bool:
    """Whether bytes must be redacted again once they are parsed: they hold escapes, or are no JSON."""
    return any(suspect in clean for suspect in _SUSPECT)


def redact_value(value: Any, token: Secret | None) -> Any:
    """Take the token out of a parsed response that may spell it in escapes; refuse numbers JSON has not.

    Raises:
        UpstreamProtocolError: the response holds NaN or an infinity.
    """
    match value:
        case str():
            return redact_text(value, token)
        case float() if not math.isfinite(value):
            raise UpstreamProtocolError("The server's answer is not JSON: it holds NaN or an infinity.")
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


def strip_tracebacks(error: AdapterError) -> AdapterError:
    """Take the tracebacks off an error and its causes: their frames hold the request, and so the token."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error
