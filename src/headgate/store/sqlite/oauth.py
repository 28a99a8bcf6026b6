"""The documents of the authorization server in the store's file; changes run on the ledger's writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from headgate.model.ids import GrantId
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.oauth import OAuthRows
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.ledger import SqliteLedger, put_grants, put_token

_T = TypeVar("_T")
_GET = "SELECT document FROM oauth_entry WHERE kind=? AND key=?"
_ALL = "SELECT document FROM oauth_entry WHERE kind=? ORDER BY key"
_PUT = (
    "INSERT INTO oauth_entry(kind, key, document, expires_at) VALUES(?, ?, ?, ?)"
    " ON CONFLICT(kind, key) DO UPDATE SET document = excluded.document, expires_at = excluded.expires_at"
)


class SqliteOAuthStore:
    """Works on the connections of a ledger; implements headgate.store.oauth.OAuthStore."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def get(self, kind: str, key: bytes) -> bytes | None:
        """Read a document, without waiting."""
        found = self._ledger.look_up(_GET, (kind, key))
        return found[0][0] if found else None

    def all(self, kind: str) -> Sequence[bytes]:
        """Read every document of a kind, without waiting."""
        return [document for (document,) in self._ledger.look_up(_ALL, (kind,))]

    async def change(self, work: Callable[[OAuthRows], _T]) -> _T:
        """Do some work in one write transaction; if it raises, nothing is written."""
        return await self._ledger.change(lambda database: work(_SqliteOAuthRows(database, self._ledger)))


class _SqliteOAuthRows:
    """Implements headgate.store.oauth.OAuthRows inside a transaction of the writer."""

    __slots__ = ("_database", "_ledger")

    def __init__(self, database: Database, ledger: SqliteLedger) -> None:
        self._database = database
        self._ledger = ledger

    def get(self, kind: str, key: bytes) -> bytes | None:
        row = self._database.one(_GET, (kind, key))
        return None if row is None else row[0]

    def all(self, kind: str) -> Sequence[bytes]:
        return [document for (document,) in self._database.all(_ALL, (kind,))]

    def put(self, kind: str, key: bytes, document: bytes, *, expires_at: int | None) -> None:
        self._database.run(_PUT, (kind, key, document, expires_at))

    def remove(self, kind: str, key: bytes) -> None:
        self._database.run("DELETE FROM oauth_entry WHERE kind=? AND key=?", (kind, key))

    def remove_ended(self, now: int) -> None:
        self._database.run("DELETE FROM oauth_entry WHERE expires_at <= ?", (now,))

    def put_grants(self, grants: Sequence[IssuedGrant]) -> None:
        put_grants(self._database, grants)

    def grants(self, grant_ids: Sequence[GrantId]) -> Sequence[IssuedGrant]:
        found = [self._ledger.grant_in(self._database, grant_id) for grant_id in grant_ids]
        return [one for one in found if one is not None]

    def consume(self, grant_ids: Sequence[GrantId], at: int) -> None:
        sql = "UPDATE grant_issued SET consumed_at=? WHERE id=? AND consumed_at IS NULL"
        self._database.many(sql, [(at, grant_id) for grant_id in grant_ids])

    def put_token(self, token: IssuedToken, family: str) -> None:
        put_token(self._database, token)
        self._database.run("UPDATE token SET family=? WHERE digest=?", (family, token.digest))

    def family_of(self, digest: bytes) -> str | None:
        row = self._database.one("SELECT family FROM token WHERE digest=?", (digest,))
        return None if row is None else row[0]

    def revoke_grants(self, grant_ids: Sequence[GrantId], at: int) -> None:
        sql = "UPDATE grant_issued SET revoked_at=? WHERE id=? AND revoked_at IS NULL"
        self._database.many(sql, [(at, grant_id) for grant_id in grant_ids])

    def revoke_family(self, family: str, at: int) -> None:
        sql = "UPDATE token SET revoked_at=? WHERE family=? AND revoked_at IS NULL"
        self._database.run(sql, (at, family))
