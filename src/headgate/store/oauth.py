"""What the authorization server stores: documents by kind and key, and the tokens of one approval as a family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from headgate.model.ids import GrantId
from headgate.model.ledger import IssuedGrant, IssuedToken

_T = TypeVar("_T")


class OAuthRows(Protocol):
    """The rows inside one write transaction: what is read here cannot change before it is written."""

    def get(self, kind: str, key: bytes) -> bytes | None:
        """Read a document."""
        ...

    def put(self, kind: str, key: bytes, document: bytes, *, expires_at: int | None) -> None:
        """Write a document in place of the last one; it may be removed after its end."""
        ...

    def all(self, kind: str) -> Sequence[bytes]:
        """Read every document of a kind."""
        ...

    def remove(self, kind: str, key: bytes) -> None:
        """Remove a document."""
        ...

    def remove_ended(self, now: int) -> None:
        """Remove the documents that have ended."""
        ...

    def put_grants(self, grants: Sequence[IssuedGrant]) -> None:
        """Write grants."""
        ...

    def grants(self, grant_ids: Sequence[GrantId]) -> Sequence[IssuedGrant]:
        """Read grants."""
        ...

    def consume(self, grant_ids: Sequence[GrantId], at: int) -> None:
        """Note that grants for one use had their token."""
        ...

    def put_token(self, token: IssuedToken, family: str) -> None:
        """Write an access token of a family."""
        ...

    def family_of(self, digest: bytes) -> str | None:
        """Find the family of an access token."""
        ...

    def revoke_grants(self, grant_ids: Sequence[GrantId], at: int) -> None:
        """End grants."""
        ...

    def revoke_family(self, family: str, at: int) -> None:
        """End every access token of a family."""
        ...


class OAuthStore(Protocol):
    """Documents of the authorization server."""

    async def get(self, kind: str, key: bytes) -> bytes | None:
        """Read a document."""
        ...

    async def all(self, kind: str) -> Sequence[bytes]:
        """Read every document of a kind."""
        ...

    async def decide(self, work: Callable[[OAuthRows], _T]) -> _T:
        """Do some work in one write transaction if it writes; if not, which is known after a look, without waiting for one."""
        ...

    async def change(self, work: Callable[[OAuthRows], _T]) -> _T:
        """Do some work in one write transaction; if it raises, nothing is written."""
        ...
