"""Bookmarks of changes: short, sealed, and those of older versions."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.errors import CursorExpired, InvalidCursor
from headgate.model.sealed import Kind
from headgate.policy.cursors import (
    BOOKMARK_SECONDS,
    NONCE_BYTES,
    Bookmark,
    ChangesSession,
    Seals,
    open_bookmark,
    open_session,
    seal_bookmark,
    seal_session,
)

NOW = 1_800_000_123
SEALS = Seals(RingSealer(KeyRing(SealKey(b"k" * KEY_BYTES))), NOW)


@given(st.integers(0, 2**63 - 1), st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES))
def test_a_bookmark_of_any_place_opens_where_it_was_made_and_nowhere_else(since: int, nonce: bytes):
    token = seal_bookmark(SEALS, Bookmark(since, nonce), b"here")
    assert open_bookmark(SEALS, token, b"here").since == since
    assert len(token) <= 44 or since >= 2**40
    with pytest.raises(InvalidCursor) as refused:
        open_bookmark(SEALS, token, b"elsewhere")
    assert "Pass changes_since 'beginning'" in refused.value.hint


def test_all_bookmarks_of_a_home_have_one_length():
    assert len({len(seal_bookmark(SEALS, Bookmark(since), b"")) for since in (0, 1, 10**6, 10**12)}) == 1


def test_two_bookmarks_of_one_place_differ():
    assert seal_bookmark(SEALS, Bookmark(7, b"abc"), b"") != seal_bookmark(SEALS, Bookmark(7, b"abd"), b"")


def test_a_bookmark_of_an_older_version_is_valid_until_it_ends():
    payload = b"b" + (41).to_bytes(8, "big") + b"12345678"
    old = SEALS.sealer.seal(Kind.CHANGES, payload, binding=b"x", expires_at=NOW + 10)
    assert open_bookmark(SEALS, old, b"x").since == 41
    with pytest.raises(CursorExpired) as ended:
        open_bookmark(Seals(SEALS.sealer, NOW + 10), old, b"x")
    assert "'beginning'" in ended.value.hint


def test_a_bookmark_ends_within_an_hour_of_its_time():
    token = seal_bookmark(SEALS, Bookmark(7), b"x")
    assert open_bookmark(Seals(SEALS.sealer, NOW + BOOKMARK_SECONDS - 1), token, b"x").since == 7
    with pytest.raises(CursorExpired):
        open_bookmark(Seals(SEALS.sealer, NOW + BOOKMARK_SECONDS + 3600), token, b"x")


def test_cursors_and_bookmarks_are_never_taken_for_each_other():
    mark, cursor = seal_bookmark(SEALS, Bookmark(7), b"x"), seal_session(SEALS, ChangesSession(1, 2, 3), b"x")
    for token in (cursor, mark[:-1], mark + "A", "bm1.", "bm2." + mark[4:], "c.AAAA", "2026-01-01", "ch1.x"):
        with pytest.raises(InvalidCursor):
            open_bookmark(SEALS, token, b"x")
    with pytest.raises(InvalidCursor):
        open_session(SEALS, mark, b"x")
