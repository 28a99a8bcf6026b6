"""What the ledger stores: issued grants and tokens, how the owner signs in, and the chain of disclosures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headgate.model.grant import Grant, GrantState, OwnerScope, TokenKind
from headgate.model.ids import ClientId, GrantId, PackageId, SubjectId


@dataclass(frozen=True, slots=True)
class IssuedGrant:
    """A grant with its revocation and expiry. The owner may narrow it; nothing widens it."""

    grant: Grant
    package_id: PackageId | None = None
    #: Microseconds since 1970.
    revoked_at: int | None = None
    #: When a grant for one use had its token issued.
    consumed_at: int | None = None
    #: How many records a day may be shown; None for no limit.
    daily_records: int | None = None

    def state(self, now: int) -> GrantState:
        """Return the state at a time; a revoked grant stays revoked after its expiry."""
        if self.revoked_at is not None:
            return GrantState.REVOKED
        if self.grant.expires_at is not None and now >= self.grant.expires_at:
            return GrantState.EXPIRED
        return GrantState.ACTIVE if self.consumed_at is None else GrantState.CONSUMED


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token; only its digest is stored."""

    #: SHA-256 of the token's text.
    digest: bytes
    kind: TokenKind
    subject_id: SubjectId
    #: Microseconds since 1970.
    issued_at: int
    client_id: ClientId | None = None
    grant_id: GrantId | None = None
    package_id: PackageId | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    #: What the owner calls it.
    name: str | None = None
    #: Of an owner's token: what it may be used for; None is everything.
    scope: OwnerScope | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """A token with every grant behind it, whatever became of them, as they were at one version of the ledger."""

    token: IssuedToken
    grants: tuple[IssuedGrant, ...]
    version: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One event of the chain: its place, its text, and the seal that its block bears."""

    #: Of the line that stands for pruned entries: the place of the last of them.
    seq: int
    event: bytes
    seal: bytes
    #: The place of the first event it stands for. Reading backwards goes on before it.
    first: int


@dataclass(frozen=True, slots=True)
class PrunedRange:
    """Entries that were moved to a file: the place of the first, and the seal of the last, which the chain goes on from."""

    first: int
    end_seal: bytes


@dataclass(frozen=True, slots=True)
class AuditBlock:
    """Events that entered the chain together, under one seal that ties them to all before them."""

    #: The place of the last event.
    last: int
    #: One to a line, with a line break between them.
    events: bytes
    seal: bytes
    #: What its only line stands for; None of a block as it was written.
    pruned: PrunedRange | None = None

    @property
    def first(self) -> int:
        """The place of the first event."""
        return self.last - self.events.count(b"\n") if self.pruned is None else self.pruned.first

    @property
    def head(self) -> ChainHead:
        """What the next block is sealed after."""
        return ChainHead(self.last, self.seal if self.pruned is None else self.pruned.end_seal)

    def entries(self) -> list[AuditEntry]:
        """Return each event with its place."""
        if self.pruned is not None:
            return [AuditEntry(self.last, self.events, self.seal, self.pruned.first)]
        return [
            AuditEntry(seq, line, self.seal, seq)
            for seq, line in enumerate(self.events.split(b"\n"), self.first)
        ]


#: How many records were shown under which grant, on which day since 1970.
ShownRecords = Mapping[tuple[GrantId, int], int]


@dataclass(frozen=True, slots=True)
class SealedBlock:
    """A block to be written, and how many records its events show."""

    block: AuditBlock
    shown: ShownRecords


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last entry of the chain and its seal."""

    seq: int
    seal: bytes


class BrowserKind(StrEnum):
    """What a browser holds."""

    #: Speaks for the owner.
    SESSION = "session"
    #: Shows that the owner signed in with this browser before; speaks for no one.
    KNOWN = "known"


@dataclass(frozen=True, slots=True)
class BrowserSecret:
    """A random text that a browser holds in a cookie. Times are microseconds since 1970."""

    #: SHA-256 of the text.
    digest: bytes
    kind: BrowserKind
    made_at: int
    used_at: int
    #: When the owner last gave the password in this session.
    proved_at: int


@dataclass(frozen=True, slots=True)
class SetupLink:
    """The link by which the owner sets a password, once."""

    digest: bytes
    #: Microseconds since 1970.
    ends_at: int


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey of the owner: the public half of it. Times are microseconds since 1970."""

    #: The credential's id, as its authenticator made it.
    id: bytes
    #: The name of the server that it was made for; it works for no other one.
    party: str
    #: What the owner calls it.
    name: str
    #: The credential as the authenticator attested it, with its public key.
    public_key: bytes
    #: How often it was used, as its authenticator counts; 0 where that does not count.
    uses: int
    made_at: int
    used_at: int | None = None


@dataclass(frozen=True, slots=True)
class SpentChallenge:
    """A challenge that was answered, and when it would have ended, in microseconds since 1970."""

    digest: bytes
    ends_at: int
