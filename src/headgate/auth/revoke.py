"""Revoke a grant: its owner may, and the client that holds it."""

from __future__ import annotations

from collections.abc import Callable

from headgate.auth.admission import Admission
from headgate.errors import AuthenticationFailed, NotFound, PermissionRefused
from headgate.model.grant import TokenKind
from headgate.model.ids import GrantId
from headgate.store.ledger import Ledger


async def revoke_grant(
    ledger: Ledger, admission: Admission, token: str, grant_id: GrantId, *, clock: Callable[[], int]
) -> None:
    """End a grant for good, at once. A client may end a grant of its token, even one that is over.

    Raises:
        AuthenticationFailed: the token is unknown or past its time.
        PermissionRefused: the grant is not one of this token.
        NotFound: the owner has no such grant.
    """
    found = await admission.look_up(token)
    if found is None:
        raise AuthenticationFailed
    issued = found.token
    if issued.scope is not None:
        raise PermissionRefused(f"The owner limited this token to {issued.scope.value}.")
    if issued.kind is not TokenKind.OWNER:
        held = {one.grant.id for one in found.grants}
        if grant_id not in held:
            raise PermissionRefused("This is not a grant of this token.")
    if not await ledger.revoke(grant_id, clock()):
        raise NotFound(param="grant_id")
