"""Admission: a token, looked up at every request, becomes the access it stands for at that moment."""

from __future__ import annotations

from collections.abc import Callable

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
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.reading.disclose import Discloser
from headgate.store.ledger import Ledger

_DAY = 24 * 3600 * 1_000_000
#: A grant for one use is used up by issuing its token; the token itself stays good.
_READABLE = {GrantState.ACTIVE, GrantState.CONSUMED}


class Admission:
    """Knows tokens. Nothing is remembered between two requests, so a revocation works on the next one."""

    __slots__ = ("_clock", "_discloser", "_ledger", "_unwritten")

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

    def admit(self, token: str) -> Access:
        """Say who is asking.

        Raises:
            AuthenticationFailed: nobody we know, or a token past its time.
            GrantRevoked, GrantExpired, PackageRevoked: the consent is over.
            RateLimited: the grant's records of the day are used up.
        """
        now = self._clock()
        issued = self.look_up(token)
        if issued is None:
            raise AuthenticationFailed
        if issued.kind is TokenKind.OWNER:
            return Access(issued.kind, issued.subject_id, None, ())
        granted = self._granted(issued, now)
        for one in granted:
            self._refuse_spent(one, now)
        return Access(
            token_kind=issued.kind,
            subject_id=issued.subject_id,
            client_id=issued.client_id,
            grants=tuple(one.grant for one in granted),
            package_id=issued.package_id,
        )

    def look_up(self, token: str) -> IssuedToken | None:
        """Find a token that is good by itself, whatever became of its grant."""
        issued = self._ledger.token(digest_of(token))
        if issued is None or issued.revoked_at is not None:
            return None
        is_late = issued.expires_at is not None and self._clock() >= issued.expires_at
        return None if is_late else issued

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

    def _granted(self, issued: IssuedToken, now: int) -> tuple[IssuedGrant, ...]:
        found = self.grants_of(issued)
        active = tuple(one for one in found if one.state(now) in _READABLE)
        if active:
            return active
        if issued.kind is TokenKind.MCP_PACKAGE:
            raise PackageRevoked
        raise _ended(found, now)

    def _refuse_spent(self, issued: IssuedGrant, now: int) -> None:
        if issued.daily_records is None:
            return
        day, into = divmod(now, _DAY)
        shown = self._ledger.spent(issued.grant.id, day) + self._unwritten(issued.grant.id)
        if shown >= issued.daily_records:
            seconds = (_DAY - into) // 1_000_000 + 1
            raise RateLimited("The records of this day are used up.", data={"retry_after_seconds": seconds})


def _ended(found: tuple[IssuedGrant, ...], now: int) -> HeadgateError:
    if not found:
        return GrantInvalid()
    by_state = {
        GrantState.REVOKED: GrantRevoked,
        GrantState.EXPIRED: GrantExpired,
        GrantState.CONSUMED: GrantConsumed,
    }
    return by_state.get(found[0].state(now), GrantInvalid)()
