"""One request on its way: its deadline, its token, and what is known of its fate.

The wire writes down here what happens, where no response of a server can forge it; those who wait read it afterwards,
to decide whether the request can be repeated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import anyio

from headgate.errors import AdapterError, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from headgate.operations.secrets import Secret

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
    #: Whether a byte of the request may have reached the server.
    sent: bool = False
    #: Whether the request named a session, so that 404 means the session is gone.
    in_session: bool = False
    #: Whether the server answered, but with no result: it may speak another revision of the protocol.
    is_answered: bool = False
    #: The id of the request, as it is written; the answer must have it.
    rpc_id: bytes | None = None
    #: Whether a definition that is nested too deeply is cut instead of failing the response.
    cuts_depth: bool = False

    @property
    def is_endless(self) -> bool:
        """Whether it waits for events, which may come at any time, and not for an answer."""
        return math.isinf(self.deadline)

    @contextmanager
    def network_wait(self, until: float, *, late: str = "") -> Generator[None]:
        """Bound one wait for the server by a time on the loop's clock.

        Raises:
            UpstreamTimeout: the server took too long.
        """
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
