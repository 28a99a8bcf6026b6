"""One open session with a server, held by one task.

The protocol library must be entered and left by the same task, so an owner task does only that; calls come
from any task. Results are the raw JSON of the server. Why a call failed is read from its ``RequestState``, not
from the library's error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, cast

import anyio
import anyio.abc
import httpx2
from mcp import ClientSession, MCPError, types
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from pydantic import ValidationError

from headgate.errors import OperationError, UpstreamUnreachable
from headgate.mcp.client.era import CLIENT, Era, offering
from headgate.mcp.client.questions import ELICIT, OFFERED, QuestionHandler
from headgate.mcp.client.redaction import redact_value
from headgate.mcp.client.request_state import LATER, REQUEST_HEADER, RequestState
from headgate.mcp.client.transport import GuardedTransport
from headgate.telemetry import tame_library_logs

_log = logging.getLogger("headgate.mcp.client")
#: Statuses after which the other era is not worth a try.
_FINAL = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, *LATER)

#: The requests that open a session; they carry the client's capabilities.
_OPENING_METHODS = ("initialize", "server/discover")

#: What a server declares when a session is opened.
Discovered = types.DiscoverResult | types.InitializeResult


class UpstreamSession:
    """A session that is open, until it is lost or closed."""

    def __init__(
        self,
        url: httpx2.URL,
        guard: GuardedTransport,
        *,
        era_choice: str,
        on_tools_changed: Callable[[], None],
        questions: QuestionHandler | None = None,
    ) -> None:
        self._url = url
        self._guard = guard
        self._era_choice = era_choice
        self._on_tools_changed = on_tools_changed
        self._question_handler = questions
        self._offered: Mapping[str, Any] = {} if questions is None else OFFERED
        self._asked = 0
        self._questions: set[anyio.CancelScope] = set()
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._dispatcher: _Dispatcher | None = None
        self._watcher: asyncio.Task[None] | None = None
        self.in_flight = 0
        #: Whether the server has forgotten this session; others may still wait on it.
        self.is_lost = False
        self.discovered: Discovered | None = None
        self.server_info: types.Implementation | None = None
        self.capabilities = types.ServerCapabilities()
        self.instructions: str | None = None
        self.era = Era("")

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return (
            not self.is_lost
            and self._dispatcher is not None
            and self._owner is not None
            and not self._owner.done()
        )

    @property
    def is_watching(self) -> bool:
        """Whether a notification of a changed tool list would arrive."""
        return self.is_open and self._guard.has_stream

    async def open(self, state: RequestState, prior: Discovered | None = None) -> None:
        """Negotiate a revision with the server, or adopt the one negotiated before.

        Raises:
            AdapterError: no session could be opened; the state holds the status.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(state, prior, ready))
        try:
            await asyncio.shield(ready)
        except BaseException:
            # Without this the owner would go on until its deadline, and no caller would use its session.
            ready.cancel()
            self._owner.cancel()
            await self.aclose()
            raise

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        state: RequestState,
        *,
        param_headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send one request and return its raw result.

        Raises:
            AdapterError: there is no result; see ``RequestState.outcome``.
        """
        dispatcher = self._dispatcher
        if dispatcher is None:
            raise UpstreamUnreachable("The session is closed.")
        state.cuts_depth = method == "tools/list"
        params, headers = self.era.stamp(method, params, param_headers or {})
        error: MCPError | None = None
        with self._in_flight(state) as headers[REQUEST_HEADER]:
            try:
                with anyio.CancelScope(deadline=state.deadline) as state.waiting:
                    await dispatcher.send_raw_request(method, params, {"headers": headers})
                    return state.take_result()
            except MCPError as caught:
                error = caught
        # Either the library reported an error, or the wait was ended: by its deadline, or by the guard.
        raise state.outcome(error, is_session_open=self._dispatcher is not None) from error

    @contextmanager
    def _in_flight(self, state: RequestState) -> Generator[str]:
        """Register a request with the guard for as long as its caller waits; yield its key."""
        key = self._guard.admit(state)
        self.in_flight += 1
        try:
            yield key
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._end_questions()
            state.waiting = None
            state.abandon()
            self._guard.forget(key)

    async def aclose(self) -> None:
        """End the session; afterwards none of its tasks and sockets is left."""
        self._closing.set()
        self._dispatcher = None
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)

    async def _own(self, state: RequestState, prior: Discovered | None, ready: asyncio.Future[None]) -> None:
        tame_library_logs()
        try:
            async with (
                httpx2.AsyncClient(transport=self._guard, trust_env=False, timeout=None) as http,
                # A parsed URL works as well as its text, and is not parsed again for every call. The guard
                # counts bytes already; the library's smaller limit would look like a lost stream.
                streamable_http_client(cast("str", self._url), http_client=http, max_sse_event_size=None) as (
                    read,
                    write,
                ),
            ):
                # The guard sets the headers itself; merging defaults into each request only costs time.
                http.headers.clear()
                dispatcher = _Dispatcher(read, write)
                dispatcher.offered, dispatcher.answer = self._offered, self._on_request
                session = ClientSession(
                    dispatcher=dispatcher, client_info=CLIENT, message_handler=self._on_message
                )
                async with session:
                    await self._serve(session, dispatcher, state, prior, ready)
        except Exception as error:  # noqa: BLE001 - no caller above this task could handle it
            _fail(ready, error, state)
        finally:
            self._dispatcher = None

    async def _serve(
        self,
        session: ClientSession,
        dispatcher: _Dispatcher,
        state: RequestState,
        prior: Discovered | None,
        ready: asyncio.Future[None],
    ) -> None:
        try:
            await self._negotiate(session, state, prior)
        except Exception as error:  # noqa: BLE001 - passed to open(); raised here it would come out wrapped
            _fail(ready, error, state)
            return
        if ready.done():
            return
        self._dispatcher = dispatcher
        self._watch(session)
        ready.set_result(None)
        await self._closing.wait()
        if self._watcher is not None:
            self._watcher.cancel()

    async def _negotiate(self, session: ClientSession, state: RequestState, prior: Discovered | None) -> None:
        guard = self._guard
        guard.opening, guard.session_token = state, state.token
        try:
            with anyio.CancelScope(deadline=state.deadline) as scope:
                state.waiting = scope
                if isinstance(prior, types.DiscoverResult):
                    session.adopt(prior)
                elif not (prior is None and await self._is_modern(session, state)):
                    state.status = None
                    await session.initialize()
            if scope.cancelled_caught:
                raise state.outcome(None, is_session_open=True)
        finally:
            guard.opening = state.waiting = None
        self.discovered = session.discover_result or session.initialize_result
        self.era = Era(session.protocol_version or "", self._offered)
        self.server_info = session.server_info
        self.capabilities = session.server_capabilities or self.capabilities
        self.instructions = session.instructions

    async def _is_modern(self, session: ClientSession, state: RequestState) -> bool:
        """Try the modern era first; a server that does not speak it answers with some error."""
        if self._era_choice == "legacy":
            return False
        try:
            await session.discover()
        except (MCPError, ValidationError, RuntimeError):
            if self._era_choice == "modern" or state.failure or state.status in _FINAL:
                raise
            return False
        return True

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._on_tools_changed()

    async def _on_request(
        self, _context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Answer a request that a server of the handshake era sends."""
        if method == "ping":
            return {}
        questions = self._question_handler
        # Only while a tool runs: a question at any other time belongs to no call.
        if method != ELICIT or questions is None or self.era.is_modern or not self.in_flight:
            raise MCPError(types.METHOD_NOT_FOUND, "This client offers no such thing.")
        self._asked += 1
        if self._asked > questions.limits.max_questions * self.in_flight:
            raise MCPError(types.INVALID_REQUEST, "The server asks more often than allowed.")
        with anyio.CancelScope() as scope:
            self._questions.add(scope)
            try:
                return await self._reply(questions, params)
            finally:
                self._questions.discard(scope)
        raise MCPError(types.INVALID_REQUEST, "No call waits for the answer any more.")

    def _end_questions(self) -> None:
        """End the open questions: the calls they belong to are over."""
        self._asked = 0
        for scope in self._questions:
            scope.cancel()

    async def _reply(self, questions: QuestionHandler, params: Mapping[str, Any] | None) -> dict[str, Any]:
        token = self._guard.session_token
        deadline = asyncio.get_running_loop().time() + questions.limits.total_seconds
        try:
            return await questions.reply(redact_value(params, token), token=token, deadline=deadline)
        except OperationError as error:
            _log.warning("A question of %s was not answered: %s", questions.namespace, error.code)
            raise MCPError(types.INVALID_PARAMS, error.message) from None
        except Exception as error:
            # A fault of the importing program; its message must not reach the server.
            _log.exception("A question of %s could not be answered", questions.namespace)
            raise MCPError(types.INTERNAL_ERROR, "The question could not be answered.") from error

    def _watch(self, session: ClientSession) -> None:
        tools = self.capabilities.tools
        if self.era.is_modern and tools is not None and tools.list_changed:
            self._watcher = asyncio.create_task(self._listen(session))

    async def _listen(self, session: ClientSession) -> None:
        try:
            async with listen(session, tools_list_changed=True) as events:
                async for _ in events:
                    self._on_tools_changed()
        except (MCPError, SubscriptionLost, RuntimeError):
            # Notifications are optional; refresh() finds the same changes.
            return


class _Dispatcher(JSONRPCDispatcher[TransportContext]):
    """The library's dispatcher; sends the capabilities we really offer, and answers a server's requests itself."""

    offered: Mapping[str, Any]
    answer: OnRequest

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: types.RequestId | None = None,
    ) -> dict[str, Any]:
        """Send a request; the one that opens a session carries the offered capabilities."""
        if method in _OPENING_METHODS:
            params = offering(params, self.offered)
        return await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the receive loop, with our request handler in place of the library's."""
        del on_request
        await super().run(self.answer, on_notify, on_notify_intercept, task_status=task_status)


def _fail(ready: asyncio.Future[None], error: Exception, state: RequestState) -> None:
    if ready.done():
        return
    failure = state.outcome(error, is_session_open=True)
    if failure is not error and failure.__cause__ is None:
        failure.__cause__ = error
    ready.set_exception(failure)
