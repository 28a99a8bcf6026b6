"""Secrets of a handler, in objects that do not print, pickle or serialise their value.

The value leaves a ``Secret`` through ``expose()`` alone. Python cannot wipe a string from memory, so nothing
here claims to.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Never

REDACTED = "[REDACTED]"


class Secret:
    """A text that is not printed, pickled, serialised or hashed."""

    __slots__ = ("__value",)
    __value: str
    __hash__ = None  # pyright: ignore[reportAssignmentType] - a hashed secret could be guessed from outside

    def __init__(self, value: str | Secret) -> None:
        object.__setattr__(
            self, "_Secret__value", value.expose() if isinstance(value, Secret) else str(value)
        )

    def expose(self) -> str:
        """Return the value; call it where the value is used, and keep no copy."""
        return self.__value

    def __repr__(self) -> str:
        return REDACTED

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self.__value), _bytes(other.expose()))

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError("A secret does not change.")

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("A secret is not copied or pickled.")

    def __getstate__(self) -> Never:
        raise TypeError("A secret is not copied or pickled.")


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


_API_KEY = "api_key:"
_HTTP_TOKEN = "http_token:"  # noqa: S105 - the name of a kind of secret, not one


class Capabilities:
    """The secrets of one registration, by service; prints only how many there are."""

    __slots__ = ("__held",)
    __held: Mapping[str, Secret]

    def __init__(self) -> None:
        object.__setattr__(self, "_Capabilities__held", {})

    def with_api_key(self, service: str, value: str | Secret) -> Capabilities:
        """Return a copy with one more API key."""
        return self.__with(_API_KEY + service, Secret(value))

    def with_http_token(self, service: str, value: str | Secret) -> Capabilities:
        """Return a copy with one more bearer token."""
        return self.__with(_HTTP_TOKEN + service, Secret(value))

    def get(self, service: str) -> Secret | None:
        """Find the secret for a service, an API key before a bearer token."""
        return self.__held.get(_API_KEY + service) or self.__held.get(_HTTP_TOKEN + service)

    def __with(self, key: str, value: Secret) -> Capabilities:
        more = Capabilities()
        object.__setattr__(more, "_Capabilities__held", {**self.__held, key: value})
        return more

    def __len__(self) -> int:
        return len(self.__held)

    def __bool__(self) -> bool:
        return bool(self.__held)

    def __repr__(self) -> str:
        return f"Capabilities({len(self)})"

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError("Capabilities do not change; with_http_token gives new ones.")

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("Capabilities are not copied or pickled.")

    def __getstate__(self) -> Never:
        raise TypeError("Capabilities are not copied or pickled.")


NO_CAPABILITIES = Capabilities()
