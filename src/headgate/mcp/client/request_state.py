"""One request on its way: its deadline, its token, and what is known of its fate.

The protocol library sits in the middle of every call and turns each failure into the same few errors. So the guard
below it writes down here what really happened, where no response of a server can forge it, and the session above
it reads ``outcome()``::

    Upstream        UpstreamSession       SDK dispatcher       GuardedTransport         Sender
       |  request(state)  |                     |                     |                    |
       |----------------->|  admit(state): key  |                     |                    |
       |                  |------------------------------------------->|                    |
       |                  |  send_raw_request   |                     |                    |
       |                  |  (header: key)      |   POST (header: key)|                    |
       |                  |-------------------->|-------------------->|  send(state)       |
       |                  |                     |                     |------------------->|
       |                  |                     |                     |     state.sent     |  first byte written
       |                  |                     |                     |<-------------------|
       |                  |                     |                     |  state.status, .headers, .failure
       |                  |                     |  response, or a 503 |                    |
       |                  |  result, MCPError,  |<--------------------|                    |
       |                  |  or no answer       |                     |                    |
       |                  |<--------------------|                     |                    |
       |  result, or      |                     |                     |                    |
       |  state.outcome() |  abandon(): ends what is still under way  |                    |
       |<-----------------|------------------------------------------->|                    |

The key is needed because the library makes the HTTP request in a task that serves all calls of the session.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import anyio
from mcp import MCPError, types

from headgate.errors import (
    AdapterError,
    UpstreamProtocolError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from headgate.mcp.client.redaction import sanitise
from headgate.operations.secrets import Secret

#: Carries the key of a request's state through the library; the guard takes it off.
REQUEST_HEADER = "headgate-request"

#: Statuses with which a server asks for a later try.
LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)


def _no_headers() -> dict[str, str]:
    return {}


@dataclass(slots=True, eq=False)
class RequestState:
    """What one request may take, and what is known of its response."""

    #: On the event loop's clock.
    deadline: float
    token: Secret | None = None
    #: None until the head of a response has arrived.
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=_no_headers)
    failure: AdapterError | None = None
    #: Whether a byte of the request may have reached the server.
    sent: bool = False
    #: Whether the request named a session, so that 404 means the session is gone.
    in_session: bool = False
    #: Whether an error status came with a JSON-RPC error, which is then the better reason.
    has_rpc_error: bool = False
    #: Whether an event stream ended before it held an answer.
    stream_ended: bool = False
    #: The id of the request, as it is written; the answer must have it.
    rpc_id: bytes | None = None
    #: Whether the result waits in ``result`` for the caller; the library then handles an empty one in its place.
    keeps_result: bool = False
    result: dict[str, Any] | None = None
    #: Whether a definition that is nested too deeply is cut instead of failing the response.
    cuts_depth: bool = False
    #: The last event id of its stream, with which a lost stream is resumed.
    event_id: bytes | None = None
    #: The request that this one continues, when it resumes a lost stream.
    resumes: RequestState | None = None
    #: The caller's wait for a result.
    waiting: anyio.CancelScope | None = None
    _network_wait: anyio.CancelScope | None = None
    _is_abandoned: bool = False

    # Written by the guard

    def fail(self, error: AdapterError) -> None:
        """Note why no result will come; the first reason is the true one."""
        if self.failure is None:
            self.failure = error

    def fail_now(self, error: AdapterError) -> None:
        """Note it, and end the caller's wait, which the library would not end."""
        self.fail(error)
        if self.waiting is not None:
            self.waiting.cancel()

    @contextmanager
    def network_wait(self, until: float, *, late: str = "") -> Generator[None]:
        """Bound one wait for the server by a time on the loop's clock; ``abandon`` ends it earlier.

        Raises:
            UpstreamTimeout: the server took too long.
            UpstreamUnreachable: the caller has gone.
        """
        if self._is_abandoned:
            raise UpstreamUnreachable(_ABANDONED)
        with anyio.CancelScope(deadline=until) as scope:
            self._network_wait = scope
            try:
                yield
            finally:
                self._network_wait = None
        if scope.cancelled_caught:
            raise UpstreamUnreachable(_ABANDONED) if self._is_abandoned else UpstreamTimeout(late)

    def abandon(self) -> None:
        """End the request if it is still under way; its caller has gone."""
        self._is_abandoned = True
        if self._network_wait is not None:
            self._network_wait.cancel()

    # Read by those who wait for the result

    def outcome(self, error: Exception | None, *, is_session_open: bool) -> AdapterError:
        """Decide why there is no result: what the guard saw counts first, the library's error last.

        No error means that the caller's time ran out.
        """
        if self.failure is not None:
            return self.failure
        match error:
            case None:
                return UpstreamTimeout()
            case AdapterError():
                return error
            case MCPError():
                return self._refusal() or self._error_from(error, is_session_open=is_session_open)
            case _:
                return UpstreamProtocolError("The server did not introduce itself as the protocol asks.")

    def take_result(self) -> dict[str, Any]:
        """Return the result that the guard kept.

        Raises:
            UpstreamProtocolError: the answer did not come as the answer of this request.
        """
        if self.result is None:
            raise UpstreamProtocolError("The answer did not come where it was expected.")
        return self.result

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

    def _refusal(self) -> UpstreamRefused | None:
        status = self.status
        if status is None or status < HTTPStatus.BAD_REQUEST:
            return None
        if status in LATER:
            details = {"status": status, "retry_after": self.retry_after}
            return UpstreamRefused(f"The server answered {status}.", details=details, retryable=True)
        if self.has_rpc_error:
            return None
        return UpstreamRefused(f"The server answered {status}.", details={"status": status})

    def _error_from(self, error: MCPError, *, is_session_open: bool) -> AdapterError:
        if error.code == types.CONNECTION_CLOSED and (self.stream_ended or not is_session_open):
            return UpstreamUnreachable("The connection was lost before the answer came.")
        return UpstreamProtocolError(
            f"The server answered with an error ({error.code}).",
            details={"rpcCode": error.code, "rpcMessage": sanitise(error.message, self.token)},
        )


_WHOLE_SECONDS = re.compile(r"[0-9]{1,12}")
#: A server may ask for a later try, but not put callers off for ever.
_LONGEST_PAUSE_SECONDS = 86_400.0
_ABANDONED = "The caller no longer waits for the answer."


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
