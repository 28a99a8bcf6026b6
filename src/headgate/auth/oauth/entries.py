"""What the authorization server stores between two requests. Secrets are stored as digests, by which they are found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from headgate.auth.oauth.clients import OAuthClient
from headgate.model.grant import TokenKind
from headgate.model.ids import GrantId, PackageId
from headgate.store.oauth import OAuthRows, OAuthStore


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """An authorization request that waits for the owner's decision; found by the digest of its id."""

    client: OAuthClient
    #: The digest of the owner's session that opened it; no other one may decide.
    session: bytes
    redirect_uri: str
    scope: str
    challenge: str = ""
    state: str | None = None
    issuer: str = ""
    #: The JSON of ``authorization_details``; empty if the owner is to pick.
    details: str = ""
    #: The digest of the device's code, if a device waits instead of a browser.
    device: bytes | None = None
    is_decided: bool = False


@dataclass(frozen=True, slots=True)
class TokenFamily:
    """All tokens of one approval; found by its id."""

    id: str
    client_id: str
    kind: TokenKind
    grant_ids: tuple[GrantId, ...]
    package_id: PackageId | None
    scope: str
    is_single_use: bool
    has_details: bool
    #: When the last of its refresh tokens ends, in microseconds since 1970.
    ends_at: int
    is_revoked: bool = False


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """A code; the methods and the two properties are those that Authlib reads."""

    family: str
    client_id: str
    redirect_uri: str
    scope: str
    code_challenge: str
    expires_at: int
    is_used: bool = False

    @property
    def code_challenge_method(self) -> str:
        """There is one."""
        return "S256"

    def get_redirect_uri(self) -> str:
        """Give the address that the code was sent to."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Give the scope that was approved."""
        return self.scope


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """A refresh token; the methods are those that Authlib calls."""

    digest: bytes
    family: str
    client_id: str
    scope: str
    expires_at: int
    #: When it was first exchanged, and how often since.
    rotated_at: int | None = None
    siblings: int = 0

    def check_client(self, client: OAuthClient) -> bool:
        """Say whether a client holds it."""
        return self.client_id == client.id

    def get_scope(self) -> str:
        """Give the scope that was approved."""
        return self.scope


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A device that waits; found by the digest of its code. The methods are those that Authlib calls."""

    digest: bytes
    client_id: str
    scope: str
    details: str
    user_code: str
    expires_at: int
    polled_at: int = 0
    #: The tokens' family once the owner approved; empty if the owner denied.
    family: str | None = None

    def get_client_id(self) -> str:
        """Give the client that the device runs."""
        return self.client_id

    def get_user_code(self) -> str:
        """Give what the owner types."""
        return self.user_code

    def get_scope(self) -> str:
        """Give the scope that was asked for."""
        return self.scope

    def is_expired(self) -> bool:
        """Leave it to the query: it has the clock."""
        return False


@dataclass(frozen=True, slots=True)
class UserCode:
    """Leads from what the owner types to the device."""

    device: bytes


_KINDS: dict[type, str] = {
    OAuthClient: "client",
    PendingRequest: "request",
    TokenFamily: "family",
    AuthorizationCode: "code",
    RefreshToken: "refresh",
    DeviceCode: "device",
    UserCode: "user_code",
}
_E = TypeVar(
    "_E", OAuthClient, PendingRequest, TokenFamily, AuthorizationCode, RefreshToken, DeviceCode, UserCode
)


def find(rows: OAuthRows | OAuthStore, kind: type[_E], key: bytes | str) -> _E | None:
    """Read an entry."""
    found = rows.get(_KINDS[kind], _key(key))
    return None if found is None else msgspec.json.decode(found, type=kind)


def find_all(rows: OAuthRows | OAuthStore, kind: type[_E]) -> list[_E]:
    """Read every entry of a kind."""
    return [msgspec.json.decode(one, type=kind) for one in rows.all(_KINDS[kind])]


def client_names(rows: OAuthRows | OAuthStore) -> dict[str, str]:
    """Return the names that approved clients claim, by their ids; of two with one name each has the end of its id."""
    approved = {one.id: one.name for one in find_all(rows, OAuthClient) if one.is_approved}
    # No client can pass for the owner, whose entries stand beside its own.
    often = Counter([*approved.values(), "You"])
    return {id_: name if often[name] == 1 else f"{name} ({id_[-4:]})" for id_, name in approved.items()}


def put(rows: OAuthRows, key: bytes | str, entry: _E, *, expires_at: int | None) -> None:
    """Write an entry; it may be removed after its end."""
    rows.put(_KINDS[type(entry)], _key(key), msgspec.json.encode(entry), expires_at=expires_at)


def drop(rows: OAuthRows, kind: type[_E], key: bytes | str) -> None:
    """Remove an entry."""
    rows.remove(_KINDS[kind], _key(key))


def _key(key: bytes | str) -> bytes:
    return key.encode() if isinstance(key, str) else key
