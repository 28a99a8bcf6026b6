"""One request on its way: until when, with which token, and what became of it.

The protocol library above the transport turns every failure into the same few errors. What really happened
is written down here instead, by the guard, where no answer of a server can forge it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import anyio

from headgate.errors import AdapterError
from headgate.operations.secrets import Secret

#: Ties a request to its state on the short way down to the guard, which takes it off.
REQUEST_HEADER = "headgate-request"

_HTTP_NOT_FOUND = 404


def _no_headers() -> dict[str, str]:
    return {}


@dataclass(slots=True, eq=False)
class RequestState:
    """What is asked of one request, and what is known of its answer."""

    #: On the event loop's clock.
    deadline: float
    token: Secret | None = None
    #: None until an answer's head has arrived.
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=_no_headers)
    failure: AdapterError | None = None
    #: Whether a byte of the request may have reached the server.
    sent: bool = False
    #: Whether the request named a session, so that 404 means the session is gone.
    in_session: bool = False
    #: Whether an error status came with a JSON-RPC error, which then says more than the status.
    has_rpc_error: bool = False
    #: Whether an event stream ended before it held an answer.
    stream_ended: bool = False
    #: Whether the answer holds something that must be looked at once it is parsed.
    needs_look: bool = False
    #: What ends the wait of whoever asked.
    waiting: anyio.CancelScope | None = None
    #: What ends the request itself, while there is anything to end.
    cut: Callable[[], None] | None = None

    def fail(self, error: AdapterError) -> None:
        """Note why no answer will come; the first reason is the true one."""
        if self.failure is None:
            self.failure = error

    def fail_now(self, error: AdapterError) -> None:
        """Note it, and end the wait: nobody else will."""
        self.fail(error)
        if self.waiting is not None:
            self.waiting.cancel()

    def abandon(self) -> None:
        """End the request if it is still under way: nobody waits for its answer any more."""
        cut, self.cut = self.cut, None
        if cut is not None:
            cut()

    @property
    def lost_session(self) -> bool:
        """Whether the server no longer knows the session; it has then not run the request."""
        return self.in_session and self.status == _HTTP_NOT_FOUND

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server wants to be asked again, when it says so."""
        return _seconds(self.headers.get("retry-after"), self.headers.get("date"))


def _seconds(text: str | None, date: str | None) -> float | None:
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        # Both are the server's own clock, so the difference holds whatever ours says.
        return max(0.0, (parsedate_to_datetime(text) - parsedate_to_datetime(date or "")).total_seconds())
    except (ValueError, TypeError):
        return None
