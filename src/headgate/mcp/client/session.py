"""One session with a server: opened once, used by any task, closed without leftovers.

Every request is made in the task that waits for it, so that its end ends the request. Beside the calls a session has at
most one stream of notifications, and a few answers and notifications of ours on their way.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from http import HTTPStatus
from typing import Any

import anyio
import httpx2
import msgspec
from mcp import types
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import ValidationError

from headgate.errors import (
    AdapterError,
    OperationError,
    UpstreamProtocolError,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamUnreachable,
)
from headgate.mcp.client.message import IncomingMessage, sanitise
from headgate.mcp.client.questions import ELICIT, OFFERED, QuestionHandler
from headgate.mcp.client.request_state import CLIENT, LATER, Era, RequestState
from headgate.mcp.client.wire import FAILURES, Exchange, Wire, as_adapter_error, check_reply
from headgate.operations.secrets import Secret
from headgate.telemetry import get_logger, tame_library_logs

#: Statuses after which the other era is not worth a try.
_FINAL = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, *LATER)
_BOTH = "application/json, text/event-stream"
#: Of the answer that opens a session, which is read on the event loop.
_MAX_OPENING_BYTES = 256 * 1024
_DISCOVER_SECONDS = 10.0
_BACKGROUND_SECONDS = 5.0
_MAX_BACKGROUND = 16
#: How often in a row a lost stream is opened again without success.
_MAX_RESUMPTIONS = 2
# A server, or a proxy before it, may end a notification stream at any time. It is opened again: so many times at once,
# and one more after each of these times, but never after a refusal.
_MAX_STREAM_STARTS = 100
_STREAM_START_SECONDS = 30.0
_LOST = "The connection was lost before the answer came."

#: What a server declares when a session is opened.
Discovered = types.DiscoverResult | types.InitializeResult


class _NotOffered(Exception):
    """Why this client does not do what the server asks."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class UpstreamSession:
    """A session that is open, until it is lost or closed."""

    def __init__(
        self,
        wire: Wire,
        *,
        era_choice: str,
        on_tools_changed: Callable[[], None],
        questions: QuestionHandler | None = None,
    ) -> None:
        self._wire = wire
        self._era_choice = era_choice
        self._on_tools_changed = on_tools_changed
        self._question_handler = questions
        self._offered: Mapping[str, Any] = {} if questions is None else OFFERED
        self._ids = itertools.count(1)
        self._session_id: str | None = None
        #: The token for requests that belong to the session rather than to a call.
        self._token: Secret | None = None
        self._calls: set[anyio.CancelScope] = set()
        self._asked = 0
        self._questions: set[anyio.CancelScope] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._stream_starts = _StreamStarts()
        self._is_ready = self._is_closed = False
        #: Whether a notification stream is open.
        self._has_stream = False
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
        return self._is_ready and not self.is_lost and not self._is_closed

    @property
    def is_watching(self) -> bool:
        """Whether a notification of a changed tool list would arrive."""
        return self.is_open and self._has_stream

    async def open(self, state: RequestState, prior: Discovered | None = None) -> None:
        """Negotiate a revision with the server, or adopt the one negotiated before."""
        tame_library_logs()
        self._token = state.token
        try:
            with self._bounded(state):
                await self._negotiate(state, prior)
        except BaseException:
            await self.aclose()
            raise
        self._is_ready = True
        self._watch()

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
            AdapterError: there is no result; the state says what is known of the request.
        """
        if not self._is_ready or self._is_closed:
            raise UpstreamUnreachable("The session is closed.")
        state.cuts_depth = method == "tools/list"
        params, headers = self.era.stamp(method, params, param_headers or {})
        self.in_flight += 1
        try:
            with self._bounded(state):
                return _result(await self._answer_to(method, params, headers, state), state)
        except (asyncio.CancelledError, UpstreamTimeout):
            self._give_up(state)
            raise
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._end_questions()
        raise AssertionError("The block returns or raises.")

    async def aclose(self) -> None:
        """End the session; afterwards none of its tasks and sockets is left."""
        if self._is_closed:
            return
        self._is_closed = True
        for scope in (*self._calls, *self._questions):
            scope.cancel()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        with anyio.CancelScope(shield=True):
            if self._session_id is not None:
                await self._tell("DELETE")
            await self._wire.aclose()

    @contextmanager
    def _bounded(self, state: RequestState) -> Generator[None]:
        """End what runs in the block at its deadline, or when the session is closed; every failure is one of ours."""
        failure: AdapterError | None = None
        with anyio.CancelScope(deadline=state.deadline) as scope:
            self._calls.add(scope)
            try:
                yield
            except FAILURES as error:
                failure = as_adapter_error(error)
            finally:
                self._calls.discard(scope)
        if failure is None and scope.cancelled_caught:
            failure = UpstreamUnreachable(_LOST) if self._is_closed else UpstreamTimeout()
        if failure is not None:
            # Raised out here, so that it does not carry frames that hold the token.
            raise failure from failure.__cause__

    # Opening

    async def _negotiate(self, state: RequestState, prior: Discovered | None) -> None:
        if isinstance(prior, types.DiscoverResult):
            self._adopt_modern(prior)
        elif not (prior is None and await self._is_modern(state)):
            state.status = None
            await self._initialize(state)

    async def _is_modern(self, state: RequestState) -> bool:
        """Try the modern era first; a server that does not speak it answers with some error."""
        if self._era_choice == "legacy":
            return False
        try:
            # A server that knows only the handshake may not answer at all.
            with anyio.move_on_after(_DISCOVER_SECONDS) as scope:
                await self._discover(state)
        except AdapterError:
            if self._era_choice == "modern" or not state.is_answered or state.status in _FINAL:
                raise
            return False
        if scope.cancelled_caught and self._era_choice == "modern":
            raise UpstreamTimeout
        return not scope.cancelled_caught

    async def _discover(self, state: RequestState, agreed: str | None = None) -> None:
        params, headers = Era(agreed or LATEST_MODERN_VERSION, self._offered).stamp("server/discover", {}, {})
        message = await self._opening_answer("server/discover", params, headers, state)
        match message:
            case IncomingMessage(
                error=(types.UNSUPPORTED_PROTOCOL_VERSION, _), error_data={"supported": [*spoken]}
            ):
                # One more try with what the server names, even where that is what it has just refused.
                if agreed is None and (version := _newest(spoken)) is not None:
                    await self._discover(state, version)
                    return
            case _:
                pass
        raw = {**_result(message, state), "ttlMs": 0}
        # A server that answers with something else may still speak the other era.
        state.is_answered = True
        with _introduced():
            self._adopt_modern(types.DiscoverResult.model_validate(raw))

    def _adopt_modern(self, discovered: types.DiscoverResult) -> None:
        version = _newest(discovered.supported_versions)
        if version is None:
            raise UpstreamProtocolError("The server speaks no revision that this client does.")
        info = (discovered.meta or {}).get(types.SERVER_INFO_META_KEY)
        with suppress(ValidationError):
            self.server_info = None if info is None else types.Implementation.model_validate(info)
        self._adopt(discovered, version)

    async def _initialize(self, state: RequestState) -> None:
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": dict(self._offered),
            "clientInfo": {"name": CLIENT.name, "version": CLIENT.version},
        }
        raw = _result(await self._opening_answer("initialize", params, {}, state), state)
        with _introduced():
            opened = types.InitializeResult.model_validate(raw)
        if opened.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise UpstreamProtocolError("The server speaks no revision that this client does.")
        self.server_info = opened.server_info
        self._adopt(opened, opened.protocol_version)
        await self._tell("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _adopt(self, discovered: Discovered, version: str) -> None:
        self.discovered = discovered
        self.era = Era(version, self._offered)
        self.capabilities = discovered.capabilities
        self.instructions = discovered.instructions

    async def _opening_answer(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str], state: RequestState
    ) -> IncomingMessage:
        message = await self._answer_to(method, params, headers, state)
        if len(msgspec.json.encode(message.result)) > _MAX_OPENING_BYTES:
            raise UpstreamTooLarge
        return message

    # Calls

    async def _answer_to(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str], state: RequestState
    ) -> IncomingMessage:
        content = self._written(method, params, state)
        headers = {"accept": _BOTH, **self._of_session(), **headers}
        async with self._wire.exchange("POST", headers, state, content) as exchange:
            if exchange.session_id is not None and method == "initialize":
                self._session_id = exchange.session_id
            return await self._reply_in(exchange, state)

    async def _reply_in(self, exchange: Exchange, state: RequestState) -> IncomingMessage:
        """Return the answer to a request: the one in the body, or in a stream, which is resumed when it is lost."""
        if not exchange.is_stream:
            return await exchange.answer()
        reply = await self._reply_from(exchange, state)
        event_id, pause, failures = exchange.event_id, exchange.retry_seconds, 0
        while reply is None:
            if not event_id or failures >= _MAX_RESUMPTIONS or not self._stream_starts.take():
                state.is_answered = True
                raise UpstreamUnreachable(_LOST)
            await anyio.sleep(pause)
            failures, is_open = failures + 1, False
            resuming = RequestState(state.deadline, state.token, cuts_depth=state.cuts_depth)
            try:
                async with self._stream(resuming, event_id) as again:
                    is_open = again.is_stream
                    reply = await self._reply_from(again, state) if is_open else None
                    event_id, pause = again.event_id or event_id, again.retry_seconds
                    failures = 0 if is_open else failures
            except FAILURES as error:
                if is_open and isinstance(error, AdapterError):
                    raise
        return reply

    async def _reply_from(self, exchange: Exchange, state: RequestState) -> IncomingMessage | None:
        """Return the answer in a stream; None if the stream ends or is lost before."""
        try:
            async with aclosing(exchange.messages()) as messages:
                async for message in messages:
                    if message.is_reply:
                        check_reply(message, state)
                        return message
                    if message.method == "notifications/progress":
                        _pass_on(message.params, state)
                    else:
                        self._hear(message)
        except (httpx2.TransportError, OSError):
            pass
        return None

    def _stream(self, state: RequestState, event_id: str) -> AbstractAsyncContextManager[Exchange]:
        """Open a stream of events, or resume one after an event."""
        after = {"last-event-id": event_id} if event_id else {}
        return self._wire.exchange(
            "GET", {"accept": "text/event-stream", **self._of_session(), **after}, state
        )

    def _written(self, method: str, params: Mapping[str, Any], state: RequestState) -> bytes:
        number = next(self._ids)
        state.rpc_id = str(number).encode()
        if state.waiting.on_progress is not None:
            params = {**params, "_meta": {**(params.get("_meta") or {}), "progressToken": number}}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def _of_session(self) -> dict[str, str]:
        version = {MCP_PROTOCOL_VERSION_HEADER: self.era.version} if self.era.version else {}
        return version if self._session_id is None else {**version, "mcp-session-id": self._session_id}

    def _give_up(self, state: RequestState) -> None:
        """Tell a server of the handshake era that the caller has gone; to others the closed stream says so."""
        if state.sent and state.rpc_id is not None and not self.era.is_modern and not self._is_closed:
            params = {"requestId": msgspec.Raw(state.rpc_id), "reason": "The caller no longer waits."}
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._in_background(self._tell("POST", note))

    async def _tell(self, method: str, message: Mapping[str, Any] | None = None) -> None:
        """Send something that has no answer; whether it arrives changes nothing here."""
        state = RequestState(asyncio.get_running_loop().time() + _BACKGROUND_SECONDS, self._token)
        content = b"" if message is None else msgspec.json.encode(message)
        with anyio.CancelScope(deadline=state.deadline), suppress(*FAILURES):
            async with self._wire.exchange(
                method, {"accept": _BOTH, **self._of_session()}, state, content
            ) as sent:
                await sent.drain()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_closed or len(self._background) - len(self._questions) >= _MAX_BACKGROUND:
            work.close()
            return
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # What the server tells and asks

    def _hear(self, message: IncomingMessage) -> None:
        if message.method == "notifications/tools/list_changed":
            self._on_tools_changed()
        elif message.id is not None:
            self._in_background(self._reply_to(message.id, message.method, message.params))

    async def _reply_to(self, request_id: bytes, method: str, params: Mapping[str, Any]) -> None:
        """Answer a request that a server of the handshake era sends."""
        try:
            outcome: dict[str, Any] = {"result": await self._answered(method, params)}
        except _NotOffered as refusal:
            outcome = {"error": {"code": refusal.code, "message": str(refusal)}}
        await self._tell("POST", {"jsonrpc": "2.0", "id": msgspec.Raw(request_id), **outcome})

    async def _answered(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "ping":
            return {}
        questions = self._question_handler
        # Only while a tool runs: a question at any other time belongs to no call.
        if method != ELICIT or questions is None or self.era.is_modern or not self.in_flight:
            raise _NotOffered(types.METHOD_NOT_FOUND, "This client offers no such thing.")
        self._asked += 1
        if self._asked > questions.limits.max_questions * self.in_flight:
            raise _NotOffered(types.INVALID_REQUEST, "The server asks more often than allowed.")
        with anyio.CancelScope() as scope:
            self._questions.add(scope)
            try:
                return await self._put(questions, params)
            finally:
                self._questions.discard(scope)
        raise _NotOffered(types.INVALID_REQUEST, "No call waits for the answer any more.")

    async def _put(self, questions: QuestionHandler, params: Mapping[str, Any]) -> dict[str, Any]:
        deadline = asyncio.get_running_loop().time() + questions.limits.total_seconds
        try:
            return await questions.reply(params, token=self._token, deadline=deadline)
        except OperationError as error:
            get_logger().warning("question_not_answered", server=questions.namespace, code=error.code)
            raise _NotOffered(types.INVALID_PARAMS, error.message) from None
        except Exception as error:
            # A fault of the importing program; its message must not reach the server.
            get_logger().exception("question_failed", server=questions.namespace)
            raise _NotOffered(types.INTERNAL_ERROR, "The question could not be answered.") from error

    def _end_questions(self) -> None:
        """End the open questions: the calls they belong to are over."""
        self._asked = 0
        for scope in self._questions:
            scope.cancel()

    # Notifications: they are optional; a refresh finds the same changes

    def _watch(self) -> None:
        tools = self.capabilities.tools
        if self.era.is_modern and tools is not None and tools.list_changed:
            self._in_background(self._listen())
        elif self._session_id is not None:
            self._in_background(self._keep_listening())

    async def _listen(self) -> None:
        """Ask a server of the modern era for its notifications, as long as it sends them."""
        state = RequestState(math.inf, self._token)
        wanted = {"notifications": {"toolsListChanged": True}}
        params, headers = self.era.stamp("subscriptions/listen", wanted, {})
        content = self._written("subscriptions/listen", params, state)
        with suppress(*FAILURES):
            async with self._wire.exchange("POST", {"accept": _BOTH, **headers}, state, content) as exchange:
                await self._hear_all(exchange)

    async def _keep_listening(self) -> None:
        """Read the stream of a server of the handshake era, and open it again when it ends."""
        event_id, pause, failures = "", 1.0, 0
        while failures < _MAX_RESUMPTIONS:
            if not self._stream_starts.take():
                await anyio.sleep(_STREAM_START_SECONDS)
                continue
            try:
                async with self._stream(RequestState(math.inf, self._token), event_id) as exchange:
                    if not exchange.is_stream:
                        return
                    try:
                        await self._hear_all(exchange)
                    finally:
                        event_id, pause = exchange.event_id or event_id, exchange.retry_seconds
                failures = 0
            except FAILURES:
                failures += 1
            await anyio.sleep(pause)

    async def _hear_all(self, exchange: Exchange) -> None:
        if not exchange.is_stream:
            return
        self._has_stream = True
        try:
            async with aclosing(exchange.messages()) as messages:
                async for message in messages:
                    self._hear(message)
        finally:
            self._has_stream = False


class _StreamStarts:
    """How often streams may be opened: so many times at once, and one more after each interval."""

    def __init__(self) -> None:
        self._count = self._at = 0.0

    def take(self) -> bool:
        """Count a start, and return whether it is allowed."""
        now = asyncio.get_running_loop().time()
        left = max(0.0, self._count - (now - self._at) / _STREAM_START_SECONDS)
        is_allowed = left < _MAX_STREAM_STARTS
        self._count, self._at = left + is_allowed, now
        return is_allowed


def _result(message: IncomingMessage, state: RequestState) -> dict[str, Any]:
    if message.error is None:
        return message.result or {}
    state.is_answered = True
    code, text = message.error
    raise UpstreamProtocolError(
        f"The server answered with an error ({code}).",
        details={"rpcCode": code, "rpcMessage": sanitise(text, state.token)},
    )


def _newest(versions: Sequence[Any]) -> str | None:
    """Return the newest revision of those that this client speaks too."""
    return next((version for version in reversed(MODERN_PROTOCOL_VERSIONS) if version in versions), None)


def _pass_on(params: Mapping[str, Any], state: RequestState) -> None:
    """Tell the caller how far its tool is; what is not about this request, or no number, is left out."""
    match params:
        case {"progressToken": int(token), "progress": int() | float() as progress, **rest}:
            pass
        case _:
            return
    on_progress, total, text = state.waiting.on_progress, rest.get("total"), rest.get("message")
    if on_progress is None or str(token).encode() != state.rpc_id:
        return
    is_total = isinstance(total, int | float) and not isinstance(total, bool)
    message = sanitise(text, state.token) if isinstance(text, str) else ""
    # A fault of the importing program is the loop's to report; the call goes on.
    asyncio.get_running_loop().call_soon(on_progress, progress, total if is_total else None, message)


@contextmanager
def _introduced() -> Generator[None]:
    try:
        yield
    except ValidationError as error:
        raise UpstreamProtocolError("The server did not introduce itself as the protocol asks.") from error
