"""Tokens and keys: random bits that mean nothing by themselves, and the ring that seals cursors.

Of a token only the SHA-256 is kept. The ring has two keys, so that a rotation ends no cursor that is in use.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from contextlib import suppress
from pathlib import Path
from typing import cast

from headgate.errors import ConfigInvalid
from headgate.home import Home, read_or_create_private, read_private, write_private
from headgate.model.sealed import KEY_BYTES, NEVER, KeyRing, Kind, Sealer, SealKey

TOKEN_BYTES = 32
#: Lets a person and a secret scanner know one when they see it; says nothing about its kind.
PREFIX = "hg_"
_FILE = "seal.json"


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


def load_ring(home: Home) -> KeyRing:
    """Read the home's key ring, or make one for a new home."""
    path = home.keys / _FILE
    return _parse(read_or_create_private(path, lambda: _encode(KeyRing(_fresh_key()))), str(path))


def rotate_ring(home: Home) -> KeyRing:
    """Seal with a fresh key from now on; what the last key sealed stays good until the next rotation."""
    ring = load_ring(home).rotated(_fresh_key())
    write_private(home.keys / _FILE, _encode(ring))
    return ring


class HomeSealer(Sealer):
    """Seals and opens with the ring in a home's file as it is now, so that a rotation counts in running servers too."""

    __slots__ = ("_inner", "_path", "_stamp")

    def __init__(self, home: Home) -> None:
        ring = load_ring(home)
        super().__init__(ring)
        self._path = home.keys / _FILE
        self._stamp = _stamp(self._path)
        self._inner = Sealer(ring)

    def seal(self, kind: Kind, payload: bytes, *, binding: bytes = b"", expires_at: int | None = None) -> str:
        return self._current_sealer().seal(kind, payload, binding=binding, expires_at=expires_at)

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that a key of the ring sealed."""
        return self._current_sealer().open(kind, token, binding=binding, now=now)

    def _current_sealer(self) -> Sealer:
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            # A ring that was removed or damaged does not stop a server that has it; its next start reports it.
            with suppress(ConfigInvalid):
                content = read_private(self._path)
                self._inner = self._inner if content is None else Sealer(_parse(content, str(self._path)))
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
