"""HTTP on one connection: uvicorn's protocol, with an end to patience and a short way for ordinary requests.

It reaches into uvicorn's ``cycle``, the object that runs one request, so tests on a real socket watch over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from headgate.web.api.replies import WHOLE, Header, header_line
from headgate.web.guard import AHEAD
from headgate.web.head import HEAD, LENGTH, Head, read_head

RECEIVE_SECONDS = 15.0
SEND_SECONDS = 30.0
MAX_HEADER_BYTES = 64 * 1024
MAX_HEADERS = 100
_TASK = "headgate-request"


class PatientProtocol(HttpToolsProtocol):
    """HTTP that waits neither for ever for a request to arrive, nor for an answer to be taken."""

    _receiving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None
    #: How much has arrived since the piece that a head began in, and whether it has not ended yet.
    _head_bytes = 0
    _is_in_head = False
    #: Whether a request has begun and not yet ended.
    _is_arriving = True
    #: Since when nothing was asked, on the loop's clock.
    _idle_since: float | None = None
    #: A request whose head is here, and that is begun with as soon as all that has arrived is taken.
    _next: _Ordinary | None = None
    #: The headers of the last request but for its length, and what was read of them: most clients send the same
    #: again and again.
    _headers: list[Header] | None = None
    _head: Head
    _lengths: list[Header]

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        #: What the scopes of all requests on this connection have in common.
        self._common = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
        }
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._sent()
        super().connection_lost(exc)
        super()._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Take what arrived; a request that has begun must end in time, and its head be of a sane size."""
        self._head_bytes = self._head_bytes + len(data) if self._is_in_head else len(data)
        super().data_received(data)
        ready, self._next = self._next, None
        if ready is not None:
            self._begin(ready)
        if self._is_in_head and self._head_bytes > MAX_HEADER_BYTES:
            self._give_up()
        if self._is_arriving:
            self._await_request()
        elif self._receiving is not None:
            self._stop_waiting()

    def on_message_begin(self) -> None:
        """Make ready for a head."""
        self._is_arriving = self._is_in_head = True
        self.url = b""
        self.headers = []
        self._lengths = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes behind a body is none."""
        if self._is_in_head:
            name = name.lower()
            (self.headers if name != LENGTH else self._lengths).append((name, value))

    def on_headers_complete(self) -> None:
        """Make ready to answer, but refuse headers without end."""
        self._is_in_head = False
        headers = self.headers
        if self._lengths:
            self.headers = [*headers, *self._lengths]
        if headers != self._headers:
            self._headers, self._head = headers, read_head(headers)
            self.expect_100_continue = self._head.is_waiting
            # Counted with whatever came along; only when that is much, the headers alone are counted.
            if len(headers) > MAX_HEADERS or (
                self._head_bytes > MAX_HEADER_BYTES
                and sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES
            ):
                self._give_up()
                return
        parser: Any = self.parser
        method = parser.get_method()
        if self._is_ordinary(parser, method):
            self.cycle = self._next = _Ordinary(self, self._scope(method))
            return
        scope: Any = {**self._common, "headers": self.headers, "state": self.app_state.copy()}
        self.scope = scope | {HEAD: self._head, AHEAD: len(self.tasks)}
        super().on_headers_complete()

    def _is_ordinary(self, parser: Any, method: bytes) -> bool:
        """Say whether this is a request that needs nothing of what uvicorn can do besides."""
        before: Any = self.cycle
        return (
            not self.expect_100_continue
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and parser.get_http_version() == "1.1"
            and (before is None or before.response_complete)
            and method != b"HEAD"
        )

    def _scope(self, method: bytes) -> dict[str, Any]:
        address = httptools.parse_url(self.url)
        raw: bytes = address.path
        path = raw.decode("ascii")
        return {
            **self._common,
            "headers": self.headers,
            "state": self.app_state.copy(),
            "method": method.decode("ascii"),
            "path": path if raw.find(b"%") < 0 else unquote(path),
            "raw_path": raw,
            "query_string": address.query or b"",
            HEAD: self._head,
        }

    def _begin(self, cycle: _Ordinary) -> None:
        """Answer a request.

        Most answers wait for nothing, and to make a task takes ten times as long as to begin without. So one is made
        only for those that do wait, when they do. An application that has to know its task gets one before.
        """
        this: Any = self
        answering = cycle.run_asgi(this.app)
        try:
            awaited = answering.send(None)
        except StopIteration:
            return
        task = asyncio.Task(_ended(answering, awaited), loop=self.loop, name=_TASK)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, and with it what had come before on the same connection."""
        self._next = None
        super().send_400_response(msg)

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        cycle = self.cycle
        if type(cycle) is _Ordinary:
            cycle.take(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait no longer: all of the request is here."""
        self._is_arriving = False
        cycle = self.cycle
        if type(cycle) is _Ordinary:
            cycle.more_body = False
            cycle.tell()
        else:
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for it; a timer that runs already is left to run."""
        if self.pipeline or self.timeout_keep_alive_task is None or self.transport.is_closing():
            super().on_response_complete()
        else:
            self.server_state.total_requests += 1
            self.flow.resume_reading()
        self._idle_since = self.loop.time()

    def _unset_keepalive_if_required(self) -> None:
        # To stop a timer and to start another one for every request would cost more than to look at the end.
        self._idle_since = None

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection on which nothing was asked for long."""
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def pause_writing(self) -> None:
        """Wait for the reader, but not for ever."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(SEND_SECONDS, self._give_up)

    def resume_writing(self) -> None:
        """Go on: the reader takes its answer."""
        self._sent()
        super().resume_writing()

    def _await_request(self) -> None:
        if self._receiving is None and not self.transport.is_closing():
            self._receiving = self.loop.call_later(RECEIVE_SECONDS, self._end_wait)

    def _end_wait(self) -> None:
        self._receiving = None
        cycle: Any = self.cycle
        is_answering = self._is_in_head and cycle is not None and not cycle.response_complete
        if is_answering or self.pipeline:
            # Nothing of the next request is read before the one ahead of it is answered.
            self._await_request()
        else:
            self._give_up()

    def _stop_waiting(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            self._receiving = None

    def _sent(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self._sent()
        if not self.transport.is_closing():
            self.transport.abort()


async def _ended(begun: Coroutine[Any, Any, None], awaited: Any) -> None:
    """Bring a coroutine to its end that has begun already."""
    await _steps(begun, awaited)


@coroutine
def _steps(begun: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any]:
    while True:
        try:
            sent = yield awaited
        except BaseException as error:  # noqa: BLE001 - it is the coroutine's, not ours
            step = partial(begun.throw, error)
        else:
            step = partial(begun.send, sent)
        try:
            awaited = step()
        except StopIteration:
            return


class _Dated:
    """The lines that uvicorn puts into every answer, written once for all of the same second."""

    headers: list[Header] | None = None
    lines = b""

    def of(self, headers: list[Header]) -> bytes:
        # Uvicorn makes another list each second.
        if headers is not self.headers:
            self.headers, self.lines = headers, b"".join(map(header_line, headers))
        return self.lines


_dated = _Dated()


class _Ordinary(RequestResponseCycle):
    """An ordinary request and its answer. What is the same for most of them is not set for each one."""

    access_log = False
    waiting_for_100_continue = False
    disconnected = False
    keep_alive = True
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding = None
    expected_content_length = 0
    #: Most bodies come in one piece, which is then handed over as it is.
    body: Any = b""
    #: Whether the body was handed over to its end.
    _is_handed_over = False
    _event: asyncio.Event | None = None

    def __init__(self, protocol: PatientProtocol, scope: Any) -> None:
        # Not that of uvicorn, whose every value is set here or above.
        scope[WHOLE] = self.write_whole
        self.scope = scope
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.default_headers = protocol.server_state.default_headers
        self.on_response = protocol.on_response_complete

    @property
    def message_event(self) -> asyncio.Event:
        """Tells who waits for the body that something has come; most requests have none."""
        if self._event is None:
            self._event = asyncio.Event()
            if not self._is_handed_over and (self.body or not self.more_body):
                self._event.set()
        return self._event

    async def receive(self) -> Any:
        """Hand the body over, at once if it is all there; afterwards wait for the client to leave."""
        if self.more_body or self._is_handed_over or self.disconnected or self.response_complete:
            message: Any = await super().receive()
            self._is_handed_over = not message.get("more_body")
            return message
        self._is_handed_over = True
        self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(self.body), "more_body": False}

    def take(self, piece: bytes) -> None:
        """Keep a part of the body for whoever wants it, if anybody still may."""
        if not self.response_complete:
            self.body += piece
            if len(self.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            self.tell()

    def tell(self) -> None:
        """Tell who waits, if anybody does."""
        if self._event is not None:
            self._event.set()

    def write_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one go; gives whether that could be done, and nothing is done if not."""
        if self.disconnected or self.response_started or self.flow.write_paused or not self.keep_alive:
            return False
        self.response_started = self.response_complete = True
        self.transport.write(
            b"".join((STATUS_LINE[status], _dated.of(self.default_headers), head, b"\r\n", body))
        )
        self.tell()
        self.on_response()
        return True
