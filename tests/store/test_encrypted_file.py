"""Encrypted files: what comes out is what went in, and nothing of a changed file comes out at its end."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given, settings, strategies as st

from headgate.errors import AuthenticationFailed, HeadgateError, IntegrityBroken
from headgate.store.maintenance.encrypted_file import DecryptingReader, EncryptingWriter

PASSPHRASE = "six green boats"
PIECE = 64 * 1024
#: "the roof leaks" under that passphrase, written by rage, another program for the same format.
BY_ANOTHER_PROGRAM = """
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCBoTjBHN0xTY0M5NzZhVXJKckI3QlNBIDE4
Cm1wUzN4QWNSb2UrSCtQK3VPSWZsYkpNMTV1c04yZzBaYnJ3VW5EMDFWUFEKLS0tIDNvRFFVMTNl
U3RsQkNRSmNYVGpIKzNUbDNLTXdRL3F1TUJBcmhRajVLYzAK6tNQN4inEGv9X1gLUOEPXgcJh3wr
TFMqBWAHHs2RFS+zjWFUOamECKKH+8KfiA==
"""


def encrypted(content: bytes) -> bytes:
    file = io.BytesIO()
    # Little work: what a guess costs is not the matter here.
    writer = EncryptingWriter(file, PASSPHRASE, work=1)
    for start in range(0, len(content), 10_000):
        writer.write(content[start : start + 10_000])
    writer.finish()
    return file.getvalue()


def decrypted(content: bytes, passphrase: str = PASSPHRASE) -> bytes:
    reader = DecryptingReader(io.BytesIO(content), passphrase)
    found = b""
    while piece := reader.read(9_999):
        found += piece
    return found


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_content_of_any_size_comes_back(size: int):
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert decrypted(encrypted(content)) == content


def test_a_file_of_another_program_is_read():
    assert decrypted(base64.b64decode(BY_ANOTHER_PROGRAM)) == b"the roof leaks"


def test_another_passphrase_opens_nothing():
    with pytest.raises(AuthenticationFailed):
        decrypted(encrypted(b"secret"), "six green boat")


FILE = encrypted(b"a" * PIECE + b"b" * PIECE + b"c" * 10)
HEADER = FILE.index(b"\n--- ") + 49


@settings(max_examples=200)
@given(place=st.integers(0, len(FILE) - 1), change=st.integers(1, 255))
def test_a_changed_byte_anywhere_is_noticed(place: int, change: int):
    content = bytearray(FILE)
    content[place] ^= change
    with pytest.raises(HeadgateError):
        decrypted(bytes(content))


@settings(max_examples=100)
@given(length=st.integers(0, len(FILE) - 1))
def test_a_file_that_was_cut_off_is_noticed(length: int):
    with pytest.raises(HeadgateError):
        decrypted(FILE[:length])


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2), (0, 1), (0, 1, 1, 2), (0, 1, 2, 2)])
def test_pieces_in_another_order_are_noticed(order: tuple[int, ...]):
    start, size = HEADER + 16, PIECE + 16
    pieces = [FILE[start + n * size : start + (n + 1) * size] for n in range(3)]
    assert decrypted(FILE[:start] + b"".join(pieces)) == decrypted(FILE)
    with pytest.raises(IntegrityBroken):
        decrypted(FILE[:start] + b"".join(pieces[n] for n in order))


@pytest.mark.parametrize("work", [b"21", b"22", b"30"])
def test_a_file_that_asks_for_endless_work_is_refused(work: bytes):
    with pytest.raises(IntegrityBroken):
        decrypted(FILE.replace(b" 1\n", b" " + work + b"\n", 1))
