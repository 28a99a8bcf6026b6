"""Tokens and keys: random bits that mean nothing by themselves, and the ring that seals cursors.

Of a token only the SHA-256 is kept. The ring has two keys, so that a rotation ends no cursor that is in use. What it
seals is written so:

::

    token  := kind version "." base64url( key-id[4] siv[16] ciphertext )
    sealed := expiry[8] payload            encrypted with AES-SIV (RFC 5297)

A bookmark is copied by models and must outlive what a home can keep, so it is sealed in fewer bytes: without the id of
its key, and with an expiry of three bytes, in hours.

AES-SIV is deterministic: the same position gives the same token, so an id that has to travel as a handle
stays the same id, and answers that must be equal are equal byte for byte.

Cursors are kept by the home, and clients get names of 24 characters for them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from headgate.errors import ConfigInvalid, SealBroken
from headgate.home import Home, make_private_directory, read_or_create_private, read_private, write_private
from headgate.model.sealed import NEVER, SHORT, CursorShelf, Failure, Kind
from headgate.system import allocate, lock, open_private, read_at

TOKEN_BYTES = 32
#: Lets a person and a secret scanner know one when they see it; says nothing about its kind.
PREFIX = "hg_"
_FILE = "seal.json"
KEY_BYTES = 64
_VERSION = "1"
_KEY_ID_BYTES = 4
_EXPIRY_BYTES = 8
_SHORT_EXPIRY_BYTES = 3
_HOUR = 3600
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
        at = NEVER if expires_at is None else expires_at
        if kind is Kind.BOOKMARK:
            key_id, expiry = b"", (-(-at // _HOUR)).to_bytes(_SHORT_EXPIRY_BYTES, "big")
        else:
            key_id, expiry = self._current, at.to_bytes(_EXPIRY_BYTES, "big")
        sealed = self._ciphers[self._current].encrypt(expiry + payload, _associated(kind, binding))
        text = base64.urlsafe_b64encode(key_id + sealed).rstrip(b"=").decode("ascii")
        return f"{kind.value}{_VERSION}.{text}"

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that was sealed for this kind and binding.

        Raises:
            SealBroken: it was not, or it has expired by ``now``.
        """
        raw = _raw(kind, token)
        if kind is Kind.BOOKMARK:
            opened = self._decrypted(self._ciphers, raw, kind, binding)
            expiry_bytes, unit = _SHORT_EXPIRY_BYTES, _HOUR
        else:
            key_id = raw[:_KEY_ID_BYTES]
            if key_id not in self._ciphers:
                raise SealBroken(Failure.UNKNOWN_KEY)
            opened = self._decrypted((key_id,), raw[_KEY_ID_BYTES:], kind, binding)
            expiry_bytes, unit = _EXPIRY_BYTES, 1
        expires_at = int.from_bytes(opened[:expiry_bytes], "big") * unit
        if expires_at != NEVER and now >= expires_at:
            raise SealBroken(Failure.EXPIRED)
        return opened[expiry_bytes:]

    def _decrypted(self, key_ids: Iterable[bytes], sealed: bytes, kind: Kind, binding: bytes) -> bytes:
        for key_id in key_ids:
            with suppress(InvalidTag):
                return self._ciphers[key_id].decrypt(sealed, _associated(kind, binding))
        raise SealBroken(Failure.NOT_OURS)

    def shortened(self, token: str) -> str:
        """Return the token: a ring keeps none."""
        return token

    async def fetch(self, token: str) -> None:
        """Do nothing: a token holds all that is needed to open it."""


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

    __slots__ = ("_inner", "_path", "_shelf", "_stamp")

    def __init__(self, home: Home, shelf: CursorShelf | None = None) -> None:
        """Seal for a home, whose cursors are kept on a shelf: in files of it, unless another is given."""
        self._shelf = shelf or CursorFiles(home)
        self._path = home.keys / _FILE
        self._inner = RingSealer(load_ring(home))
        self._stamp = _stamp(self._path)

    def seal(self, kind: Kind, payload: bytes, *, binding: bytes = b"", expires_at: int | None = None) -> str:
        """Seal a payload with the key that is current."""
        return self._current_sealer().seal(kind, payload, binding=binding, expires_at=expires_at)

    def open(self, kind: Kind, token: str, *, binding: bytes = b"", now: int = NEVER) -> bytes:
        """Return the payload of a token that a key of the ring sealed, or of one that is kept under this name."""
        if token.startswith(SHORT):
            whole = self._shelf.get(token)
            if whole is None:
                raise SealBroken(Failure.NOT_OURS)
            token = whole
        return self._current_sealer().open(kind, token, binding=binding, now=now)

    def shortened(self, token: str) -> str:
        """Keep a token, and return its name."""
        name = short_name(token)
        return name if self._shelf.put(name, token) else token

    async def fetch(self, token: str) -> None:
        """Look a name up, if the token is one, wherever another process may have kept it."""
        if token.startswith(SHORT):
            await self._shelf.fetch(token)

    def _current_sealer(self) -> RingSealer:
        stamp = _stamp(self._path)
        if stamp != self._stamp:
            # A ring that was removed or damaged does not stop a server that has it; its next start reports it.
            with suppress(ConfigInvalid):
                content = read_private(self._path)
                self._inner = self._inner if content is None else RingSealer(_parse(content, str(self._path)))
            self._stamp = stamp
        return self._inner


_NAME_BYTES = 16
#: A file is a table of buckets, chosen by the name. A bucket is a ring: where the next entry begins, then entries, of which a
#: new one is written over the oldest. An entry is the digest, the length and the token, and fits for any key of a record.
_BUCKETS = 512
_BUCKET_BYTES = 8192
_LENGTH_BYTES = 2
#: Processes that keep cursors at the same time.
_MOST_FILES = 32


def short_name(token: str) -> str:
    """Name a token by its digest: the same token has the same name in every process, and no name can be guessed."""
    digest = hashlib.sha256(token.encode("ascii")).digest()[:_NAME_BYTES]
    return SHORT + base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def _digest_in(name: str) -> bytes | None:
    try:
        digest = base64.b64decode(name.removeprefix(SHORT) + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == _NAME_BYTES else None


class CursorFiles:
    """Keeps cursors in files of the home, for every process of one machine; a CursorShelf.

    Each process writes to another file, so that none waits for another, and looks names up in all of them. When it
    ends, the next process goes on with its file. Files have a fixed size: what is new takes the place of the oldest.
    """

    __slots__ = ("_directory", "_process", "_table")

    def __init__(self, home: Home) -> None:
        self._directory = home.cursors
        self._table: mmap.mmap | None = None
        self._process = 0

    def put(self, name: str, token: str) -> bool:
        """Keep a token; False if this process has no file, or the token no room."""
        table, digest, content = self._own_table(), _digest_in(name), token.encode("ascii")
        if table is None or digest is None:
            return False
        entry = digest + len(content).to_bytes(_LENGTH_BYTES, "big") + content
        if len(entry) > _BUCKET_BYTES - _LENGTH_BYTES:
            return False
        place = _place(digest)
        begin = int.from_bytes(table[place : place + _LENGTH_BYTES], "big")
        if not _LENGTH_BYTES <= begin <= _BUCKET_BYTES - len(entry):
            begin = _LENGTH_BYTES
        end = begin + len(entry)
        table[place + begin : place + end] = entry
        table[place : place + _LENGTH_BYTES] = end.to_bytes(_LENGTH_BYTES, "big")
        return True

    def get(self, name: str) -> str | None:
        """Look a name up in the file of this process, and in those of others."""
        digest = _digest_in(name)
        if digest is None:
            return None
        place = _place(digest)
        token = None
        if self._table is not None:
            token = _token_in(self._table[place : place + _BUCKET_BYTES], name, digest)
        with suppress(OSError):
            for path in self._directory.iterdir() if token is None else ():
                handle = open_private(path, os.O_RDONLY)
                try:
                    token = token or _token_in(read_at(handle, _BUCKET_BYTES, place), name, digest)
                finally:
                    os.close(handle)
        return token

    async def fetch(self, name: str) -> None:
        """Do nothing: files are at hand."""

    def _own_table(self) -> mmap.mmap | None:
        """Return the file of this process; a forked one does not write to that of its parent."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._table = _taken_table(self._directory)
        return self._table


def _taken_table(directory: Path) -> mmap.mmap | None:
    """Take a file that no other process has; None if there is none, or the home cannot be written."""
    size = _BUCKETS * _BUCKET_BYTES
    with suppress(OSError, ConfigInvalid):
        make_private_directory(directory)
        for number in range(_MOST_FILES):
            handle = open_private(directory / str(number), os.O_RDWR | os.O_CREAT)
            try:
                lock(handle)
                # Without its space on the disk, a page that is written later would end the process.
                allocate(handle, size)
                # The map duplicates the handle, and so holds the lock.
                return mmap.mmap(handle, size)
            except BlockingIOError:
                continue
            finally:
                os.close(handle)
    return None


def _place(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "big") % _BUCKETS * _BUCKET_BYTES


def _token_in(bucket: bytes, name: str, digest: bytes) -> str | None:
    at = bucket.find(digest)
    while at >= 0:
        begin = at + _NAME_BYTES + _LENGTH_BYTES
        length = int.from_bytes(bucket[begin - _LENGTH_BYTES : begin], "big")
        token = bucket[begin : begin + length].decode("ascii", "replace")
        # It may be written over in part, by this process or another: what is not whole has another name.
        if token.isascii() and short_name(token) == name:
            return token
        at = bucket.find(digest, at + 1)
    return None


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
