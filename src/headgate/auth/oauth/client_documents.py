"""Clients that are known by the address of a document (Client ID Metadata Documents): fetched, checked, remembered."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from authlib.oauth2 import OAuth2Error

from headgate.auth.oauth.clients import OAuthClient, from_document, is_document_url
from headgate.errors import HeadgateError
from headgate.telemetry import get_logger

MAX_DOCUMENT_BYTES = 5 * 1024
_LEAST_SECONDS, _MOST_SECONDS, _AFTER_FAILURE_SECONDS = 300, 86_400, 30
_MOST_REMEMBERED, _OFFLINE_US = 256, 3600 * 1_000_000
_MAX_AGE = re.compile(r"max-age=([0-9]{1,9})")
_JSON_TYPES = re.compile(r"application/(?:json|[a-z0-9.+-]+\+json)\s*(?:;.*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document as a server sent it."""

    status: int
    content_type: str
    cache_control: str
    content: bytes


#: Fetches an address within limits of size and time, from public addresses only, without following redirects.
FetchDocument = Callable[[str], Awaitable[FetchedDocument]]


class ClientDocuments:
    """Fetches documents of clients; one that was fetched, or could not be, is remembered for a while."""

    __slots__ = ("_clock", "_fetch", "_known", "offline_until")

    def __init__(self, fetch: FetchDocument, clock: Callable[[], int]) -> None:
        self._fetch = fetch
        #: Gives the time in microseconds since 1970.
        self._clock = clock
        #: After a fetch without an answer clients better register for a while, which needs no way out.
        self.offline_until = 0
        self._known: OrderedDict[str, tuple[OAuthClient | None, int]] = OrderedDict()

    async def client(self, client_id: str) -> OAuthClient | None:
        """Return the client whose document is at its id; None if there is no acceptable one."""
        if not is_document_url(client_id):
            return None
        known = self._known.get(client_id)
        if known is not None and self._clock() < known[1]:
            return known[0]
        client, seconds = await self._fetched(client_id)
        self._known[client_id] = client, self._clock() + seconds * 1_000_000
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return client

    async def _fetched(self, client_id: str) -> tuple[OAuthClient | None, int]:
        try:
            self.offline_until = self._clock() + _OFFLINE_US
            fetched = await self._fetch(client_id)
            self.offline_until = 0
            client = from_document(client_id, _document(fetched), now=self._clock())
            return client, _seconds(fetched.cache_control)
        except (HeadgateError, OAuth2Error, ValueError) as error:
            get_logger().warning("client_document_refused", reason=type(error).__name__)
            return None, _AFTER_FAILURE_SECONDS


def _document(fetched: FetchedDocument) -> dict[str, Any]:
    is_json = fetched.status == HTTPStatus.OK and _JSON_TYPES.fullmatch(fetched.content_type)
    if not is_json or len(fetched.content) > MAX_DOCUMENT_BYTES:
        raise ValueError("the answer is no JSON document of a client")
    return msgspec.json.decode(fetched.content, type=dict[str, Any])


def _seconds(cache_control: str) -> int:
    max_age = _MAX_AGE.search(cache_control)
    return min(max(int(max_age[1]) if max_age else 0, _LEAST_SECONDS), _MOST_SECONDS)
