"""HTTP on one connection: uvicorn's protocol with the limits it lacks.

Uvicorn waits without end for the rest of a request, for a client to take its response, and for a connection on
which only blank lines arrive; and it takes headers of any size and number. Headers must be complete in a few seconds.
Bodies and responses may take as long as they like while they make progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.web.guard import REQUESTS_AHEAD

#: Where in the state of a scope it is noted that the rest of the body is not waited for.
BODY_CUT = "body_cut"
#: How long headers may take to arrive, and how often the progress of a body is judged.
RECEIVE_SECONDS = 15.0
#: How often the progress of a response is judged.
SEND_SECONDS = 30.0
LEAST_BYTES_A_SECOND = 256
MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 100


class LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP with limits on slow senders, slow readers, idle connections and headers."""

    _receive_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    #: Whether a request is awaited or has begun, and has not arrived completely.
    _is_arriving = True
    #: Whether the headers of a request have begun and not ended, and how many bytes came since they began.
    _is_in_headers = False
    _bytes_since_begin = 0
    #: Of the piece of data that is parsed: whether a request has begun in it, and its bytes of the last body.
    _has_begun, _body_bytes = False, 0
    _is_in_body = False
    #: How many bytes came since progress was last judged.
    _new_bytes = 0
    #: How many bytes the client had not taken when that was last judged.
    _unsent_bytes = 0
    #: When the last response was complete, on the loop's clock.
    _idle_since: float | None = None
    #: Whether the connection was given up; what the parser still reports is dropped.
    _is_aborted = False

    def connection_made(self, transport: Any) -> None:
        """Start the time in which the first request must arrive."""
        super().connection_made(transport)
        self._start_receive_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop_receive_timer()
        self._stop_send_timer()
        super().connection_lost(exc)
        # Uvicorn leaves its timer running after an error.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, then see to the timers."""
        self._new_bytes += len(data)
        self._bytes_since_begin = len(data) + (self._bytes_since_begin if self._is_in_headers else 0)
        self._has_begun, self._body_bytes = False, 0
        super().data_received(data)
        if self._is_in_headers and self._has_begun:
            # Other requests and their bodies came before these headers, which hold no blank line yet.
            self._bytes_since_begin = len(data) - data.rfind(b"\r\n\r\n") - self._body_bytes
        if self._is_in_headers and self._bytes_since_begin > MAX_HEADER_BYTES:
            self._abort()
        elif self._is_arriving:
            self._start_receive_timer()
        else:
            self._stop_receive_timer()
            self._resume_idle_timer()

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_arriving = self._is_in_headers = self._has_begun = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers, which come after the body, are dropped."""
        if self._is_in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless it has too many headers or too long ones."""
        self._is_in_headers, self._is_in_body, self._body_bytes = False, True, 0
        # All that came since the headers began bounds their size; they are measured only where that is too much.
        is_long = self._bytes_since_begin > MAX_HEADER_BYTES
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers) if is_long else 0
        if len(self.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            self._abort()
            return
        if not self.url.startswith((b"/", b"*")):
            _check_target(self.url, dict(self.headers))
        # Counted on arrival: the event loop may be behind with requests that have no task running yet.
        scope: Any = self.scope
        scope["state"][REQUESTS_AHEAD] = len(self.tasks)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._body_bytes += len(body)
        if not self._is_aborted:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request has arrived completely."""
        self._is_arriving = self._is_in_body = False
        if not self._is_aborted:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Note since when the connection is idle, and read no more while requests that came before it wait.

        Uvicorn reads on after every response: a peer that sends without a pause would have more requests parsed for
        each one that is answered, and everyone else would wait for the parser.
        """
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()

    def pause_writing(self) -> None:
        """Start to judge how fast the client takes what was sent."""
        super().pause_writing()
        if self._send_timer is None:
            self._start_send_timer()

    def resume_writing(self) -> None:
        """Stop judging it: the client has taken enough."""
        self._stop_send_timer()
        super().resume_writing()

    def _start_receive_timer(self) -> None:
        if self._receive_timer is None and not self.transport.is_closing():
            self._new_bytes = 0
            self._receive_timer = self.loop.call_later(RECEIVE_SECONDS, self._end_receiving)

    def _end_receiving(self) -> None:
        self._receive_timer = None
        # The rest of a request is not read before the one ahead of it is answered, or while the handler has enough.
        is_waiting = self._is_answering() or (self._is_in_body and self.flow.read_paused)
        is_quick = self._is_in_body and self._new_bytes >= LEAST_BYTES_A_SECOND * RECEIVE_SECONDS
        if is_waiting or is_quick:
            self._start_receive_timer()
        elif not self._end_body():
            self._abort()

    def _end_body(self) -> bool:
        """Let the handler answer what it has of a body, and close after that; False if no handler waits for one."""
        cycle: Any = self.cycle
        if not self._is_in_body or cycle is None or cycle.response_complete:
            return False
        self._is_aborted = True
        cycle.scope["state"][BODY_CUT] = True
        cycle.more_body = cycle.keep_alive = False
        cycle.message_event.set()
        return True

    def _start_send_timer(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._send_timer = self.loop.call_later(SEND_SECONDS, self._end_sending)

    def _end_sending(self) -> None:
        self._send_timer = None
        taken = self._unsent_bytes - self.transport.get_write_buffer_size()
        if taken >= LEAST_BYTES_A_SECOND * SEND_SECONDS:
            self._start_send_timer()
        else:
            self._abort()

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        is_busy = cycle is not None and not cycle.response_complete
        return bool(self.pipeline) or (self._is_in_headers and is_busy)

    def _resume_idle_timer(self) -> None:
        """Restart uvicorn's timer where bytes that begin no request, such as blank lines, have stopped it."""
        cycle: Any = self.cycle
        is_idle = self._idle_since is not None and cycle is not None and cycle.response_complete
        if is_idle and self.timeout_keep_alive_task is None and not self.transport.is_closing():
            assert self._idle_since is not None
            left = max(0.0, self._idle_since + self.timeout_keep_alive - self.loop.time())
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)

    def _stop_receive_timer(self) -> None:
        if self._receive_timer is not None:
            self._receive_timer.cancel()
            self._receive_timer = None

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _abort(self) -> None:
        self._is_aborted = True
        self._stop_receive_timer()
        self._stop_send_timer()
        if not self.transport.is_closing():
            self.transport.abort()


def _check_target(url: bytes, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a target of another server or scheme; uvicorn answers 400 when the parser's callback fails.

    Raises:
        ValueError: the target's host is not the header's, by which the request is judged, or it is no HTTP.
    """
    target = urlsplit(url)
    is_same = target.netloc.lower() == headers.get(b"host", b"").lower()
    if not is_same or target.scheme not in {b"http", b"https"}:
        raise ValueError
