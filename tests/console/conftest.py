from __future__ import annotations

import functools

import pytest
from argon2 import PasswordHasher


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch):
    """Hash with little work: what a hash costs is shown in tests/auth/test_passwords.py."""
    cheap = functools.partial(PasswordHasher, time_cost=1, memory_cost=256, parallelism=1)
    monkeypatch.setattr("headgate.auth.sessions.PasswordHasher", cheap)
