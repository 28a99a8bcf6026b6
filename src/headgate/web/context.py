"""What is known about one request: made once by the front, under one scope key, and read by every layer after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from headgate.auth.keys import read_bearer
from headgate.errors import InvalidRequest
from headgate.model.grant import Access
from headgate.model.ids import ClientId, RequestId, request_id
from headgate.web.replies import Header

#: The only key that Headgate adds to an ASGI scope.
REQUEST = "headgate.request"
#: Headers that decide who is asking, for whom, or where a body ends: two of them would let two readers disagree.
_SINGLETONS = frozenset({b"host", b"authorization", b"origin", b"content-length"})


class RequestHeaders(msgspec.Struct, frozen=True):
    """The headers of a request, read once."""

    #: By lower-case name; the last value where a name repeats.
    values: Mapping[bytes, bytes]
    host: str
    #: The id the caller chose for its request, if it is a valid one.
    request_id: RequestId | None
    #: The bearer token; None when there is no ``Authorization`` header or it holds something else.
    bearer: str | None
    #: Whether a header occurs twice that must not.
    has_duplicate_singletons: bool


class RequestContext(msgspec.Struct):
    """One request, and what the layers learn about it."""

    request_id: RequestId
    headers: RequestHeaders
    scheme: str
    #: The network address the request came from.
    client_address: str
    #: When the request began, on the clock of `time.perf_counter`.
    started: float
    #: Method and path template of the address in the table: the label in metrics, logs and the disclosure log.
    route: str = "unknown"
    #: The status that was sent; 0 while there is none.
    status: int = 0
    #: What the token stands for, once it is admitted.
    access: Access | None = None
    #: Who holds the gateway token that was sent.
    gateway_caller: str | None = None

    @property
    def origin(self) -> str:
        """Scheme and host as the caller used them: the beginning of every link in an answer."""
        return f"{self.scheme}://{self.headers.host}"

    @property
    def client_id(self) -> ClientId | None:
        """The client that was admitted."""
        return None if self.access is None else self.access.client_id


def read_headers(headers: Iterable[Header]) -> RequestHeaders:
    """Read the headers of an ASGI scope."""
    pairs = list(headers)
    values = dict(pairs)
    return RequestHeaders(
        values,
        host=values.get(b"host", b"").decode("latin-1"),
        request_id=_request_id(values.get(b"request-id")),
        bearer=read_bearer(values.get(b"authorization")),
        has_duplicate_singletons=len(values) < len(pairs) and _has_duplicate_singletons(pairs),
    )


def _has_duplicate_singletons(pairs: list[Header]) -> bool:
    counts = Counter(name for name, _ in pairs)
    return any(counts[name] > 1 for name in _SINGLETONS)


def _request_id(value: bytes | None) -> RequestId | None:
    if value is None:
        return None
    try:
        return request_id(value.decode("latin-1"))
    except InvalidRequest:
        return None
