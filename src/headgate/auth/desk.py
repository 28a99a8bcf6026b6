"""The desk where a grant is ended: by its owner, or by the client that holds it."""

from __future__ import annotations

from collections.abc import Callable

from headgate.auth.admission import Admission
from headgate.errors import AuthenticationFailed, NotFound, PermissionRefused
from headgate.model.grant import TokenKind
from headgate.model.ids import GrantId
from headgate.store.ledger import Ledger


class Desk:
    """Ends grants."""

    __slots__ = ("_admission", "_clock", "_ledger")

    def __init__(self, ledger: Ledger, admission: Admission, *, clock: Callable[[], int]) -> None:
        self._ledger = ledger
        self._admission = admission
        self._clock = clock

    async def revoke(self, token: str, grant_id: GrantId) -> None:
        """End a grant for good, at once. A client may end its own, even one that is over.

        Raises:
            AuthenticationFailed: nobody we know.
            PermissionRefused: somebody else's grant.
            NotFound: the owner has no such grant.
        """
        issued = self._admission.look_up(token)
        if issued is None:
            raise AuthenticationFailed
        if issued.kind is not TokenKind.OWNER:
            own = {one.grant.id for one in self._admission.grants_of(issued)}
            if grant_id not in own:
                raise PermissionRefused("This is not a grant of this token.")
        if not await self._ledger.revoke(grant_id, self._clock()):
            raise NotFound(param="grant_id")
