"""Admission: a token, looked up at every request, becomes the access it stands for at that moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.audit.disclose import Discloser
from headgate.auth.tokens import digest_of
from headgate.errors import (
    AuthenticationFailed,
    GrantConsumed,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HeadgateError,
    PackageRevoked,
    RateLimited,
)
from headgate.model.disclosure import Disclosure
from headgate.model.grant import Access, GrantState, TokenKind
from headgate.model.ids import GrantId, RequestId
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.ledger import Ledger

_NEVER = 2**63
_REMEMBERED = 1024
#: A grant for one use is used up by issuing its token; the token itself stays good.
_READABLE = {GrantState.ACTIVE, GrantState.CONSUMED}


@dataclass(frozen=True, slots=True)
class _Holder:
    """A token that is good by itself, with its grants, as they were when nothing has been written since."""

    issued: IssuedToken
    grants: tuple[IssuedGrant, ...]
    #: What the token stands for as long as none of its grants ends; None when one has, or has a limit.
    access: Access | None
    #: When the first of them ends by itself.
    ends_at: int


class Admission:
    """Knows tokens. What was looked up is good until anything is written: a revocation works on the next request."""

    __slots__ = ("_clock", "_discloser", "_holders", "_ledger", "_unwritten", "_version")

    def __init__(
        self,
        ledger: Ledger,
        *,
        clock: Callable[[], int],
        unwritten: Callable[[GrantId], int],
        discloser: Discloser,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        #: How many records were shown today that the ledger does not know of yet.
        self._unwritten = unwritten
        self._discloser = discloser
        self._holders: dict[bytes, _Holder] = {}
        self._version = -1

    def admit(self, token: str) -> Access:
        """Say who is asking.

        Raises:
            AuthenticationFailed: nobody we know, or a token past its time.
            GrantRevoked, GrantExpired, PackageRevoked: the consent is over.
            RateLimited: the grant's records of the day are used up.
        """
        now = self._clock()
        holder = self._holder(digest_of(token))
        if holder is None:
            raise AuthenticationFailed
        if holder.access is not None and now < holder.ends_at:
            return holder.access
        if not _is_good(holder.issued, now):
            raise AuthenticationFailed
        granted = _granted(holder, now)
        for one in granted:
            self._refuse_spent(one, now)
        return _access(holder.issued, granted)

    def _holder(self, digest: bytes) -> _Holder | None:
        version = self._ledger.version()
        if version != self._version or len(self._holders) >= _REMEMBERED:
            self._holders.clear()
            self._version = version
        known = self._holders.get(digest)
        if known is None:
            issued = self._ledger.token(digest)
            if issued is None:
                return None
            known = self._holders[digest] = _holder(issued, self.grants_of(issued), self._clock())
        return known

    def look_up(self, token: str) -> IssuedToken | None:
        """Find a token that is good by itself, whatever became of its grant."""
        issued = self._ledger.token(digest_of(token))
        return issued if issued is not None and _is_good(issued, self._clock()) else None

    def grants_of(self, issued: IssuedToken) -> tuple[IssuedGrant, ...]:
        """Find the grants behind a token, whatever became of them."""
        if issued.package_id is not None:
            return self._ledger.members(issued.package_id)
        found = None if issued.grant_id is None else self._ledger.grant(issued.grant_id)
        return () if found is None else (found,)

    def note_refusal(self, token: str, code: str, via: str, *, request_id: RequestId) -> None:
        """Put the refusal of a token that we know into the log; strangers leave no trace there."""
        issued = self.look_up(token)
        if issued is not None:
            self._discloser.write(
                Disclosure(
                    at=self._clock(),
                    request_id=request_id,
                    token_kind=issued.kind.value,
                    client_id=issued.client_id,
                    grant_ids=tuple(one.grant.id for one in self.grants_of(issued)),
                    package_id=issued.package_id,
                    via=via,
                    outcome=code,
                )
            )

    def _refuse_spent(self, issued: IssuedGrant, now: int) -> None:
        if issued.daily_records is None:
            return
        day, into = divmod(now, DAY_US)
        shown = self._ledger.spent(issued.grant.id, day) + self._unwritten(issued.grant.id)
        if shown >= issued.daily_records:
            seconds = (DAY_US - into) // 1_000_000 + 1
            raise RateLimited("The records of this day are used up.", data={"retry_after_seconds": seconds})


def _is_good(issued: IssuedToken, now: int) -> bool:
    return issued.revoked_at is None and (issued.expires_at is None or now < issued.expires_at)


def _holder(issued: IssuedToken, grants: tuple[IssuedGrant, ...], now: int) -> _Holder:
    """Work out what a token stands for, where that does not change from one request to the next."""
    ends = [issued.expires_at, *(one.grant.expires_at for one in grants)]
    is_plain = _is_good(issued, now) and all(
        one.state(now) in _READABLE and one.daily_records is None for one in grants
    )
    has_reason = bool(grants) or issued.kind is TokenKind.OWNER
    return _Holder(
        issued,
        grants,
        _access(issued, grants) if is_plain and has_reason else None,
        min((end for end in ends if end is not None), default=_NEVER),
    )


def _access(issued: IssuedToken, granted: tuple[IssuedGrant, ...]) -> Access:
    if issued.kind is TokenKind.OWNER:
        return Access(issued.kind, issued.subject_id, None, ())
    return Access(
        token_kind=issued.kind,
        subject_id=issued.subject_id,
        client_id=issued.client_id,
        grants=tuple(one.grant for one in granted),
        package_id=issued.package_id,
    )


def _granted(holder: _Holder, now: int) -> tuple[IssuedGrant, ...]:
    if holder.issued.kind is TokenKind.OWNER:
        return ()
    active = tuple(one for one in holder.grants if one.state(now) in _READABLE)
    if active:
        return active
    if holder.issued.kind is TokenKind.MCP_PACKAGE:
        raise PackageRevoked
    raise _ended(holder.grants, now)


def _ended(found: tuple[IssuedGrant, ...], now: int) -> HeadgateError:
    if not found:
        return GrantInvalid()
    by_state = {
        GrantState.REVOKED: GrantRevoked,
        GrantState.EXPIRED: GrantExpired,
        GrantState.CONSUMED: GrantConsumed,
    }
    return by_state.get(found[0].state(now), GrantInvalid)()
