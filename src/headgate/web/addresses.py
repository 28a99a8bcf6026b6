"""Addresses: what one is, and how the address of a request is found. The table itself is in `headgate.web.app`.

Paths are matched undecoded, so that a record whose key holds a slash has an address too.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote

import msgspec
from starlette.types import Receive, Scope, Send

from headgate.errors import InvalidRequest, MethodRefused, NotFound, ResourceLimit
from headgate.web.admission import Callers, Sharing
from headgate.web.api.definitions import Endpoint
from headgate.web.refusals import Flavour
from headgate.web.replies import PDPP_VERSION, Header, HttpReply, RequestContext
from headgate.wiring import Services

_PLACE = re.compile(r"{(\w+)}")


class WebRequest(msgspec.Struct, frozen=True):
    """A request that was admitted, as its handler sees it."""

    context: RequestContext
    services: Services
    #: The values at the places of the path, percent-decoded.
    places: Mapping[str, str]
    scope: Scope
    receive: Receive
    send: Send

    async def body(self, most_bytes: int) -> bytes:
        """Read the whole body."""
        content = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise InvalidRequest("The request body was cut off.")
            content += message.get("body", b"")
            if len(content) > most_bytes:
                raise ResourceLimit(f"The body must have at most {most_bytes} bytes.")
            if not message.get("more_body", False):
                return bytes(content)


#: Answers a request; None when it has sent its response itself.
Handler: TypeAlias = Callable[[WebRequest], Awaitable[HttpReply | None]]


@dataclass(frozen=True, slots=True)
class Address:
    """One row of the table: a method and a path, who may call, and what answers."""

    method: str
    path: str
    callers: Callers
    handler: Handler
    flavour: Flavour = Flavour.REST
    #: A body that announces more bytes than this is refused before the token is looked at.
    max_body_bytes: int | None = None
    #: Headers that every response of the address carries.
    headers: tuple[Header, ...] = ()
    #: Checks of the request's headers that come before the token is looked at.
    check: Callable[[RequestContext], None] | None = None
    #: What the address takes and answers, where it is part of the REST interface.
    endpoint: Endpoint | None = None
    #: Which pages of other origins may call it from a browser.
    sharing: Sharing = Sharing.NO_PAGE
    #: Where a person is sent who follows a link to it in a browser, with the same places; empty sends them nowhere.
    page: str = ""
    #: The name of the address in metrics and logs: its method and path unless set.
    route: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "route", self.route or f"{self.method} {self.path}")


class AddressTable:
    """Finds the address of a request."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        methods = dict.fromkeys(address.method for address in addresses)
        self._by_method = {
            method: _MethodPaths([address for address in addresses if address.method == method])
            for method in methods
        }

    def find(self, method: str, raw_path: bytes) -> tuple[Address, Mapping[str, str]]:
        """Find an address and the values of its places; one that refuses when the table has none."""
        path = raw_path.decode("latin-1")
        paths = self._by_method.get("GET" if method == "HEAD" else method)
        match = None if paths is None else paths.find(path)
        if match is None:
            return self._refusing(path), {}
        if "%" not in path:
            return match
        return match[0], {name: unquote(value) for name, value in match[1].items()}

    def _refusing(self, path: str) -> Address:
        others = {method: paths.find(path) for method, paths in self._by_method.items()}
        allowed = {method: match[0] for method, match in others.items() if match is not None}
        if not allowed:
            return NOT_FOUND
        return _with_other_methods(", ".join(allowed), next(iter(allowed.values())))


class _MethodPaths:
    """The addresses of one method, all found by one pattern."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        #: By the number of the pattern's group that holds the whole path; the groups of its places follow it.
        self._found: dict[int | None, tuple[Address, tuple[str, ...], tuple[int, ...]]] = {}
        group, patterns = 1, list[str]()
        for address in addresses:
            names = tuple(_PLACE.findall(address.path))
            groups = tuple(range(group + 1, group + 1 + len(names)))
            self._found[group] = address, names, groups
            group += 1 + len(names)
            patterns.append(_pattern(address.path))
        self._match = re.compile("|".join(patterns)).fullmatch

    def find(self, path: str) -> tuple[Address, Mapping[str, str]] | None:
        match = self._match(path)
        if match is None:
            return None
        address, names, groups = self._found[match.lastindex]
        return address, dict(zip(names, map(match.__getitem__, groups), strict=True))


def _pattern(path: str) -> str:
    """Write a path as a pattern without backtracking; slashes at its end are ignored, so a place there is not empty."""
    *others, last = map(_segment_pattern, path.split("/"))
    return f"({'/'.join(others)}/{last.replace('*+', '++')}/*+)"


def _segment_pattern(segment: str) -> str:
    return "([^/]*+)" if _PLACE.fullmatch(segment) else re.escape(segment)


async def _not_found(_request: WebRequest) -> HttpReply:
    raise NotFound("There is nothing at this address.")


#: Answers where the table has no address.
NOT_FOUND = Address(
    "*", "*", Callers.ANYONE, _not_found, headers=(PDPP_VERSION,), sharing=Sharing.LISTED, route="unknown"
)


def _with_other_methods(allowed: str, known: Address) -> Address:
    async def refuse(_request: WebRequest) -> HttpReply:
        raise MethodRefused(data={"allow": allowed})

    return Address(
        "*",
        known.path,
        Callers.ANYONE,
        refuse,
        known.flavour,
        headers=known.headers,
        sharing=known.sharing,
        route=known.path,
    )
