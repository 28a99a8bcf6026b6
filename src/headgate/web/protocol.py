"""HTTP on one connection: uvicorn's protocol, with an end to patience and a short way for ordinary requests.

It reaches into uvicorn's ``cycle``, the object that runs one request, so tests on a real socket watch over it.
"""

from __future__ import annotations

import asyncio
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from headgate.web.api.replies import WHOLE, Header, header_line
from headgate.web.guard import AHEAD

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

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
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
        if self._is_in_head and self._head_bytes > MAX_HEADER_BYTES:
            self._give_up()
        if self._is_arriving:
            self._await_request()
        elif self._receiving is not None:
            self._stop_waiting()

    def on_message_begin(self) -> None:
        """Tell the guard how many requests were there first."""
        self._is_arriving = self._is_in_head = True
        super().on_message_begin()
        scope: Any = self.scope
        scope[AHEAD] = len(self.tasks)

    def on_headers_complete(self) -> None:
        """Begin to answer, but refuse headers without end."""
        self._is_in_head = False
        # Counted with whatever came along; only when that is much, the headers alone are counted.
        if len(self.headers) > MAX_HEADERS or (
            self._head_bytes > MAX_HEADER_BYTES
            and sum(len(name) + len(value) for name, value in self.headers) > MAX_HEADER_BYTES
        ):
            self._give_up()
        elif self._is_ordinary():
            self._begin()
        else:
            super().on_headers_complete()

    def _is_ordinary(self) -> bool:
        """Say whether this is a request that needs nothing of what uvicorn can do besides."""
        parser: Any = self.parser
        before: Any = self.cycle
        return (
            not self.expect_100_continue
            and parser.should_keep_alive()
            and not parser.should_upgrade()
            and parser.get_http_version() == "1.1"
            and (before is None or before.response_complete)
            and parser.get_method() != b"HEAD"
        )

    def _begin(self) -> None:
        """Do what uvicorn does for a request, without what this one does not need."""
        # Annotated rather than cast: this runs for every request.
        scope: Any = self.scope
        parser: Any = self.parser
        address = httptools.parse_url(self.url)
        path = address.path.decode("ascii")
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = address.path
        scope["query_string"] = address.query or b""
        self.cycle = cycle = _Ordinary(self)
        scope[WHOLE] = cycle.write_whole
        # With a name: to make one up takes longer than all the rest of making a task.
        cycle.task = asyncio.Task(self._answer(cycle), loop=self.loop, name=_TASK)
        self.tasks.add(cycle.task)

    async def _answer(self, cycle: _Ordinary) -> None:
        this: Any = self
        try:
            await cycle.run_asgi(this.app)
        finally:
            # Not by a callback of the task, which would have to wait for its turn.
            self.tasks.discard(cycle.task)

    def on_message_complete(self) -> None:
        """Wait no longer: all of the request is here."""
        self._is_arriving = False
        cycle = self.cycle
        if type(cycle) is _Ordinary:
            cycle.has_all()
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


@lru_cache(maxsize=1)
def _dated(headers: tuple[Header, ...]) -> bytes:
    """Write what uvicorn puts into every answer of the same second."""
    return b"".join(map(header_line, headers))


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
    task: asyncio.Task[None]
    #: Whether the body was handed over to its end.
    _is_handed_over = False

    def __init__(self, protocol: PatientProtocol) -> None:
        # Not that of uvicorn, whose every value is set here or above.
        self.scope = protocol.scope
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.default_headers = protocol.server_state.default_headers
        self.on_response = protocol.on_response_complete
        self.body = bytearray()

    @cached_property
    def message_event(self) -> asyncio.Event:
        """Tells who waits for the body that something has come; most requests have none."""
        event = asyncio.Event()
        if not self._is_handed_over and (self.body or not self.more_body):
            event.set()
        return event

    async def receive(self) -> Any:
        """Hand the body over, at once if it is all there; afterwards wait for the client to leave."""
        if self.more_body or self._is_handed_over or self.disconnected or self.response_complete:
            message: Any = await super().receive()
            self._is_handed_over = not message.get("more_body")
            return message
        self._is_handed_over = True
        self.flow.resume_reading()
        return {"type": "http.request", "body": bytes(self.body), "more_body": False}

    def has_all(self) -> None:
        """Note that the whole body is here."""
        self.more_body = False
        self._tell()

    def _tell(self) -> None:
        if "message_event" in self.__dict__:
            self.message_event.set()

    def write_whole(self, status: int, head: bytes, body: bytes) -> bool:
        """Write an answer in one go; gives whether that could be done, and nothing is done if not."""
        if self.disconnected or self.response_started or self.flow.write_paused or not self.keep_alive:
            return False
        self.response_started = self.response_complete = True
        self.transport.write(
            b"%b%b%b\r\n%b" % (STATUS_LINE[status], _dated(tuple(self.default_headers)), head, body)
        )
        self._tell()
        self.on_response()
        return True
