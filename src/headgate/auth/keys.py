"""Tokens and keys: random bits that mean nothing by themselves, and the ring that seals cursors.

Of a token only the SHA-256 is kept. The ring has two keys, so that a rotation ends no cursor that is in use. What it
seals is written so:

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
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from headgate.errors import ConfigInvalid, SealBroken
from headgate.home import Home, read_or_create_private, read_private, write_private
from headgate.model.sealed import NEVER, Failure, Kind

TOKEN_BYTES = 32
#: Lets a person and a secret scanner know one when they see it; says nothing about its kind.
PREFIX = "hg_"
_FILE = "seal.json"
KEY_BYTES = 64
_VERSION = "1"
_KEY_ID_BYTES = 4
_EXPIRY_BYTES = 8
_KINDS = frozenset(kind.value for kind in Kind)


def mint() -> str:
    """Make a new token."""
    return PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(TOKEN_BYTES)).rstrip(b"=").decode("ascii")


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def fresh_id(prefix: str) -> str:
    """Make a new id for a grant, a package or a client."""
    return f"{prefix}_{secrets.token_hex(8)}"


def read_bearer(authorization: bytes | None) -> str | None:
    """Read the token out of an ``Authorization`` header; None when it holds no bearer token.

    This is the only parser of bearer headers. Every token is ASCII, so anything else cannot be one.
    """
    scheme, _, token = (authorization or b"").partition(b" ")
    token = token.strip()
    return token.decode("ascii") if scheme.lower() == b"bearer" and token and token.isascii() else None


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


class RingSealer:
    """Seals and opens tokens with a ring of keys; a Sealer."""

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


def load_ring(home: Home) -> KeyRing:
    """Read the home's key ring, or make one for a new home."""
    path = home.keys / _FILE
    return _parse(read_or_create_private(path, lambda: _encode(KeyRing(_fresh_key()))), str(path))


def rotate_ring(home: Home) -> KeyRing:
    """Seal with a fresh key from now on; what the last key sealed stays good until the next rotation."""
    ring = load_ring(home).rotated(_fresh_key())
    write_private(home.keys / _FILE, _encode(ring))
    return ring


class HomeSealer:
    """Seals and opens with the ring in a home's file as it is now, so that a rotation counts in running servers too; a Sealer."""

    __slots__ = ("_inner", "_path", "_stamp")

    def __init__(self, home: Home) -> None:
        self._path = home.keys / _FILE
        self._inner = RingSealer(load_ring(home))
        self._stamp = _stamp(self._path)

    def seal(self, kind: Kind, payload: bytes, *, binding: bytes = b"", expires_at: int | None = None) -> str:
        """Seal a payload with the key that is current."""
        return self._current_sealer().seal(kind, payload, binding=binding, expires_at=expires_at)

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that a key of the ring sealed."""
        return self._current_sealer().open(kind, token, binding=binding, now=now)

    def _current_sealer(self) -> RingSealer:
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            # A ring that was removed or damaged does not stop a server that has it; its next start reports it.
            with suppress(ConfigInvalid):
                content = read_private(self._path)
                self._inner = self._inner if content is None else RingSealer(_parse(content, str(self._path)))
            self._stamp = stamp
        return self._inner


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _fresh_key() -> SealKey:
    return SealKey(secrets.token_bytes(KEY_BYTES))


def _encode(ring: KeyRing) -> bytes:
    keys = [key for key in (ring.current, ring.previous) if key is not None]
    document = {"version": 1, "keys": [base64.b64encode(key.secret).decode("ascii") for key in keys]}
    return json.dumps(document).encode()


def _parse(content: bytes, name: str) -> KeyRing:
    try:
        document = json.loads(content)
        texts = cast("list[str]", document["keys"])
        keys = [SealKey(base64.b64decode(text, validate=True)) for text in texts]
        current, *older = keys
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigInvalid(
            f"{name} is damaged.", hint="Restore it from a backup, or remove it: cursors in use then end."
        ) from error
    return KeyRing(current, older[0] if older else None)
