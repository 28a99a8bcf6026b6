"""Ends every credential of a restored store: the backup does not know which of them were ended after it was made."""

from __future__ import annotations

from headgate.model.maintenance import EndedCredentials
from headgate.store.relational.copying import StoreSide

_CALLER = "gateway_caller"


def end_credentials(side: StoreSide, at: int) -> EndedCredentials:
    """End grants, owner tokens, everything that the owner signs in with, and the callers of the gateway.

    A store of an older version has no tables for some of them.
    """

    def ended(table: str, statement: str, *values: object) -> list[str]:
        if not side.columns(table):
            return []
        return [row[0] for row in side.database.all(side.database.sql[statement], values)]

    return EndedCredentials(
        grants=len(ended("grant_issued", "revoke_all_grants", at)),
        owner_tokens=len(ended("token", "revoke_owner_tokens", at)),
        sign_ins=sum(
            len(ended(table, statement))
            for table, statement in (
                ("owner", "end_password"),
                ("owner_passkey", "end_passkeys"),
                ("owner_browser", "end_browser_secrets"),
            )
        ),
        gateway_callers=ended("oauth_entry", "end_gateway_callers").count(_CALLER),
    )
