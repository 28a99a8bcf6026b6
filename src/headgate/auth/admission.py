"""Admission: a token, looked up at every request, becomes the access it stands for at that moment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from headgate.audit.budget import DailyBudgets
from headgate.audit.journal import Discloser, Disclosure
from headgate.auth.clock import LatestTime
from headgate.auth.keys import digest_of
from headgate.errors import (
    AuthenticationFailed,
    GrantConsumed,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HeadgateError,
    PackageRevoked,
    PermissionRefused,
)
from headgate.model.grant import OWNER, Access, GrantState, OwnerScope, TokenKind
from headgate.model.ids import RequestId
from headgate.model.ledger import Holder, IssuedGrant, IssuedToken
from headgate.store.ledger.ledger import Ledger

_NEVER = 2**63
_REMEMBERED = 1024
_HOUR_US = 3600 * 1_000_000
_LOGGED_EACH = 5
_MOST_COUNTED = 1000
#: The token's digest, the address, the code of the refusal.
_Key = tuple[bytes, str, str]
#: A grant for one use is consumed when its token is issued; the token stays valid.
READABLE = {GrantState.ACTIVE, GrantState.CONSUMED}
#: The routes that an owner's token of a scope may call; every other one refuses it.
SCOPE_ROUTES = {
    OwnerScope.METRICS: frozenset({"GET /metrics"}),
    OwnerScope.INGEST: frozenset({"POST /v1/ingest/{stream}", "POST /v1/blobs", "POST /v1/imports"}),
}


@dataclass(frozen=True, slots=True)
class _TokenState:
    """A token and its grants, as they were read at one version of the ledger."""

    issued: IssuedToken
    grants: tuple[IssuedGrant, ...]
    #: What the token stands for until ``ends_at``; None if a grant has ended, or has a daily limit.
    access: Access | None
    #: When the token or the first of its grants expires.
    ends_at: int
    version: int


class Admission:
    """Looks tokens up. What was read is used until anything is written, so a revocation works on the next request.

    Ends are compared with the latest time seen, not with the clock: what has expired stays expired.
    """

    __slots__ = ("_budgets", "_clock", "_latest", "_ledger", "_states", "_version", "refusals")

    def __init__(
        self,
        ledger: Ledger,
        *,
        clock: Callable[[], int],
        latest: LatestTime,
        budgets: DailyBudgets,
        discloser: Discloser,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._latest = latest
        self._budgets = budgets
        self.refusals = RefusalLog(discloser)
        #: By the token's digest, all read at the same version.
        self._states: dict[bytes, _TokenState] = {}
        self._version = -1

    async def admit(self, token: str, route: str = "", *, checks_budget: bool = True) -> Access:
        """Look up what a token stands for now; the result is for one request.

        Without ``checks_budget`` a used-up budget is left to the read, which refuses in words that an agent sees.

        Raises:
            AuthenticationFailed: the token is unknown or past its time.
        """
        digest = digest_of(token)
        # Not a method: every request passes here, and each coroutine more is paid for by all of them.
        is_known = await self._ledger.version() == self._version
        # After the look-up, which brings the latest time of other machines.
        now = self._latest.raise_to(self._clock())
        state = self._states.get(digest) if is_known else None
        if state is None:
            state = await self._read(digest, now)
        if state is None:
            raise AuthenticationFailed
        if state.access is not None and now < state.ends_at:
            return state.access
        if now >= state.ends_at:
            await self._latest.share_end(_last_end(state, now))
        if not _is_valid(state.issued, now):
            raise AuthenticationFailed
        _check_scope(state.issued, route)
        granted = _granted(state, now)
        access = _access(state.issued, granted, state.version)
        if checks_budget and access.daily_records:
            await self._budgets.left(access)
        return access

    async def _read(self, digest: bytes, now: int) -> _TokenState | None:
        holder = await self._ledger.holder(digest)
        if holder is None:
            return None
        # By the version of the answer itself: others may have been admitted while it was waited for.
        if holder.version != self._version or len(self._states) >= _REMEMBERED:
            self._states.clear()
            self._version = holder.version
        state = self._states[digest] = _read_state(holder, now)
        return state

    async def owner_access(self) -> Access:
        """Return what the owner reads with who is signed in; the result is for one request."""
        return Access(TokenKind.OWNER, OWNER, None, (), epoch=await self._ledger.version())

    async def access_as(self, granted: Sequence[IssuedGrant]) -> Access:
        """Return what a client reads with under these grants, for the owner to look at; nothing is counted for it."""
        first = granted[0]
        kind = TokenKind.CLIENT if first.package_id is None else TokenKind.MCP_PACKAGE
        grants = tuple(issued.grant for issued in granted)
        client, package = first.grant.client_id, first.package_id
        return Access(kind, OWNER, client, grants, package, epoch=await self._ledger.version())

    async def look_up(self, token: str) -> Holder | None:
        """Find a token that has not ended itself, and its grants, whatever became of them."""
        holder = await self._ledger.holder(digest_of(token))
        now = self._latest.raise_to(self._clock())
        return holder if holder is not None and _is_valid(holder.token, now) else None

    async def note_refusal(self, token: str, code: str, via: str, *, request_id: RequestId) -> None:
        """Log the refusal of a known token; unknown ones are not logged."""
        holder = await self.look_up(token)
        if holder is not None:
            issued = holder.token
            self.refusals.note(
                issued.digest,
                Disclosure(
                    at=self._clock(),
                    request_id=request_id,
                    token_kind=issued.kind.value,
                    client_id=issued.client_id,
                    grant_ids=tuple(grant.grant.id for grant in holder.grants),
                    package_id=issued.package_id,
                    via=via,
                    outcome=code,
                ),
            )


def _is_valid(issued: IssuedToken, now: int) -> bool:
    return issued.revoked_at is None and (issued.expires_at is None or now < issued.expires_at)


def _last_end(state: _TokenState, now: int) -> int:
    """Return the last of the ends that have passed."""
    ends = [state.issued.expires_at, *(grant.grant.expires_at for grant in state.grants)]
    return max(end for end in ends if end is not None and end <= now)


def _check_scope(issued: IssuedToken, route: str) -> None:
    if issued.scope is not None and route not in SCOPE_ROUTES[issued.scope]:
        raise PermissionRefused(f"The owner limited this token to {issued.scope.value}.")


def _read_state(holder: Holder, now: int) -> _TokenState:
    """Work out the access ahead, where no request can change it: no grant has ended or counts records."""
    issued, grants = holder.token, holder.grants
    ends = [issued.expires_at, *(grant.grant.expires_at for grant in grants)]
    is_plain = _is_valid(issued, now) and all(
        grant.state(now) in READABLE and grant.daily_records is None for grant in grants
    )
    is_plain = is_plain and issued.scope is None
    has_reason = bool(grants) or issued.kind is TokenKind.OWNER
    return _TokenState(
        issued,
        grants,
        _access(issued, grants, holder.version) if is_plain and has_reason else None,
        min((end for end in ends if end is not None), default=_NEVER),
        holder.version,
    )


def _access(issued: IssuedToken, granted: tuple[IssuedGrant, ...], version: int) -> Access:
    if issued.kind is TokenKind.OWNER:
        return Access(issued.kind, issued.subject_id, None, (), epoch=version)
    return Access(
        token_kind=issued.kind,
        subject_id=issued.subject_id,
        client_id=issued.client_id,
        grants=tuple(grant.grant for grant in granted),
        package_id=issued.package_id,
        daily_records=tuple(
            (grant.grant.id, grant.daily_records) for grant in granted if grant.daily_records is not None
        ),
        epoch=version,
    )


def _granted(state: _TokenState, now: int) -> tuple[IssuedGrant, ...]:
    if state.issued.kind is TokenKind.OWNER:
        return ()
    active = tuple(grant for grant in state.grants if grant.state(now) in READABLE)
    if active:
        return active
    if state.issued.kind is TokenKind.MCP_PACKAGE:
        raise PackageRevoked
    raise _ended(state.grants, now)


def _ended(grants: tuple[IssuedGrant, ...], now: int) -> HeadgateError:
    if not grants:
        return GrantInvalid()
    by_state = {
        GrantState.REVOKED: GrantRevoked,
        GrantState.EXPIRED: GrantExpired,
        GrantState.CONSUMED: GrantConsumed,
    }
    return by_state.get(grants[0].state(now), GrantInvalid)()


# Refusals in the disclosure log


@dataclass(slots=True)
class _Refusals:
    """The refusals of one token at one address, for one reason, in one hour."""

    last: Disclosure
    hour: int
    count: int = 0
    logged: int = 0


class RefusalLog:
    """Logs the first refusals of a token in an hour each, and later ones together whenever their number has doubled.

    They are counted by address and reason: what a token tries elsewhere has entries too.
    """

    __slots__ = ("_discloser", "_known")

    def __init__(self, discloser: Discloser) -> None:
        self._discloser = discloser
        self._known: OrderedDict[_Key, _Refusals] = OrderedDict()

    def note(self, token: bytes, refusal: Disclosure) -> None:
        """Count a refusal of the token with a digest, and log it now or together with others."""
        key, hour = (token, refusal.via, refusal.outcome), refusal.at // _HOUR_US
        known = self._known.pop(key, None)
        if known is not None and known.hour != hour:
            self._log(known)
            known = None
        known = self._known[key] = known or _Refusals(refusal, hour)
        known.last = refusal
        known.count += 1
        if known.count <= _LOGGED_EACH or known.count >= 2 * known.logged:
            self._log(known)
        if len(self._known) > _MOST_COUNTED:
            self._log(self._known.popitem(last=False)[1])

    def log_rest(self) -> None:
        """Log what was counted and not logged yet."""
        for known in self._known.values():
            self._log(known)

    def _log(self, known: _Refusals) -> None:
        count = known.count - known.logged
        known.logged = known.count
        if count:
            self._discloser.write(known.last if count == 1 else replace(known.last, refusals=count))
