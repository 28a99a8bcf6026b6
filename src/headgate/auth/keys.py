"""The key ring file: two keys, so that a rotation ends no cursor that is in use."""

from __future__ import annotations

import base64
import json
import secrets
from typing import cast

from headgate.errors import ConfigInvalid
from headgate.home import Home, read_or_create_private, write_private
from headgate.model.sealed import KEY_BYTES, KeyRing, SealKey

_FILE = "seal.json"


def load_ring(home: Home) -> KeyRing:
    """Read the home's key ring, or make one for a new home.

    Raises:
        ConfigInvalid: the file is damaged, or open to other users.
    """
    path = home.keys / _FILE
    return _parse(read_or_create_private(path, lambda: _encode(KeyRing(_fresh_key()))), str(path))


def rotate_ring(home: Home) -> KeyRing:
    """Seal with a fresh key from now on; what the last key sealed stays good until the next rotation."""
    ring = load_ring(home).rotated(_fresh_key())
    write_private(home.keys / _FILE, _encode(ring))
    return ring


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
