"""HTTP on one connection: uvicorn's protocol with the limits it lacks.

Uvicorn has no timeout for the rest of a request, for a client to take its response, and for a connection on
which only blank lines arrive; it takes headers of any size and number, and parses all requests that a client sends
ahead. Headers must be complete in a few seconds. Bodies and responses may take as long as they like while they make
progress. What is sent ahead waits as bytes, which are counted over all connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headgate.web.admission import REQUESTS_AHEAD

#: Where in the state of a scope it is noted that the rest of the body is not waited for.
BODY_CUT = "body_cut"
#: How long headers may take to arrive, and how often the progress of a body is judged.
RECEIVE_SECONDS = 15.0
#: How often the progress of a response is judged.
SEND_SECONDS = 30.0
LEAST_BYTES_A_SECOND = 256
MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 100
#: How much is parsed at once. Requests that end in one piece are all parsed; those behind it wait for their answers.
PIECE_BYTES = 2048
#: How much of all connections together may wait to be parsed; a connection that adds more is closed.
MAX_WAITING_BYTES = 16 * 1024 * 1024
#: How long, and for how many bytes, a client that was refused is heard out, so that it can read the refusal.
LINGER_SECONDS = 2.0
_LINGER_BYTES = 4 * 1024 * 1024
_REFUSALS = {
    400: (b"Bad Request", b"This is no HTTP request."),
    414: (b"URI Too Long", b"The address is too long."),
    431: (b"Request Header Fields Too Large", b"The headers are too many or too long."),
}


class LimitedHttpProtocol(HttpToolsProtocol):
    """HTTP with limits on slow senders, slow readers, idle connections and headers."""

    _receive_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    #: Whether a request is awaited or has begun, and has not arrived completely.
    _is_arriving = True
    #: Whether the headers of a request have begun and not ended, and how many bytes came since they began at most.
    _is_in_headers = False
    _bytes_since_begin = 0
    #: Whether the body of the last request that was parsed has begun and not ended.
    _is_in_body = False
    #: What has arrived and is not parsed yet, and how much that is of all connections.
    _unparsed = b""
    _all_unparsed_bytes: ClassVar[int] = 0
    #: How a request that cannot be read is answered, once those before it are; None if there is none.
    _refusal: int | None = None
    #: How many bytes came after that.
    _dropped_bytes = 0
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
        self._set_unparsed(b"")
        super().connection_lost(exc)
        # Uvicorn leaves its timer running after an error.
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Take what arrived, and parse as much of it as can be answered next."""
        if self._is_aborted:
            self._drop(len(data))
            return
        self._new_bytes += len(data)
        self._parse(self._unparsed + data if self._unparsed else data)

    def _parse(self, data: bytes) -> None:
        """Parse in pieces until requests wait for their answers, then see to the timers."""
        begin = 0
        while begin < len(data) and not self.pipeline and not self._is_aborted:
            self._parse_piece(data[begin : begin + PIECE_BYTES])
            begin += PIECE_BYTES
        self._set_unparsed(b"" if self._is_aborted else data[begin:])
        if self._is_aborted:
            return
        if self._unparsed and LimitedHttpProtocol._all_unparsed_bytes > MAX_WAITING_BYTES:
            self._abort()
        elif self._is_arriving:
            self._start_receive_timer()
        else:
            self._stop_receive_timer()
            self._resume_idle_timer()

    def _parse_piece(self, piece: bytes) -> None:
        self._bytes_since_begin += len(piece)
        super().data_received(piece)
        if self._is_in_headers and self._bytes_since_begin > MAX_HEADER_BYTES + PIECE_BYTES:
            self._refuse_head()

    def _set_unparsed(self, data: bytes) -> None:
        LimitedHttpProtocol._all_unparsed_bytes += len(data) - len(self._unparsed)
        self._unparsed = data

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_arriving = self._is_in_headers = True
        # Where in its piece it begins is not known.
        self._bytes_since_begin = PIECE_BYTES
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers, which come after the body, are dropped."""
        if self._is_in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, unless it has too many headers or too long ones."""
        self._is_in_headers = False
        if self._is_aborted:
            return
        # All that came since the headers began bounds their size; they are measured only where that is too much.
        is_long = self._bytes_since_begin > MAX_HEADER_BYTES
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers) if is_long else 0
        if len(self.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:
            self._refuse_head()
            return
        if not self.url.startswith((b"/", b"*")):
            _check_target(self.url, dict(self.headers))
        # Counted on arrival: the event loop may be behind with requests that have no task running yet.
        scope: Any = self.scope
        scope["state"][REQUESTS_AHEAD] = len(self.tasks)
        super().on_headers_complete()
        self._is_in_body = True

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
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
        is_last = not self.pipeline
        super().on_response_complete()
        if self.transport.is_closing():
            return
        if is_last and self._refusal is not None:
            self._send_refusal(self._refusal)
        elif self.pipeline:
            self.flow.pause_reading()
        elif self._unparsed:
            self._parse(self._unparsed)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; uvicorn calls this when the parser fails."""
        del msg
        self._refuse(400)

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

    def _refuse_head(self) -> None:
        self._refuse(414 if len(self.url) > MAX_HEADER_BYTES // 2 else 431)

    def _refuse(self, status: int) -> None:
        """Answer a request that cannot be read: after those before it, which are answered as if it had not come."""
        self._is_aborted = True
        self._stop_receive_timer()
        cycle: Any = self.cycle
        waits = cycle is not None and not cycle.response_complete
        if self._is_in_body and self.pipeline:
            # It was to be answered last, and is not.
            self.pipeline.popleft()
        elif self._is_in_body:
            waits = False
            if cycle is None or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        if waits:
            self._refusal = status
        else:
            self._send_refusal(status)

    def _send_refusal(self, status: int) -> None:
        """Write a refusal; drop for a while what still arrives, because a reset would take the refusal away."""
        self._refusal = None
        phrase, text = _REFUSALS[status]
        headers = b"".join(b"%b: %b\r\n" % header for header in self.server_state.default_headers)
        self.transport.write(
            b"HTTP/1.1 %d %b\r\n%bcontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
            b"connection: close\r\n\r\n%b" % (status, phrase, headers, len(text), text)
        )
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        self._receive_timer = self.loop.call_later(LINGER_SECONDS, self._abort)

    def _drop(self, size: int) -> None:
        self._dropped_bytes += size
        if self._dropped_bytes > _LINGER_BYTES:
            self._abort()

    def _abort(self) -> None:
        self._is_aborted = True
        self._stop_receive_timer()
        self._stop_send_timer()
        if not self.transport.is_closing():
            self.transport.abort()


def _check_target(url: bytes, headers: Mapping[bytes, bytes]) -> None:
    """Refuse a target of another server or scheme; uvicorn answers 400 when the parser's callback fails."""
    target = urlsplit(url)
    is_same = target.netloc.lower() == headers.get(b"host", b"").lower()
    if not is_same or target.scheme not in {b"http", b"https"}:
        raise ValueError
