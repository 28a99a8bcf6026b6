"""The head of a request: what its headers say that every part of the server asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import msgspec

from headgate.errors import InvalidRequest
from headgate.model.ids import request_id
from headgate.web.api.replies import Header

#: Where in the scope it stands, if the server has read it already.
HEAD = "headgate.head"
LENGTH = b"content-length"
_STAND_ALONE = frozenset({b"host", b"authorization", b"origin", LENGTH})


class Head(msgspec.Struct, frozen=True):
    """What was read of a request's headers."""

    #: By name, the last of each; without the length of the body, which differs from request to request.
    values: Mapping[bytes, bytes]
    host: str
    #: By what name the caller knows the request, if it gave a good one.
    request_id: str | None
    #: The token, if one was sent the way tokens are sent.
    bearer: str | None
    #: Whether a header that must stand alone does not.
    is_doubled: bool
    #: Whether a proxy says who the caller was.
    is_forwarded: bool
    #: Whether the caller waits to be told that its body is welcome.
    is_waiting: bool
    #: For whoever reads more out of the same headers, to do it once.
    notes: dict[str, Any] = {}


def head_of(scope: MutableMapping[str, Any]) -> Head:
    """Read the headers of a request, or remember what they said."""
    head: Head | None = scope.get(HEAD)
    if head is None:
        head = scope[HEAD] = read_head(scope["headers"])
    return head


def read_head(headers: Iterable[Header]) -> Head:
    """Read headers."""
    given = list(headers)
    values = dict(given)
    is_doubled = len(values) < len(given) and _is_doubled(given)
    values.pop(LENGTH, None)
    return Head(
        values,
        host=values.get(b"host", b"").decode("latin-1"),
        request_id=_request_id(values.get(b"request-id")),
        bearer=_bearer(values.get(b"authorization", b"").decode("latin-1")),
        is_doubled=is_doubled,
        is_forwarded=any(name.startswith(b"x-forwarded-") for name in values),
        is_waiting=values.get(b"expect", b"").lower() == b"100-continue",
    )


def _is_doubled(given: list[Header]) -> bool:
    names = Counter(name for name, _ in given)
    return any(names[name] > 1 for name in _STAND_ALONE)


def _request_id(given: bytes | None) -> str | None:
    if given is None:
        return None
    try:
        return request_id(given.decode("latin-1"))
    except InvalidRequest:
        return None


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None
