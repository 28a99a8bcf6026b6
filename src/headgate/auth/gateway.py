"""Who may call which operation through the gateway.

A caller is a client, known by the token of its grants, or a program with a token for the gateway alone: a call of a
remote tool reads no record, so it needs no grant. What a caller may call is a list of servers and of operations.

A client's permission is bound to grants: those that it had when the owner gave the permission, and those that the owner
approved since on a page that listed it. Ids and names of clients are no secrets, so they alone permit nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import msgspec

from headgate.auth.keys import digest_of, mint
from headgate.errors import InvalidRequest, NotFound
from headgate.model.ids import GrantId, client_id
from headgate.store.ledger.oauth import OAuthRows, OAuthStore

#: What a caller of every operation holds; clients of the setting ``gateway_clients`` are such.
EVERYTHING = "gateway:call"
_CALLER, _TOKEN = "gateway_caller", "gateway_token"
_MOST_CALLERS = 1000
_MOST_NAMED = 5000


@dataclass(frozen=True, slots=True)
class GatewayCaller:
    """One caller, and what it may call."""

    name: str
    servers: tuple[str, ...]
    operations: tuple[str, ...]
    #: Microseconds since 1970.
    since: int
    #: SHA-256 of its token for the gateway, if it has one.
    token: bytes | None = None
    #: The grants under which a client may call.
    grants: tuple[GrantId, ...] = ()

    @property
    def described(self) -> tuple[str, ...]:
        """What it may call, in words."""
        return *(f"everything of {server}" for server in self.servers), *self.operations

    @property
    def scopes(self) -> frozenset[str]:
        """What it holds when an operation is looked at."""
        return frozenset({*map(server_scope, self.servers), *map(operation_scope, self.operations)})


def server_scope(server: str) -> str:
    """Return what a caller of every operation of a server holds."""
    return f"{EVERYTHING}:{server}/*"


def operation_scope(operation: str) -> str:
    """Return what a caller of one operation holds."""
    return f"{EVERYTHING}:{operation}"


class GatewayCallers:
    """Stores callers and finds them by name or token."""

    __slots__ = ("_clock", "_everything", "_store")

    def __init__(self, store: OAuthStore, everything: Iterable[str], clock: Callable[[], int]) -> None:
        self._store = store
        self._everything = frozenset(everything)
        self._clock = clock

    @property
    def named_in_settings(self) -> tuple[str, ...]:
        """The clients that the settings let call everything."""
        return tuple(sorted(self._everything))

    async def all(self) -> tuple[GatewayCaller, ...]:
        """List the callers by name."""
        return tuple(map(_caller, await self._store.all(_CALLER)))

    async def holder(self, token: str) -> str | None:
        name = await self._store.get(_TOKEN, digest_of(token))
        return None if name is None else name.decode()

    async def scopes(self, name: str, grants: Collection[GrantId] | None) -> frozenset[str]:
        """Return what a caller holds under grants; None is the holder of a token for the gateway alone."""
        caller = await self._find(name)
        is_bound = caller is not None and (grants is None or not set(grants).isdisjoint(caller.grants))
        scopes = caller.scopes if caller is not None and is_bound else frozenset[str]()
        return scopes | {EVERYTHING} if name in self._everything else scopes

    async def described(self, name: str) -> tuple[str, ...]:
        """Return in words what a client could call once a new grant of it is approved."""
        if name in self._everything:
            return ("every operation",)
        caller = await self._find(name)
        return () if caller is None else caller.described

    async def _find(self, name: str) -> GatewayCaller | None:
        document = await self._store.get(_CALLER, name.encode())
        return None if document is None else _caller(document)

    async def allow(
        self, name: str, servers: Iterable[str], operations: Iterable[str], grants: Iterable[GrantId] = ()
    ) -> None:
        """Let a caller call these and nothing else, a client under these grants.

        Nothing at all removes it with its token.
        """
        known, now = client_id(name), self._clock()
        chosen, single = tuple(sorted(set(servers))), tuple(sorted(set(operations)))
        if not chosen and not single:
            await self.remove(name)
            return

        def work(rows: OAuthRows) -> None:
            document = rows.get(_CALLER, known.encode())
            if (document is None and len(rows.all(_CALLER)) >= _MOST_CALLERS) or len(single) > _MOST_NAMED:
                raise InvalidRequest("There are too many callers.", hint="Remove one first.")
            before = GatewayCaller(known, (), (), now) if document is None else _caller(document)
            _put(rows, replace(before, servers=chosen, operations=single, grants=tuple(grants)))

        await self._store.change(work)

    async def make_token(self, name: str) -> str:
        """Make a token for the gateway alone; one that the caller had before ends."""
        token = mint()

        def work(rows: OAuthRows) -> None:
            document = rows.get(_CALLER, name.encode())
            if document is None:
                raise _no_caller()
            before = _caller(document)
            _drop_token(rows, before)
            rows.put(_TOKEN, digest_of(token), name.encode(), expires_at=None)
            _put(rows, replace(before, token=digest_of(token)))

        await self._store.change(work)
        return token

    async def remove(self, name: str) -> None:
        """End what a caller may call, and its token."""
        await self._store.change(lambda rows: _remove(rows, name))

    async def stop_all(self) -> None:
        """End what every caller may call, and its token."""
        await stop_callers(self._store)


def bind_grants(rows: OAuthRows, name: str, grants: Iterable[GrantId]) -> None:
    """Let a client call under grants as well, which the owner approved on a page that listed what it may call."""
    document = rows.get(_CALLER, name.encode())
    if document is not None:
        before = _caller(document)
        _put(rows, replace(before, grants=(*before.grants, *grants)))


async def stop_callers(store: OAuthStore) -> None:
    """End every caller's permission and token."""

    def work(rows: OAuthRows) -> None:
        for document in rows.all(_CALLER):
            _remove(rows, _caller(document).name)

    await store.change(work)


def _remove(rows: OAuthRows, name: str) -> None:
    document = rows.get(_CALLER, name.encode())
    if document is not None:
        _drop_token(rows, _caller(document))
        rows.remove(_CALLER, name.encode())


def _drop_token(rows: OAuthRows, caller: GatewayCaller) -> None:
    if caller.token is not None:
        rows.remove(_TOKEN, caller.token)


def _put(rows: OAuthRows, caller: GatewayCaller) -> None:
    rows.put(_CALLER, caller.name.encode(), msgspec.json.encode(caller), expires_at=None)


def _caller(document: bytes) -> GatewayCaller:
    return msgspec.json.decode(document, type=GatewayCaller)


def _no_caller() -> NotFound:
    return NotFound("There is no such caller.", hint="Look at the page of remote servers.")
