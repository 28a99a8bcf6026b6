"""Sealed tokens: every opaque token that clients send back. `headgate.auth.keys` has the one codec for them.

Page cursors, change bookmarks, search cursors, window cursors and resource handles are all sealed:
encrypted, so they disclose nothing; authenticated together with their kind and a binding, so a token works
only where and for what it was made. A sealed token identifies; it never authorises.

A model reads cursors and writes them again, so the long token stays on a shelf of the home and the client gets its name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

NEVER = 0


class Kind(StrEnum):
    """What a sealed token is for; tokens of different kinds are never interchangeable."""

    PAGE = "pg"
    CHANGES = "ch"
    #: The end of a session of changes, from which the next one starts.
    BOOKMARK = "bm"
    SEARCH = "se"
    WINDOW = "fw"
    RECORD_HANDLE = "rh"
    WINDOW_HANDLE = "wh"
    BLOB_HANDLE = "bh"
    #: What a passkey signs.
    CHALLENGE = "pk"


class Failure(StrEnum):
    """Why a token was not opened."""

    MALFORMED = "malformed"
    WRONG_KIND = "wrong_kind"
    UNSUPPORTED_VERSION = "unsupported_version"
    #: The key it was sealed with has left the ring.
    UNKNOWN_KEY = "unknown_key"
    #: It was altered, or sealed for another binding: the two are indistinguishable.
    NOT_OURS = "not_ours"
    EXPIRED = "expired"


class Sealer(Protocol):
    """Seals and opens tokens."""

    def seal(self, kind: Kind, payload: bytes, *, binding: bytes = b"", expires_at: int | None = None) -> str:
        """Seal a payload for one kind and one binding, for ever or until a time in epoch seconds."""
        ...

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that was sealed for this kind and binding.

        Raises:
            SealBroken: it was not, or it has expired by ``now``.
        """
        ...

    def shortened(self, token: str) -> str:
        """Return a short name under which the token can be opened, or the token itself where none can be kept."""
        ...

    async def fetch(self, token: str) -> None:
        """Look a name up, if the token is one, so that `open` knows it."""


#: How the names of tokens that are kept begin.
SHORT = "c."


class CursorShelf(Protocol):
    """Where cursors are kept by their names, for every process of the home."""

    def put(self, name: str, token: str) -> bool:
        """Keep a token; False if it cannot be kept."""
        ...

    def get(self, name: str) -> str | None:
        """Return the token of a name; None if it is not known, or no longer."""
        ...

    async def fetch(self, name: str) -> None:
        """Look a name up wherever other processes may have kept it, so that `get` knows it."""
