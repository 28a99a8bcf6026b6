"""Tokens: 256 random bits that mean nothing by themselves. Only their SHA-256 is kept."""

from __future__ import annotations

import base64
import hashlib
import secrets

TOKEN_BYTES = 32
#: Lets a person and a secret scanner know one when they see it; says nothing about its kind.
PREFIX = "hg_"


def mint() -> str:
    """Make a new token."""
    return PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(TOKEN_BYTES)).rstrip(b"=").decode("ascii")


def digest_of(token: str) -> bytes:
    """Return what a token is looked up by."""
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
