"""The documents of the authorization server in tables; changes run on the ledger's connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from headgate.model.ids import GrantId
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.ledger.ledger import Ledger, put_grants, put_token
from headgate.store.sql.database import Database

_T = TypeVar("_T")


class OAuthStore:
    """Documents by kind and key, and the tokens of one approval as a family, on the connections of a ledger."""

    __slots__ = ("_ledger",)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def get(self, kind: str, key: bytes) -> bytes | None:
        """Read a document."""
        return await self._ledger.connections.look_up(lambda database: _get(database, kind, key))

    async def all(self, kind: str) -> Sequence[bytes]:
        """Read every document of a kind."""
        return await self._ledger.connections.look_up(lambda database: _every(database, kind))

    async def decide(self, work: Callable[[OAuthRows], _T]) -> _T:
        """Do some work in one write transaction if it writes; what strangers send is mostly refused, and does not."""
        try:
            return await self._ledger.connections.look_up(
                lambda database: work(_LookingRows(database, self._ledger))
            )
        except _NeedsWriting:
            return await self.change(work)

    async def change(self, work: Callable[[OAuthRows], _T]) -> _T:
        """Do some work in one write transaction; if it raises, nothing is written."""
        return await self._ledger.connections.change(lambda database: work(OAuthRows(database, self._ledger)))


class OAuthRows:
    """The rows inside one write transaction: what is read here cannot change before it is written."""

    __slots__ = ("_database", "_ledger")

    def __init__(self, database: Database, ledger: Ledger) -> None:
        self._database = database
        self._ledger = ledger

    def get(self, kind: str, key: bytes) -> bytes | None:
        """Read a document."""
        return _get(self._database, kind, key)

    def all(self, kind: str) -> Sequence[bytes]:
        """Read every document of a kind."""
        return _every(self._database, kind)

    def put(self, kind: str, key: bytes, document: bytes, *, expires_at: int | None) -> None:
        """Write a document in place of the last one; it may be removed after its end."""
        self._database.run(self._database.sql["put_oauth_entry"], (kind, key, document, expires_at))

    def remove(self, kind: str, key: bytes) -> None:
        """Remove a document."""
        self._database.run(self._database.sql["delete_oauth_entry"], (kind, key))

    def remove_ended(self, now: int) -> None:
        """Remove the documents that have ended."""
        self._database.run(self._database.sql["delete_ended_oauth_entries"], (now,))

    def put_grants(self, grants: Sequence[IssuedGrant]) -> None:
        put_grants(self._database, grants)

    def grants(self, grant_ids: Sequence[GrantId]) -> Sequence[IssuedGrant]:
        grants = [self._ledger.grant_in(self._database, grant_id) for grant_id in grant_ids]
        return [grant for grant in grants if grant is not None]

    def consume(self, grant_ids: Sequence[GrantId], at: int) -> None:
        """Note that grants for one use had their token."""
        self._database.many(self._database.sql["consume_grant"], [(at, grant_id) for grant_id in grant_ids])

    def put_token(self, token: IssuedToken, family: str) -> None:
        put_token(self._database, token)
        self._database.run(self._database.sql["set_token_family"], (family, token.digest))

    def family_of(self, digest: bytes) -> str | None:
        """Find the family of an access token."""
        row = self._database.one(self._database.sql["token_family"], (digest,))
        return None if row is None else row[0]

    def revoke_grants(self, grant_ids: Sequence[GrantId], at: int) -> None:
        """End grants."""
        self._database.many(self._database.sql["revoke_grant"], [(at, grant_id) for grant_id in grant_ids])

    def revoke_family(self, family: str, at: int) -> None:
        """End every access token of a family."""
        self._database.run(self._database.sql["revoke_family"], (at, family))


class _NeedsWriting(Exception):
    """Raised where work that only looks would write."""


class _LookingRows(OAuthRows):
    """The rows of a connection that only reads."""

    __slots__ = ()

    def _refuse(self, *_given: object, **_named: object) -> NoReturn:
        raise _NeedsWriting

    put = remove = remove_ended = put_grants = consume = put_token = revoke_grants = revoke_family = _refuse


def _get(database: Database, kind: str, key: bytes) -> bytes | None:
    row = database.one(database.sql["oauth_entry"], (kind, key))
    return None if row is None else row[0]


def _every(database: Database, kind: str) -> list[bytes]:
    return [document for (document,) in database.all(database.sql["oauth_entries"], (kind,))]
