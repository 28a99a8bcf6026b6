"""Takes our token out of what a server sends, and makes a server's text safe to quote."""

from __future__ import annotations

import re
from typing import Any, cast

from headgate.errors import AdapterConfigInvalid, AdapterError
from headgate.operations.secrets import REDACTED, Secret

_MIN_TOKEN_CHARS = 8
_MAX_QUOTED_CHARS = 500
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def checked_token(token: Secret) -> Secret:
    """Return a token that can be taken out of text; a short one occurs in ordinary words and headers.

    Raises:
        AdapterConfigInvalid: it is too short.
    """
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
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return sanitise(" ".join(plain.split()), token)


def strip_tracebacks(error: AdapterError) -> AdapterError:
    """Take the tracebacks off an error and its causes: their frames hold the request, and so the token."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error
