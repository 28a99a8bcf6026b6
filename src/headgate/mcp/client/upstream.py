"""A remote server as its operations see it: requests go in, raw results or one kind of error come out.

Keeps the session for the life of the import and opens it anew when it is lost. A request is repeated only when
it has certainly not run, or when running it twice does no harm. Its tools are listed page by page, up to the limits: a
cursor is opaque and used once, and the definitions are not checked here; ``mapping`` does that.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2
import msgspec

from headgate.errors import AdapterError, UpstreamProtocolError, UpstreamTooLarge, UpstreamUnreachable
from headgate.mcp.client.limits import CallQueue, Limits, held
from headgate.mcp.client.message import measure
from headgate.mcp.client.network import DialOptions, UpstreamEndpoint
from headgate.mcp.client.pool import PooledTransport
from headgate.mcp.client.questions import QuestionHandler
from headgate.mcp.client.request_state import IMPATIENT, Era, RequestState, Waiting
from headgate.mcp.client.session import UpstreamSession
from headgate.mcp.client.wire import Wire
from headgate.operations.running import off_loop
from headgate.operations.secrets import Secret
from headgate.telemetry import get_logger

_MAX_SESSIONS = 8
#: Of a call whose caller names a time.
MAX_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How a server is reached."""

    limits: Limits = field(default_factory=Limits)
    dial: DialOptions = field(default_factory=DialOptions)
    #: ``auto``, ``modern`` or ``legacy``.
    era: str = "auto"
    #: Used instead of the connection pool; the program that brings it is responsible for the addresses it calls.
    http: httpx2.AsyncBaseTransport | None = None
    #: Answers the server's questions; without one it may ask none.
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
        #: The first session that was opened; later ones adopt what it negotiated.
        self.first: UpstreamSession | None = None

    def deadline(self, seconds: float | None = None, waiting: Waiting = IMPATIENT) -> float:
        """Return the time by which a request that starts now must end."""
        total = MAX_SECONDS if waiting.is_patient else self.limits.total_seconds
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
        waiting: Waiting = IMPATIENT,
    ) -> dict[str, Any]:
        """Send a request when its turn comes, and return the raw result.

        Raises:
            AdapterError: there is no result. Its ``details`` hold ``maybe_executed`` when the request may have
                run all the same.
        """
        failure: AdapterError = UpstreamUnreachable()
        async with self._queue.turn(deadline):
            for _attempt in (1, 2):
                session = await self.open(token, deadline)
                state = RequestState(deadline, token, waiting=waiting)
                try:
                    return await session.request(method, params, state, param_headers=param_headers)
                except AdapterError as error:
                    failure = state.mark_maybe_executed(error)
                    if not state.may_repeat(error, is_repeatable=is_repeatable):
                        break
                if state.lost_session:
                    await self._retire(session)
            raise failure from failure.__cause__

    async def open(self, token: Secret | None, deadline: float) -> UpstreamSession:
        """Return the open session for a token; open one where there is none."""
        key = self._key(token)
        session = self._sessions.get(key)
        if session is not None and session.is_open:
            return session
        async with held(self._opening, deadline, late="The session was not open in time."):
            return await self._open_anew(key, token, deadline)

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

    async def _new(self, token: Secret | None, deadline: float) -> UpstreamSession:
        if self._is_closed:
            raise UpstreamClosed(details={"reason": "closed"})
        options = self._options
        transport = options.http or PooledTransport(self.endpoint, options.dial)
        session = UpstreamSession(
            Wire(transport, self.endpoint.url, limits=self.limits),
            era_choice=options.era,
            on_tools_changed=self._on_tools_changed,
            questions=options.questions,
        )
        prior = None if self.first is None else self.first.discovered
        await session.open(RequestState(deadline, token), prior)
        self.first = self.first or session
        return session

    @property
    def era(self) -> Era:
        """The negotiated protocol revision."""
        return Era("") if self.first is None else self.first.era

    def _key(self, token: Secret | None) -> bytes:
        # A modern server keeps nothing between requests, so one session carries every token.
        if token is None or self.era.is_modern:
            return b""
        return hashlib.blake2b(token.expose().encode(), key=self._hash_key).digest()

    async def _retire(self, session: UpstreamSession) -> None:
        """Stop using a session, and close it when no call waits on it."""
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


async def list_tools(upstream: Upstream, token: Secret | None, deadline: float) -> list[Any]:
    """Return the definitions of all tools as the server wrote them; none when it has no tools capability."""
    session = await upstream.open(token, deadline)
    if session.capabilities.tools is None:
        get_logger().info("server_offers_no_tools", server=upstream.endpoint.public)
        return []
    return await list_all(upstream, "tools", token, deadline)


async def list_all(upstream: Upstream, kind: str, token: Secret | None, deadline: float) -> list[Any]:
    """Return everything of a kind (``tools``, ``resources``, ``prompts``), as the server wrote it."""
    listed: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    size = values = 0
    for _ in range(upstream.limits.max_pages):
        page = await upstream.request(
            f"{kind}/list",
            {} if cursor is None else {"cursor": cursor},
            token=token,
            deadline=deadline,
            is_repeatable=True,
        )
        entries = page.get(kind)
        if not isinstance(entries, list):
            raise UpstreamProtocolError(f"The server's list of {kind} is not a list.")
        added = await off_loop(deadline, _cost_of, cast("list[Any]", entries), upstream.limits)
        size, values = size + added[0], values + added[1]
        if size > upstream.limits.max_bytes or values > upstream.limits.max_values:
            raise UpstreamTooLarge(f"The {kind} that the server lists are too large together.")
        listed.extend(cast("list[Any]", entries))
        if len(listed) > upstream.limits.max_tools:
            raise UpstreamTooLarge(f"The server lists more than {upstream.limits.max_tools} {kind}.")
        cursor = _next_cursor(page)
        if cursor is None:
            return listed
        if cursor in seen:
            raise UpstreamProtocolError(f"The server's list of {kind} goes in a circle.")
        seen.add(cursor)
    raise UpstreamTooLarge(f"The server's list of {kind} has more than {upstream.limits.max_pages} pages.")


def _cost_of(definitions: list[Any], limits: Limits) -> tuple[int, int]:
    """Return the bytes and the values of definitions."""
    data = msgspec.json.encode(definitions)
    return len(data), measure(data, limits.max_values)[0]


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    cursor = page.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise UpstreamProtocolError("The server's page cursor is not a text.")
    return cursor
