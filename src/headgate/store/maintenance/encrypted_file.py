"""Files that a passphrase opens, in version 1 of the age format, so that the ``age`` tool reads and writes them too.

The passphrase becomes a key by scrypt, which takes 256 MiB and about a second, so that guessing is slow. That key
wraps a random one; with the random one the content is encrypted in pieces of 64 KiB (ChaCha20-Poly1305). Each piece is
bound to its number, and the last one is marked: pieces that are changed, left out, exchanged or cut off are noticed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
import re
import secrets
from typing import IO, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from headgate.errors import AuthenticationFailed, IntegrityBroken

MAGIC = b"age-encryption.org/v1\n"
WORK = 18
#: A file that asks for more work than this was not made for a person to open.
_MOST_WORK = 20
_LABEL = b"age-encryption.org/v1/scrypt"
_SALT_BYTES = _KEY_BYTES = _NONCE_BYTES = 16
_PIECE_BYTES = 64 * 1024
_TAG_BYTES = 16
_COUNTER_BYTES = 11
_MOST_HEADER_BYTES = 1024
_HEADER = re.compile(
    rb"age-encryption\.org/v1\n-> scrypt ([A-Za-z0-9+/]{22}) ([1-9][0-9]?)\n([A-Za-z0-9+/]{43})\n--- ([A-Za-z0-9+/]{43})\n"
)


class _AgeHeader(NamedTuple):
    salt: bytes
    work: int
    wrapped: bytes
    mac: bytes
    #: What the MAC covers.
    text: bytes


class EncryptingWriter(io.RawIOBase):
    """Encrypts what is written to it; `finish` writes the last piece, without which no reader accepts the file."""

    def __init__(self, target: IO[bytes], passphrase: str, *, work: int = WORK) -> None:
        super().__init__()
        key, nonce = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_NONCE_BYTES)
        target.write(_header(key, passphrase, work) + nonce)
        self._target = target
        self._cipher = ChaCha20Poly1305(_derived(key, nonce, b"payload"))
        self._waiting = bytearray()
        self._count = 0

    def writable(self) -> bool:
        """Return True: it can be written to."""
        return True

    def write(self, data: bytes) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] - bytes are enough
        """Encrypt bytes; the last piece waits, because it is marked as the last one."""
        self._waiting += data
        while len(self._waiting) > _PIECE_BYTES:
            self._put(bytes(self._waiting[:_PIECE_BYTES]), is_last=False)
            del self._waiting[:_PIECE_BYTES]
        return len(data)

    def finish(self) -> None:
        """Write the last piece."""
        self._put(bytes(self._waiting), is_last=True)
        self._waiting.clear()

    def _put(self, piece: bytes, *, is_last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._count, is_last=is_last), piece, None))
        self._count += 1


class DecryptingReader(io.RawIOBase):
    """Reads what a passphrase opens; every byte that it returns was checked before."""

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        """Open the file."""
        super().__init__()
        header = _read_header(source)
        key = _unwrapped(header, passphrase)
        nonce = source.read(_NONCE_BYTES)
        if len(nonce) < _NONCE_BYTES:
            raise _damaged()
        self._source = source
        self._cipher = ChaCha20Poly1305(_derived(key, nonce, b"payload"))
        self._ahead = source.read(_PIECE_BYTES + _TAG_BYTES)
        self._ready = b""
        self._count = 0
        self._is_over = False

    def readable(self) -> bool:
        """Return True: it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes; fewer only at the end."""
        while not self._is_over and (size < 0 or len(self._ready) < size):
            self._ready += self._piece()
        size = len(self._ready) if size < 0 else size
        content, self._ready = self._ready[:size], self._ready[size:]
        return content

    def _piece(self) -> bytes:
        sealed, self._ahead = self._ahead, self._source.read(_PIECE_BYTES + _TAG_BYTES)
        self._is_over = not self._ahead
        try:
            piece = self._cipher.decrypt(_nonce(self._count, is_last=self._is_over), sealed, None)
        except InvalidTag:
            raise _damaged() from None
        if not piece and self._count:
            raise _damaged()
        self._count += 1
        return piece


def is_encrypted(start: bytes) -> bool:
    """Return whether a file that begins like this is one of these."""
    return start.startswith(MAGIC)


def _header(key: bytes, passphrase: str, work: int) -> bytes:
    salt = secrets.token_bytes(_SALT_BYTES)
    wrapped = ChaCha20Poly1305(_stretched(passphrase, salt, work)).encrypt(bytes(12), key, None)
    text = MAGIC + b"-> scrypt %b %d\n%b\n---" % (_encode(salt), work, _encode(wrapped))
    return text + b" " + _encode(_mac(key, text)) + b"\n"


def _read_header(source: IO[bytes]) -> _AgeHeader:
    lines = b"".join(source.readline(_MOST_HEADER_BYTES) for _ in range(4))
    header = _HEADER.fullmatch(lines)
    if header is None or int(header[2]) > _MOST_WORK:
        raise _damaged()
    salt, wrapped, mac = (_decode(header[place]) for place in (1, 3, 4))
    return _AgeHeader(salt, int(header[2]), wrapped, mac, lines[: header.start(4) - 1])


def _unwrapped(header: _AgeHeader, passphrase: str) -> bytes:
    try:
        stretched = _stretched(passphrase, header.salt, header.work)
        key = ChaCha20Poly1305(stretched).decrypt(bytes(12), header.wrapped, None)
    except InvalidTag:
        raise AuthenticationFailed(
            "This is not the passphrase of the backup.", hint="Try again; it cannot be recovered."
        ) from None
    if not hmac.compare_digest(_mac(key, header.text), header.mac):
        raise _damaged()
    return key


def _stretched(passphrase: str, salt: bytes, work: int) -> bytes:
    return Scrypt(salt=_LABEL + salt, length=32, n=1 << work, r=8, p=1).derive(passphrase.encode())


def _derived(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=info).derive(key)


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.new(_derived(key, b"", b"header"), text, hashlib.sha256).digest()


def _nonce(count: int, *, is_last: bool) -> bytes:
    return count.to_bytes(_COUNTER_BYTES, "big") + bytes([is_last])


def _encode(content: bytes) -> bytes:
    return base64.b64encode(content).rstrip(b"=")


def _decode(text: bytes) -> bytes:
    try:
        content = base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise _damaged() from None
    # The last character has spare bits: only one spelling is accepted.
    if _encode(content) != text:
        raise _damaged()
    return content


def _damaged() -> IntegrityBroken:
    return IntegrityBroken("The encrypted backup is damaged.", hint="Use another backup.")
