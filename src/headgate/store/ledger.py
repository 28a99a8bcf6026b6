"""What the ledger of a store can do: grants, tokens and the chain of disclosures.

It keeps and finds; who may do what with a grant is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headgate.model.ids import GrantId
from headgate.model.ledger import (
    AuditBlock,
    AuditEntry,
    ChainHead,
    Holder,
    IssuedGrant,
    IssuedToken,
    SealedBlock,
    ShownRecords,
)
from headgate.store.owner import OwnerStore

#: Makes the block after a head out of lines; None is the head of an empty chain.
SealLines = Callable[[ChainHead | None, bytes], SealedBlock]


class Ledger(Protocol):
    """Grants, tokens, disclosures. Every look-up may wait: an engine may answer over a network."""

    @property
    def owner(self) -> OwnerStore:
        """What is stored about the owner's sign-in."""
        ...

    async def version(self) -> int:
        """Give a number that is another one after anything was written: what was looked up before may be old."""
        ...

    async def holder(self, digest: bytes) -> Holder | None:
        """Look up a token, its grants and the version they have, all at once, as they are at this moment."""
        ...

    async def grant(self, grant_id: GrantId) -> IssuedGrant | None:
        """Look a grant up, as it is at this moment."""
        ...

    async def spent(self, grant_id: GrantId, day: int) -> int:
        """Say how many records were shown under a grant on a day, counted from 1970."""
        ...

    async def shown_since(self, day: int) -> ShownRecords:
        """Return how many records were shown under each grant on each day from a day on, counted from 1970."""
        ...

    async def owner_tokens(self) -> tuple[IssuedToken, ...]:
        """Return every token that speaks for the owner, newest first."""
        ...

    async def revoke_token(self, digest: bytes, at: int) -> bool:
        """End a token for good. Says whether it was there."""
        ...

    async def grants(self) -> tuple[IssuedGrant, ...]:
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

    async def prune(self, line: AuditBlock) -> None:
        """Put the line that stands for the oldest blocks in their place.

        Raises:
            Conflict: other blocks than these are the oldest by now.
        """
        ...

    async def forget_journal(self, journal: str) -> None:
        """Forget how far a journal was taken over; it is gone."""
        ...

    async def taken(self, journal: str) -> int:
        """Say how many bytes of a journal are in the chain."""
        ...

    async def counted_entries(self) -> int:
        """Return how many entries were ever added to the chain, which is counted beside it; 0 if that is not known."""
        ...

    async def blocks(self, after: int, limit: int) -> tuple[AuditBlock, ...]:
        """Read the chain in order as it is sealed, a piece at a time; begins with what ends after a place."""
        ...

    async def entries(self, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain in order, a piece at a time."""
        ...

    async def entries_with(self, text: str, after: int, limit: int) -> tuple[AuditEntry, ...]:
        """Read those entries whose event holds a text."""
        ...

    async def newest(self, before: int | None, limit: int) -> tuple[AuditEntry, ...]:
        """Read the chain from its end, a piece at a time; the next one goes on before ``first`` of the last entry.

        If the chain is pruned meanwhile, the line that stands for the pruned entries may follow some of them.
        """
        ...

    async def close(self) -> None:
        """Let go of the file."""
        ...
