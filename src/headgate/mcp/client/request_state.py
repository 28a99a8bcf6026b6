"""One request on its way: its deadline, its token, and what is known of its fate.

The wire writes down here what happens, where no response of a server can forge it; those who wait read it afterwards,
to decide whether the request can be repeated. ``Era`` is what the two eras of the protocol require on each request:
before 2026-07-28 a handshake opens a session; since then every request carries version, client and capabilities.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import anyio
from mcp import types
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from headgate import __version__
from headgate.errors import AdapterError, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from headgate.operations.secrets import Secret

CLIENT = types.Implementation(name="headgate", version=__version__)


@dataclass(frozen=True, slots=True)
class Era:
    """The protocol revision that was negotiated with a server."""

    version: str
    #: The client capabilities sent to the server; none without a callback that answers questions.
    offered: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_modern(self) -> bool:
        """Whether requests are independent of each other, without a session."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def stamp(
        self, method: str, params: Mapping[str, Any], param_headers: Mapping[str, str]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the parameters and the headers that a request must have."""
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if not self.is_modern:
            return dict(params), headers
        headers[MCP_METHOD_HEADER] = method
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        return {**params, "_meta": self._introduction()}, {**headers, **param_headers}

    def _introduction(self) -> dict[str, Any]:
        return {
            types.PROTOCOL_VERSION_META_KEY: self.version,
            types.CLIENT_INFO_META_KEY: {"name": CLIENT.name, "version": CLIENT.version},
            types.CLIENT_CAPABILITIES_META_KEY: dict(self.offered),
        }


#: Statuses with which a server asks for a later try.
LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def _no_headers() -> dict[str, str]:
    return {}


#: Receives how far a tool is: the progress, its total or None, and what the server says of it.
OnProgress = Callable[[float, float | None, str], None]


@dataclass(frozen=True, slots=True)
class Waiting:
    """How a caller waits for a tool."""

    on_progress: OnProgress | None = None
    #: Whether the caller named a time: then it alone bounds the silence of the server.
    is_patient: bool = False


#: The member of a call's metadata that holds it.
WAITING = "waiting"
IMPATIENT = Waiting()


@dataclass(slots=True, eq=False)
class RequestState:
    """What one request may take, and what is known of its response."""

    #: On the event loop's clock.
    deadline: float
    token: Secret | None = None
    #: None until the head of a response has arrived.
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=_no_headers)
    #: Whether a byte of the request may have reached the server.
    sent: bool = False
    #: Whether the request named a session, so that 404 means the session is gone.
    in_session: bool = False
    #: Whether the server answered, but with no result: it may speak another revision of the protocol.
    is_answered: bool = False
    #: The id of the request, as it is written; the answer must have it.
    rpc_id: bytes | None = None
    waiting: Waiting = IMPATIENT
    #: Whether a definition that is nested too deeply is cut instead of failing the response.
    cuts_depth: bool = False

    @property
    def is_endless(self) -> bool:
        """Whether it waits for events, which may come at any time, and not for an answer."""
        return math.isinf(self.deadline)

    def silent_until(self, idle_seconds: float) -> float:
        """Return until when the server may send nothing; a caller who names a time allows as much."""
        if self.waiting.is_patient:
            return self.deadline
        return min(self.deadline, asyncio.get_running_loop().time() + idle_seconds)

    @contextmanager
    def network_wait(self, until: float, *, late: str = "") -> Generator[None]:
        """Bound one wait for the server by a time on the loop's clock."""
        with anyio.CancelScope(deadline=until) as scope:
            yield
        if scope.cancelled_caught:
            raise UpstreamTimeout(late)

    def may_repeat(self, error: AdapterError, *, is_repeatable: bool) -> bool:
        """Whether the same request can be sent again: it never ran, or running it twice does no harm."""
        if self.lost_session:
            return True
        return isinstance(error, UpstreamUnreachable) and (is_repeatable or not self.sent)

    def mark_maybe_executed(self, error: AdapterError) -> AdapterError:
        """Note on an error that the request may have run, where that cannot be known."""
        if self.sent and isinstance(error, UpstreamUnreachable | UpstreamTimeout):
            error.details = {**(error.details or {}), "maybe_executed": True}
            error.retryable = False
        return error

    @property
    def lost_session(self) -> bool:
        """Whether the server no longer knows the session; it has then not run the request."""
        return self.in_session and self.status == HTTPStatus.NOT_FOUND

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server wants to be asked again, when it names a time."""
        return _seconds(self.headers.get("retry-after"), self.headers.get("date"))

    def refusal(self) -> UpstreamRefused:
        """Return the error of an answer with a status that is none of success."""
        details = {"status": self.status}
        if self.status in LATER:
            details = {**details, "retry_after": self.retry_after}
        return UpstreamRefused(
            f"The server answered {self.status}.", details=details, retryable=self.status in LATER
        )


_WHOLE_SECONDS = re.compile(r"[0-9]{1,12}")
#: A server may ask for a later try, but not put callers off for ever.
_LONGEST_PAUSE_SECONDS = 86_400.0


def _seconds(text: str | None, date: str | None) -> float | None:
    if text is None:
        return None
    if _WHOLE_SECONDS.fullmatch(text.strip()):
        return min(float(text), _LONGEST_PAUSE_SECONDS)
    try:
        # Both are times of the server's clock, so the difference does not depend on ours.
        pause = (parsedate_to_datetime(text) - parsedate_to_datetime(date or "")).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, pause), _LONGEST_PAUSE_SECONDS)
