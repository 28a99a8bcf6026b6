"""The owner's view of clients and of the owner's own tokens: who may read what, and how it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from authlib.oauth2 import OAuth2Error

from headgate.audit.activity import USUAL_DAYS, Alarm, find_alarms
from headgate.auth.clock import LatestTime
from headgate.auth.oauth import entries
from headgate.auth.oauth.clients import NONE, SECRET_METHODS, ClientOrigin, OAuthClient, from_registration
from headgate.errors import Conflict, InvalidClientMetadata, NotFound
from headgate.model.grant import GrantState
from headgate.model.ids import ClientId, GrantId
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant, IssuedToken, ShownRecords
from headgate.store.ledger.ledger import Ledger
from headgate.store.ledger.oauth import OAuthStore

_MARK_BYTES = 6
_DAYS = 30


@dataclass(frozen=True, slots=True)
class GrantOverview:
    """A grant, its state, and what was shown under it."""

    issued: IssuedGrant
    state: GrantState
    #: How many records were shown today, and when the last was, in days since 1970.
    today: int
    last_day: int | None


@dataclass(frozen=True, slots=True)
class ClientOverview:
    """A client and its grants, newest first."""

    client_id: ClientId
    grants: tuple[GrantOverview, ...]
    #: What it is called: the name it claims, or its id.
    name: str

    @property
    def active(self) -> tuple[GrantOverview, ...]:
        """The grants that can be read under; one for a single use stays readable after its token was issued."""
        return tuple(
            grant for grant in self.grants if grant.state in {GrantState.ACTIVE, GrantState.CONSUMED}
        )

    def readable(self, grant_id: GrantId | None = None) -> tuple[IssuedGrant, ...]:
        """Return the grants of one token: those of a package, or one alone; without an id, the newest.

        Raises:
            NotFound: the client can read nothing, or has no such grant.
        """
        active = [grant.issued for grant in self.active]
        chosen = [grant for grant in active if grant_id in {None, grant.grant.id}]
        if not chosen:
            raise NotFound(f"'{self.client_id}' has no active grant.", hint="Look at the list of agents.")
        first = chosen[0]
        if first.package_id is None:
            return (first,)
        return tuple(grant for grant in active if grant.package_id == first.package_id)

    @property
    def today(self) -> int:
        """How many records were shown today; a read under a package is counted for each of its grants."""
        counts: dict[str, int] = {}
        for grant in self.grants:
            at = grant.issued.package_id or grant.issued.grant.id
            counts[at] = max(counts.get(at, 0), grant.today)
        return sum(counts.values())


async def _no_names() -> Mapping[str, str]:
    return {}


class Clients:
    """Lists clients and owner's tokens, and ends what they may do."""

    __slots__ = ("_clock", "_latest", "_ledger", "_names")

    def __init__(
        self,
        ledger: Ledger,
        *,
        clock: Callable[[], int],
        latest: LatestTime,
        names: Callable[[], Awaitable[Mapping[str, str]]] = _no_names,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._latest = latest
        self._names = names

    async def names(self) -> Mapping[str, str]:
        """Return what clients are called, by their ids; those that are not here are called by their id."""
        return await self._names()

    async def overview(self) -> tuple[ClientOverview, ...]:
        """List every client that has or had a grant; those that can read come first."""
        now = self._now()
        shown_records = await self._ledger.shown_since(now // DAY_US - _DAYS)
        by_client: dict[ClientId, list[GrantOverview]] = {}
        for issued in await self._ledger.grants():
            by_client.setdefault(issued.grant.client_id, []).append(_grant(issued, shown_records, now))
        names = await self._names()
        clients = [
            ClientOverview(client, tuple(grants), names.get(client, client))
            for client, grants in by_client.items()
        ]
        return tuple(sorted(clients, key=lambda overview: not overview.active))

    async def client(self, client_id: ClientId) -> ClientOverview:
        """Find one client.

        Raises:
            NotFound: no grant names it.
        """
        for client in await self.overview():
            if client.client_id == client_id:
                return client
        raise NotFound(f"There is no client '{client_id[:80]}'.", hint="Look at the list of agents.")

    async def reads_by_day(self, days: int) -> dict[int, dict[ClientId, int]]:
        """Count the records that each client was shown on each of the last days, counted from 1970."""
        grants = {grant.grant.id: grant for grant in await self._ledger.grants()}
        first = self._clock() // DAY_US - days + 1
        # A read under a package is counted for each of its grants, so the largest count is the package's.
        counts: dict[tuple[int, ClientId, str], int] = {}
        for (grant_id, day), records in (await self._ledger.shown_since(first)).items():
            issued = grants.get(grant_id)
            if issued is not None:
                at = day, issued.grant.client_id, issued.package_id or grant_id
                counts[at] = max(counts.get(at, 0), records)
        by_day: dict[int, dict[ClientId, int]] = {}
        for (day, client, _), records in counts.items():
            of_day = by_day.setdefault(day, {})
            of_day[client] = of_day.get(client, 0) + records
        return by_day

    async def alarms(self, factor: int) -> tuple[Alarm, ...]:
        """Find the days of the last month on which a client read more than so many times its usual."""
        first = self._clock() // DAY_US - USUAL_DAYS
        reads = await self.reads_by_day(2 * USUAL_DAYS)
        return tuple(alarm for alarm in find_alarms(reads, factor) if alarm.day >= first)

    async def grant(self, grant_id: GrantId) -> IssuedGrant:
        """Find a grant that can be read under.

        Raises:
            NotFound: there is none.
        """
        issued = await self._ledger.grant(grant_id)
        if issued is None or issued.state(self._now()) not in {GrantState.ACTIVE, GrantState.CONSUMED}:
            raise NotFound("There is no such grant, or it has ended.", hint="Look at the list of agents.")
        return issued

    async def revoke_grant(self, grant_id: GrantId) -> None:
        """End a grant for good, at once."""
        if not await self._ledger.revoke(grant_id, self._clock()):
            raise NotFound("There is no such grant.", hint="Look at the list of agents.")

    async def narrow_grant(self, issued: IssuedGrant, narrowed: IssuedGrant) -> None:
        """Take away from a grant, at once; its token and its clients stay."""
        if not await self._ledger.replace_grant(issued, narrowed):
            raise Conflict("The grant has changed meanwhile.", hint="Look at it again.")

    async def stop(self, client_id: ClientId) -> int:
        """End every grant of a client; returns how many there were."""
        return await self._stop((await self.client(client_id)).active)

    async def stop_all(self) -> int:
        """End every grant of every client; returns how many there were."""
        return await self._stop(grant for client in await self.overview() for grant in client.active)

    async def _stop(self, grants: Iterable[GrantOverview]) -> int:
        ended = 0
        for grant in tuple(grants):
            await self._ledger.revoke(grant.issued.grant.id, self._clock())
            ended += 1
        return ended

    async def owner_tokens(self) -> tuple[IssuedToken, ...]:
        """List the owner's tokens that can still be used, newest first."""
        now = self._now()
        return tuple(
            token
            for token in await self._ledger.owner_tokens()
            if token.revoked_at is None and (token.expires_at is None or now < token.expires_at)
        )

    async def revoke_owner_token(self, mark: str) -> None:
        """End the owner's token that is listed under a mark."""
        for token in await self.owner_tokens():
            if token_mark(token) == mark:
                await self._ledger.revoke_token(token.digest, self._clock())
                return
        raise NotFound("There is no such token.", hint="Run 'headgate owner tokens' for the list.")

    def _now(self) -> int:
        return self._latest.raise_to(self._clock())


def token_mark(token: IssuedToken) -> str:
    """Return what names a token in lists: the beginning of its digest, which says nothing about its text."""
    return token.digest[:_MARK_BYTES].hex()


def _grant(issued: IssuedGrant, shown_records: ShownRecords, now: int) -> GrantOverview:
    days = [day for (grant, day), count in shown_records.items() if grant == issued.grant.id and count]
    today = shown_records.get((issued.grant.id, now // DAY_US), 0)
    return GrantOverview(issued, issued.state(now), today, max(days, default=None))


async def client_names(store: OAuthStore) -> dict[str, str]:
    """Return the names that approved clients claim, by their ids; of two with one name each has the end of its id."""
    documents = await store.all(entries.KINDS[OAuthClient])
    clients = [msgspec.json.decode(document, type=OAuthClient) for document in documents]
    approved = {client.id: client.name for client in clients if client.is_approved}
    # No client can pass for the owner, whose entries stand beside its own.
    often = Counter([*approved.values(), "You"])
    return {id_: name if often[name] == 1 else f"{name} ({id_[-4:]})" for id_, name in approved.items()}


async def add_owner_client(
    store: OAuthStore, name: str, redirect_uris: Sequence[str], *, now: int, has_secret: bool
) -> tuple[OAuthClient, str | None]:
    """Register a client by the owner's word; gives its secret if it has one."""
    method = SECRET_METHODS[0] if has_secret else NONE
    document = {"client_name": name, "redirect_uris": [*redirect_uris], "token_endpoint_auth_method": method}
    try:
        registered, secret = from_registration(document, now=now)
    except OAuth2Error as error:
        raise InvalidClientMetadata(error.get_error_description()) from None
    client = replace(registered, origin=ClientOrigin.OWNER, is_approved=True)
    await store.change(lambda rows: entries.put(rows, client.id, client, expires_at=None))
    return client, secret
