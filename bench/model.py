"""The values: what sealing a cursor and reading an id cost, against the bare cipher and a bare split."""

from __future__ import annotations

from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from bench.table import microseconds, print_ratios
from headgate.auth.keys import KEY_BYTES, KeyRing, RingSealer, SealKey
from headgate.model.ids import canonical_key, format_result_id, parse_result_id
from headgate.model.sealed import Kind

PAYLOAD = b"p" * 48
BINDING = b"b" * 32
RESULT_ID = "cin_0123456789abcdef01234567/messages:m_00001234"


def main() -> None:
    """Print both tables."""
    key = bytes(range(KEY_BYTES))
    cipher, sealer = AESSIV(key), RingSealer(KeyRing(SealKey(key)))
    token = sealer.seal(Kind.PAGE, PAYLOAD, binding=BINDING)
    print_ratios(
        "Sealed tokens (48-byte payload)",
        "bare AES-SIV encrypt",
        {
            "bare AES-SIV encrypt": microseconds(lambda: cipher.encrypt(PAYLOAD, [b"headgate pg1", BINDING])),
            "seal": microseconds(lambda: sealer.seal(Kind.PAGE, PAYLOAD, binding=BINDING)),
            "open": microseconds(lambda: sealer.open(Kind.PAGE, token, binding=BINDING)),
        },
    )
    ref = parse_result_id(RESULT_ID)
    print_ratios(
        "Ids",
        "bare str.partition, twice",
        {
            "bare str.partition, twice": microseconds(lambda: RESULT_ID.partition("/")[2].partition(":")),
            "parse a result id": microseconds(lambda: parse_result_id(RESULT_ID)),
            "write a result id": microseconds(lambda: format_result_id(ref)),
            "canonical key of two parts": microseconds(lambda: canonical_key(["user_123", "2026-04-01"])),
        },
    )
