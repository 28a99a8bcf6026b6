"""A remote server as its operations see it: requests go in, raw results or one kind of error come out.

Keeps the session for the life of the import and opens it anew when it is lost. A request is repeated only when
it is certain, or said by us, that repeating it does no harm.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from headgate.errors import AdapterError, UpstreamRefused, UpstreamTimeout, UpstreamUnreachable
from headgate.mcp.client.addresses import UpstreamEndpoint
from headgate.mcp.client.call_queue import CallQueue
from headgate.mcp.client.era import Era
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.questions import QuestionHandler
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.sender import TransportAdapter
from headgate.mcp.client.session import Discovered, UpstreamSession
from headgate.mcp.client.transport import GuardedTransport
from headgate.mcp.client.wire import DialOptions, Wire
from headgate.operations.secrets import Secret

_MAX_SESSIONS = 8
_SERVER_FAULT = 500
_PATIENT_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How a server is reached."""

    limits: Limits = field(default_factory=Limits)
    dial: DialOptions = field(default_factory=DialOptions)
    #: ``auto``, ``modern`` or ``legacy``.
    era: str = "auto"
    #: Used instead of our own connections; whoever gives it answers for the addresses it calls.
    http: httpx2.AsyncBaseTransport | None = None
    #: Where the server's questions are answered; without one it may ask none.
    questions: QuestionHandler | None = None


class UpstreamClosed(UpstreamUnreachable):
    """The import was closed; its operations cannot be called any more."""

    retryable = False


class Upstream:
    """One server, one token or several, and the sessions with it."""

    def __init__(
        self, endpoint: UpstreamEndpoint, options: ConnectOptions, *, on_tools_changed: Callable[[], None]
    ) -> None:
        self.endpoint = endpoint
        self.limits = options.limits
        self._options = options
        self._on_tools_changed = on_tools_changed
        self._queue = CallQueue(options.limits)
        self._sessions: dict[bytes, UpstreamSession] = {}
        self._retired: set[UpstreamSession] = set()
        self._opening = asyncio.Lock()
        self._hash_key = secrets.token_bytes(16)
        self._is_closed = False
        #: What the first session learned; later ones need not ask again.
        self.first: UpstreamSession | None = None

    def deadline(self, seconds: float | None = None) -> float:
        """Give the time at which a request that starts now must be over."""
        total = self.limits.total_seconds
        return asyncio.get_running_loop().time() + (total if seconds is None else min(total, seconds))

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        token: Secret | None,
        deadline: float,
        param_headers: Mapping[str, str] | None = None,
        is_repeatable: bool = False,
    ) -> dict[str, Any]:
        """Send a request when its turn comes, and give the raw result.

        Raises:
            AdapterError: there is no result. ``details`` say what is known: ``maybe_executed`` when the
                request may have run all the same.
        """
        breaker = self._queue.breaker
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(deadline) as waiting, self._queue.enter():
                # The request knows its own deadline, and what passing it means.
                waiting.reschedule(None)
                try:
                    result = await self._attempt(
                        method, params, token, deadline, param_headers, is_repeatable=is_repeatable
                    )
                except AdapterError as error:
                    self._count(error, is_patient=deadline - started >= _PATIENT_SECONDS)
                    raise
                except BaseException:
                    breaker.gave_up()
                    raise
        except TimeoutError as error:
            raise UpstreamTimeout("The call waited too long for its turn.") from error
        breaker.succeeded()
        return result

    async def open(self, token: Secret | None, deadline: float) -> UpstreamSession:
        """Give the open session for a token, opening one where there is none.

        Raises:
            AdapterError: it cannot be opened.
        """
        key = self._key(token)
        session = self._sessions.get(key)
        if session is not None and session.is_open:
            return session
        # Whoever waits behind another's slow opening still has a deadline of their own.
        try:
            async with asyncio.timeout_at(deadline):
                await self._opening.acquire()
        except TimeoutError as error:
            raise UpstreamTimeout("The session was not open in time.") from error
        try:
            return await self._open_anew(key, token, deadline)
        finally:
            self._opening.release()

    async def aclose(self) -> None:
        """End every session; later requests fail."""
        self._is_closed = True
        sessions = [*self._sessions.values(), *self._retired]
        self._sessions, self._retired = {}, set()
        await asyncio.gather(*(session.aclose() for session in sessions))

    async def _open_anew(self, key: bytes, token: Secret | None, deadline: float) -> UpstreamSession:
        session = self._sessions.get(key)
        if session is not None and session.is_open:
            return session
        if session is not None:
            await self._retire(session)
        session = await self._new(token, deadline)
        if self._is_closed:
            await session.aclose()
            raise UpstreamClosed(details={"reason": "closed"})
        await self._make_room()
        self._sessions[self._key(token)] = session
        return session

    async def _attempt(
        self,
        method: str,
        params: Mapping[str, Any],
        token: Secret | None,
        deadline: float,
        param_headers: Mapping[str, str] | None,
        *,
        is_repeatable: bool,
    ) -> dict[str, Any]:
        session = await self.open(token, deadline)
        state = RequestState(deadline, token)
        try:
            return await session.request(method, params, state, param_headers=param_headers)
        except AdapterError as error:
            lost = isinstance(error, UpstreamUnreachable)
            if not (state.lost_session or (lost and (is_repeatable or not state.sent))):
                raise _with_doubt(error, state) from error.__cause__
            if state.lost_session:
                await self._retire(session)
        again = RequestState(deadline, token)
        session = await self.open(token, deadline)
        try:
            return await session.request(method, params, again, param_headers=param_headers)
        except AdapterError as error:
            raise _with_doubt(error, again) from error.__cause__

    async def _new(self, token: Secret | None, deadline: float) -> UpstreamSession:
        if self._is_closed:
            raise UpstreamClosed(details={"reason": "closed"})
        options = self._options
        sender = Wire(self.endpoint, options.dial) if options.http is None else TransportAdapter(options.http)
        guard = GuardedTransport(sender, self.endpoint.url, limits=self.limits)
        session = UpstreamSession(
            self.endpoint.url,
            guard,
            era_choice=options.era,
            on_tools_changed=self._on_tools_changed,
            questions=options.questions,
        )
        await session.open(RequestState(deadline, token), self._prior)
        self.first = self.first or session
        return session

    @property
    def _prior(self) -> Discovered | None:
        return None if self.first is None else self.first.discovered

    @property
    def era(self) -> Era:
        """The revision that was agreed on."""
        return Era("") if self.first is None else self.first.era

    def _key(self, token: Secret | None) -> bytes:
        # A modern server keeps nothing between requests, so one session carries every token.
        if token is None or self.era.is_modern:
            return b""
        return hashlib.blake2b(token.expose().encode(), key=self._hash_key).digest()

    async def _retire(self, session: UpstreamSession) -> None:
        """Use a session no more, and end it when nobody waits on it."""
        session.is_lost = True
        self._retired.add(session)
        for idle in [retired for retired in self._retired if not retired.in_flight]:
            self._retired.discard(idle)
            await idle.aclose()

    async def _make_room(self) -> None:
        while len(self._sessions) >= _MAX_SESSIONS:
            quiet = next((key for key, session in self._sessions.items() if not session.in_flight), None)
            if quiet is None:
                return
            await self._sessions.pop(quiet).aclose()

    def _count(self, error: AdapterError, *, is_patient: bool) -> None:
        """Tell the breaker; that an impatient caller ran out of time says nothing about the server."""
        details: Mapping[str, Any] = error.details or {}
        refused = isinstance(error, UpstreamRefused) and details.get("status", 0) >= _SERVER_FAULT
        if isinstance(error, UpstreamTimeout) and not is_patient:
            self._queue.breaker.gave_up()
        elif refused or isinstance(error, UpstreamUnreachable | UpstreamTimeout):
            self._queue.breaker.failed(asyncio.get_running_loop().time())
        else:
            self._queue.breaker.succeeded()


def _with_doubt(error: AdapterError, state: RequestState) -> AdapterError:
    """Say that the request may have run, where nobody can know."""
    if state.sent and isinstance(error, UpstreamUnreachable | UpstreamTimeout):
        error.details = {**(error.details or {}), "maybe_executed": True}
        error.retryable = False
    return error
