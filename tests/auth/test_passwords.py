from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from headgate.auth.sessions import Passwords
from headgate.errors import InvalidRequest

pytestmark = pytest.mark.anyio
PASSWORD = "six green boats at noon"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_password_is_hashed_with_argon2id_and_64_mebibytes():
    passwords = Passwords()
    stored = await passwords.hash(PASSWORD)
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,")
    assert await passwords.matches(stored, PASSWORD)
    assert not await passwords.matches(stored, PASSWORD + " ")


async def test_a_damaged_hash_matches_nothing():
    assert not await Passwords().matches("$argon2id$v=19$broken", PASSWORD)


@pytest.mark.parametrize("password", ["", "nine char", "x" * 1025, "\u00e9" * 513])
async def test_a_password_that_is_too_short_or_too_long_is_refused(password: str):
    with pytest.raises(InvalidRequest):
        await Passwords().hash(password)


async def test_a_long_text_is_not_even_hashed_to_compare_it():
    class Counting(PasswordHasher):
        def verify(self, *_texts: object) -> bool:
            raise AssertionError("a text of this length must not reach the hash")

    assert not await Passwords(Counting()).matches("stored", "x" * 1025)


async def test_at_most_two_hashes_are_computed_at_once():
    running, most, both = 0, 0, threading.Barrier(2)
    counting = threading.Lock()

    class Slow(PasswordHasher):
        def hash(self, *_texts: object, **_options: object) -> str:
            nonlocal running, most
            with counting:
                running += 1
                most = max(most, running)
            both.wait(30)
            with counting:
                running -= 1
            return "hash"

    passwords = Passwords(Slow())
    await asyncio.gather(*(passwords.hash(PASSWORD) for _ in range(8)))
    assert most == 2
