from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings, strategies as st

from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.errors import SealBroken
from headgate.model.sealed import Failure, Kind, Sealer

OLD, NEW, OTHER = (SealKey(bytes([n]) * KEY_BYTES) for n in (1, 2, 3))
SEALER = RingSealer(KeyRing(NEW, OLD))
KINDS = st.sampled_from(Kind)
PAYLOAD = st.binary(max_size=60)
BINDING = st.binary(max_size=20)
_ALTERED = {Failure.NOT_OURS, Failure.UNKNOWN_KEY}


def failure_of(kind: Kind, token: str, *, sealer: Sealer = SEALER, binding: bytes = b"", now: int = 0) -> str:
    with pytest.raises(SealBroken) as broken:
        sealer.open(kind, token, binding=binding, now=now)
    return broken.value.reason


def flip_every_bit(kind: Kind, payload: bytes) -> None:
    prefix, _, text = SEALER.seal(kind, payload).partition(".")
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for bit in range(len(raw) * 8):
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        token = base64.urlsafe_b64encode(flipped).rstrip(b"=").decode()
        assert failure_of(kind, f"{prefix}.{token}") in _ALTERED


@given(KINDS, PAYLOAD, BINDING)
def test_what_was_sealed_opens_again(kind: Kind, payload: bytes, binding: bytes):
    token = SEALER.seal(kind, payload, binding=binding)
    assert SEALER.open(kind, token, binding=binding) == payload


@given(KINDS, PAYLOAD, BINDING)
def test_a_token_is_safe_in_addresses_and_text(kind: Kind, payload: bytes, binding: bytes):
    token = SEALER.seal(kind, payload, binding=binding)
    assert token.isascii()
    assert not set(token) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


@given(KINDS, PAYLOAD, BINDING)
def test_the_same_position_gives_the_same_token(kind: Kind, payload: bytes, binding: bytes):
    assert SEALER.seal(kind, payload, binding=binding) == SEALER.seal(kind, payload, binding=binding)


@given(st.binary(min_size=8, max_size=60))
def test_a_token_shows_nothing_of_its_payload(payload: bytes):
    token = SEALER.seal(Kind.PAGE, payload).partition(".")[2]
    assert payload not in base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


@settings(max_examples=10)
@given(KINDS, PAYLOAD)
def test_every_flipped_bit_is_refused(kind: Kind, payload: bytes):
    flip_every_bit(kind, payload)


@pytest.mark.soak
@settings(max_examples=2_000, deadline=None)
@given(KINDS, PAYLOAD)
def test_every_flipped_bit_is_refused_at_length(kind: Kind, payload: bytes):
    flip_every_bit(kind, payload)


@given(KINDS, PAYLOAD, st.data())
def test_every_changed_character_is_refused(kind: Kind, payload: bytes, data: st.DataObject):
    token = SEALER.seal(kind, payload)
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda character: character != token[place]))
    failure_of(kind, token[:place] + other + token[place + 1 :])


@given(KINDS, PAYLOAD, st.data())
def test_every_shortened_or_lengthened_token_is_refused(kind: Kind, payload: bytes, data: st.DataObject):
    token = SEALER.seal(kind, payload)
    failure_of(kind, token[: data.draw(st.integers(0, len(token) - 1))])
    failure_of(kind, token + data.draw(st.text("Aa0_-=.", min_size=1, max_size=4)))


@given(KINDS, KINDS, PAYLOAD)
def test_kinds_are_never_interchangeable(made: Kind, asked: Kind, payload: bytes):
    if made is asked:
        return
    token = SEALER.seal(made, payload)
    assert failure_of(asked, token) == Failure.WRONG_KIND
    disguised = asked.value + token[len(made.value) :]
    assert failure_of(asked, disguised) in _ALTERED


@given(KINDS, PAYLOAD, BINDING, BINDING)
def test_bindings_are_never_interchangeable(kind: Kind, payload: bytes, made: bytes, asked: bytes):
    if made != asked:
        token = SEALER.seal(kind, payload, binding=made)
        assert failure_of(kind, token, binding=asked) == Failure.NOT_OURS


@given(KINDS, PAYLOAD, BINDING)
@pytest.mark.hostile("T2")
def test_a_rotation_keeps_tokens_good_and_the_next_one_ends_them(kind: Kind, payload: bytes, binding: bytes):
    ring = KeyRing(OLD)
    token = RingSealer(ring).seal(kind, payload, binding=binding)
    rotated = ring.rotated(NEW)
    assert RingSealer(rotated).open(kind, token, binding=binding) == payload
    ended = failure_of(kind, token, sealer=RingSealer(rotated.rotated(OTHER)), binding=binding)
    # A bookmark does not name its key.
    assert ended == (Failure.NOT_OURS if kind is Kind.BOOKMARK else Failure.UNKNOWN_KEY)


def test_a_rotated_ring_seals_with_the_fresh_key():
    token = RingSealer(KeyRing(OLD).rotated(NEW)).seal(Kind.PAGE, b"x")
    assert RingSealer(KeyRing(NEW)).open(Kind.PAGE, token) == b"x"


def test_a_token_from_another_home_is_refused():
    token = RingSealer(KeyRing(OTHER)).seal(Kind.PAGE, b"x")
    assert failure_of(Kind.PAGE, token) == Failure.UNKNOWN_KEY


@given(st.integers(1, 2**40), st.integers(0, 2**40))
def test_a_token_is_good_until_its_time_and_not_after(expires_at: int, now: int):
    token = SEALER.seal(Kind.SEARCH, b"x", expires_at=expires_at)
    if now < expires_at:
        assert SEALER.open(Kind.SEARCH, token, now=now) == b"x"
    else:
        assert failure_of(Kind.SEARCH, token, now=now) == Failure.EXPIRED


def test_a_token_of_another_version_says_so():
    token = SEALER.seal(Kind.PAGE, b"x")
    assert failure_of(Kind.PAGE, token.replace("pg1.", "pg2.", 1)) == Failure.UNSUPPORTED_VERSION


@given(st.text(max_size=60))
def test_text_that_is_no_token_is_malformed_and_nothing_worse(text: str):
    failure_of(Kind.PAGE, text)
    failure_of(Kind.PAGE, f"pg1.{text}")


def test_a_key_never_shows_itself():
    assert NEW.secret.hex() not in repr(KeyRing(NEW, OLD))
    assert repr(NEW.secret) not in repr(KeyRing(NEW, OLD))
    assert str(SealKey(NEW.secret)) == f"SealKey(id={NEW.id.hex()})"


def test_a_key_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="64"):
        SealKey(b"short")
