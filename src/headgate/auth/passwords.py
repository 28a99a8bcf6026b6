"""The owner's password: argon2id, at most two hashes at once, so that many sign-ins do not take all memory."""

from __future__ import annotations

import asyncio

from argon2 import PasswordHasher, Type
from argon2.exceptions import Argon2Error, InvalidHashError

from headgate.errors import InvalidRequest

LEAST_CHARS = 10
_MOST_BYTES = 1024
#: Each takes 64 MiB while it is computed.
_AT_ONCE = 2


class Passwords:
    """Hashes and checks passwords in threads."""

    __slots__ = ("_hasher", "_turns")

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher(type=Type.ID)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        """Hash a new password.

        Raises:
            InvalidRequest: it is too short or too long.
        """
        if len(password) < LEAST_CHARS or len(password.encode()) > _MOST_BYTES:
            raise InvalidRequest(
                f"A password has at least {LEAST_CHARS} characters.",
                hint="Choose several words, or let a password manager make one.",
                param="password",
            )
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, stored: str, password: str) -> bool:
        """Check a password against the stored hash."""
        if len(password.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
            return False
        async with self._turns:
            return await asyncio.to_thread(self._matches, stored, password)

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (Argon2Error, InvalidHashError, UnicodeEncodeError):
            return False
