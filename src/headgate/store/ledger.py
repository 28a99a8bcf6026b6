"""What the ledger of a store can do: grants, tokens and the chain of disclosures.

It keeps and finds; who may do what with a grant is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.model.ids import GrantId, PackageId
from headgate.model.ledger import (
    AuditBlock,
    AuditEntry,
    ChainHead,
    IssuedGrant,
    IssuedToken,
    SealedBlock,
    ShownRecords,
)
from headgate.store.owner import OwnerStore

#: Makes the block after a head out of lines; None is the head of an empty chain.
SealLines = Callable[[ChainHead | None, bytes], SealedBlock]


class Ledger(Protocol):
    """Grants, tokens, disclosures. What looks something up for every request does so without waiting."""

    @property
    def owner(self) -> OwnerStore:
        """What is stored about the owner's sign-in."""
        ...

    def version(self) -> int:
        """Give a number that is another one after anything was written: what was looked up before may be old."""
        ...

    def token(self, digest: bytes) -> IssuedToken | None:
        """Look a token up, as it is at this moment."""
        ...

    def grant(self, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up, as it is at this moment."""
        ...

    def members(self, package_id: PackageId) -> tuple[IssuedGrant, ...]:
        """Look up the grants of a package, as they are at this moment."""
        ...

    def spent(self, grant_id: GrantId, day: int) -> int:
        """Say how many records were shown under a grant on a day, counted from 1970."""
        ...

    def shown_since(self, day: int) -> ShownRecords:
        """Return how many records were shown under each grant on each day from a day on, counted from 1970."""
        ...

    def owner_tokens(self) -> tuple[IssuedToken, ...]:
        """Return every token that speaks for the owner, newest first."""
        ...

    async def revoke_token(self, digest: bytes, at: int) -> bool:
        """End a token for good. Says whether it was there."""
        ...

    def grants(self) -> tuple[IssuedGrant, ...]:
        """Give every grant, newest first."""
        ...

    async def issue(self, grants: Sequence[IssuedGrant], token: IssuedToken) -> None:
        """Keep grants and the token for them, all or nothing.

        Raises:
            GrantConsumed: a grant for one use already had its token.
        """
        ...

    async def add_token(self, token: IssuedToken) -> None:
        """Keep a token for what is there already."""
        ...

    async def replace_grant(self, before: IssuedGrant, after: IssuedGrant) -> bool:
        """Keep a grant with other terms under the same id. Says whether it was there as it was before."""
        ...

    async def revoke(self, grant_id: GrantId, at: int) -> bool:
        """End a grant for good. Says whether it was there."""
        ...

    async def append(self, journal: str, start: int, lines: bytes, seal: SealLines) -> ChainHead:
        """Add the lines of a journal to the chain as a block, each once, however often they are passed.

        ``start`` is the offset of the lines in the journal, in bytes; each ends with a line break. ``seal``
        is called inside the write transaction with those lines that are not in the chain yet.
        """
        ...

    async def forget_journal(self, journal: str) -> None:
        """Forget how far a journal was taken over; it is gone."""
        ...

    def taken(self, journal: str) -> int:
        """Say how many bytes of a journal are in the chain."""
        ...

    def blocks(self, after: int, limit: int) -> tuple[AuditBlock, ...]:
        """Read the chain in order as it is sealed, a piece at a time; begins with what ends after a place."""
        ...

    def entries(self, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain in order, a piece at a time."""
        ...

    def entries_with(self, text: str, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read those entries whose event holds a text."""
        ...

    def newest(self, before: int | None, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain from its end, a piece at a time."""
        ...

    async def close(self) -> None:
        """Let go of the file."""
        ...
