"""What is stored about the owner's sign-in: the password's hash, the link that sets it, and what browsers hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.model.owner import BrowserKind, BrowserSecret, Passkey, SetupLink, SpentChallenge


class OwnerStore(Protocol):
    """Stores and finds; who may sign in is decided in `headgate.auth`. Every look-up may wait."""

    async def password(self) -> str | None:
        """Return the hash of the owner's password; None while there is none."""
        ...

    async def link(self) -> SetupLink | None:
        """Return the link by which a password may be set."""
        ...

    async def browser(self, digest: bytes, kind: BrowserKind) -> BrowserSecret | None:
        """Look up what a browser holds, as it is at this moment."""
        ...

    async def put_link(self, link: SetupLink) -> None:
        """Store a link in place of the last one."""
        ...

    async def set_password(self, password: str, link: SetupLink | None) -> bool:
        """Store the hash of a password; with a link, only if that link is still there, which it then is not.

        Returns whether it was stored.
        """
        ...

    async def put_browser(self, secret: BrowserSecret, *, replaces: bytes | None = None) -> None:
        """Store what a browser holds from now on, and remove what it held before."""
        ...

    async def note_use(self, secret: BrowserSecret) -> None:
        """Store when a secret was last used and last proved; one that is not there stays away."""
        ...

    async def remove_browser(self, digest: bytes) -> None:
        """Remove what a browser holds."""
        ...

    async def end_sessions(self, *, but: bytes) -> None:
        """Remove every session except one."""
        ...

    async def reset(self, link: SetupLink) -> None:
        """Remove the password, the passkeys and everything that browsers hold, and store a link."""
        ...

    async def passkeys(self) -> Sequence[Passkey]:
        """Return every passkey, the oldest first."""
        ...

    async def put_passkey(self, passkey: Passkey, challenge: SpentChallenge) -> bool:
        """Store a passkey, new or after a use, unless the challenge was answered before; returns whether it was stored."""
        ...

    async def remove_passkey(self, passkey_id: bytes) -> bool:
        """Remove a passkey; returns whether there was one."""
        ...
