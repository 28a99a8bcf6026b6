"""Sealed tokens: the one codec for every opaque token that clients send back.

Page cursors, change bookmarks, search cursors, window cursors and resource handles are all sealed here:
encrypted, so they disclose nothing; authenticated together with their kind and a binding, so a token works
only where and for what it was made. A sealed token identifies; it never authorises.

::

    token  := kind version "." base64url( key-id[4] siv[16] ciphertext )
    sealed := expiry[8] payload            encrypted with AES-SIV (RFC 5297)

AES-SIV is deterministic: the same position gives the same token, so an id that has to travel as a handle
stays the same id, and answers that must be equal are equal byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from enum import StrEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from headgate.errors import SealBroken

KEY_BYTES = 64
_VERSION = "1"
_KEY_ID_BYTES = 4
_EXPIRY_BYTES = 8
NEVER = 0


class Kind(StrEnum):
    """What a sealed token is for; tokens of different kinds are never interchangeable."""

    PAGE = "pg"
    CHANGES = "ch"
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


_KINDS = frozenset(kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class SealKey:
    """One key. Its id is derived from the key, so that no counter has to be stored."""

    secret: bytes

    def __post_init__(self) -> None:
        if len(self.secret) != KEY_BYTES:
            raise ValueError(f"a seal key has {KEY_BYTES} bytes")

    @property
    def id(self) -> bytes:
        """Four bytes that identify the key in its ring and disclose nothing about it."""
        return hashlib.sha256(b"headgate seal key id" + self.secret).digest()[:_KEY_ID_BYTES]

    def __repr__(self) -> str:
        return f"SealKey(id={self.id.hex()})"


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The key that seals, and the one before it, which still opens what it sealed."""

    current: SealKey
    previous: SealKey | None = None

    def rotated(self, fresh: SealKey) -> KeyRing:
        """Return a ring that seals with a fresh key; tokens of the present key still open."""
        return KeyRing(fresh, self.current)


class Sealer:
    """Seals and opens tokens with a ring of keys."""

    __slots__ = ("_ciphers", "_current")

    def __init__(self, ring: KeyRing) -> None:
        keys = [key for key in (ring.current, ring.previous) if key is not None]
        self._current = ring.current.id
        self._ciphers = {key.id: AESSIV(key.secret) for key in keys}

    def seal(self, kind: Kind, payload: bytes, *, binding: bytes = b"", expires_at: int | None = None) -> str:
        """Seal a payload for one kind and one binding, for ever or until a time in epoch seconds."""
        expiry = (NEVER if expires_at is None else expires_at).to_bytes(_EXPIRY_BYTES, "big")
        sealed = self._ciphers[self._current].encrypt(expiry + payload, _associated(kind, binding))
        text = base64.urlsafe_b64encode(self._current + sealed).rstrip(b"=").decode("ascii")
        return f"{kind.value}{_VERSION}.{text}"

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that was sealed for this kind and binding.

        Raises:
            SealBroken: it was not, or it has expired by ``now``.
        """
        raw = _raw(kind, token)
        cipher = self._ciphers.get(raw[:_KEY_ID_BYTES])
        if cipher is None:
            raise SealBroken(Failure.UNKNOWN_KEY)
        try:
            opened = cipher.decrypt(raw[_KEY_ID_BYTES:], _associated(kind, binding))
        except InvalidTag:
            raise SealBroken(Failure.NOT_OURS) from None
        expires_at = int.from_bytes(opened[:_EXPIRY_BYTES], "big")
        if expires_at != NEVER and now >= expires_at:
            raise SealBroken(Failure.EXPIRED)
        return opened[_EXPIRY_BYTES:]


def _associated(kind: Kind, binding: bytes) -> list[bytes]:
    return [f"headgate {kind.value}{_VERSION}".encode(), binding]


def _raw(kind: Kind, token: str) -> bytes:
    prefix, dot, text = token.partition(".")
    if not dot or prefix[:-1] not in _KINDS:
        raise SealBroken(Failure.MALFORMED)
    if prefix[:-1] != kind.value:
        raise SealBroken(Failure.WRONG_KIND)
    if prefix[-1] != _VERSION:
        raise SealBroken(Failure.UNSUPPORTED_VERSION)
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SealBroken(Failure.MALFORMED) from None
    # The last character of base64 has spare bits: only the spelling that seal() writes is accepted.
    if base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii") != text:
        raise SealBroken(Failure.MALFORMED)
    return raw
