"""What the owner signs in with, as it is stored: digests and times, never the secrets themselves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
