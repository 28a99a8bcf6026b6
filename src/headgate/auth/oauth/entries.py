"""What the authorization server stores between two requests. Secrets are stored as digests, by which they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

import msgspec

from headgate.auth.oauth.clients import OAuthClient
from headgate.model.grant import TokenKind
from headgate.model.ids import GrantId, PackageId
from headgate.store.ledger.oauth import OAuthRows, OAuthStore


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """An authorization request that waits for the owner's decision; found by the digest of its id."""

    digest: bytes
    client: OAuthClient
    #: The digest of the owner's session that opened it; no other one may decide.
    session: bytes
    redirect_uri: str
    scope: str
    #: The parameters of the request as they were sent; empty if a device waits instead of a browser.
    pairs: tuple[tuple[str, str], ...] = ()
    #: The JSON of ``authorization_details``; empty if the owner is to pick.
    details: str = ""
    #: The digest of the device's code.
    device: bytes | None = None
    is_decided: bool = False

    def needs_proof(self, *, is_fresh: bool, may_call: bool) -> bool:
        """Return whether the owner must first show again who decides.

        That is for a client that was never approved, and for one that could call remote tools under the new grant.
        """
        return (may_call or not self.client.is_approved) and not is_fresh


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

    def check_client(self, client: OAuthClient) -> bool:
        """Return whether a client holds them; Authlib calls it before it revokes."""
        return self.client_id == client.id


@dataclass(frozen=True, slots=True)
class _Secret:
    """What a client shows to get tokens; the methods are those that Authlib calls."""

    client_id: str
    scope: str
    expires_at: int

    def get_client_id(self) -> str:
        """Return the client that it was given to."""
        return self.client_id

    def check_client(self, client: OAuthClient) -> bool:
        """Return whether it was given to a client."""
        return self.client_id == client.id

    def get_scope(self) -> str:
        """Return the scope that was asked for or approved."""
        return self.scope


@dataclass(frozen=True, slots=True)
class AuthorizationCode(_Secret):
    code_challenge_method: ClassVar[str] = "S256"
    family: str
    redirect_uri: str
    code_challenge: str
    is_used: bool = False

    def get_redirect_uri(self) -> str:
        """Return the address that the code was sent to."""
        return self.redirect_uri


@dataclass(frozen=True, slots=True)
class RefreshToken(_Secret):
    digest: bytes
    family: str
    #: When it was first exchanged, and how often since.
    rotated_at: int | None = None
    siblings: int = 0


@dataclass(frozen=True, slots=True)
class DeviceCode(_Secret):
    """A device that waits; found by the digest of its code."""

    digest: bytes
    details: str
    user_code: str
    polled_at: int = 0
    #: The tokens' family once the owner approved; empty if the owner denied.
    family: str | None = None

    def get_user_code(self) -> str:
        """Return what the owner types."""
        return self.user_code

    def is_expired(self) -> bool:
        """Leave it to the query: it has the clock."""
        return False


#: The names of the kinds in the store.
KINDS: dict[type, str] = {
    OAuthClient: "client",
    PendingRequest: "request",
    TokenFamily: "family",
    AuthorizationCode: "code",
    RefreshToken: "refresh",
    DeviceCode: "device",
}
_E = TypeVar("_E")


def find(rows: OAuthRows, kind: type[_E], key: bytes | str) -> _E | None:
    """Read an entry inside a transaction."""
    return _entry(kind, rows.get(KINDS[kind], _key(key)))


def find_all(rows: OAuthRows, kind: type[_E]) -> list[_E]:
    """Read every entry of a kind inside a transaction."""
    return [msgspec.json.decode(document, type=kind) for document in rows.all(KINDS[kind])]


async def look_up(store: OAuthStore, kind: type[_E], key: bytes | str) -> _E | None:
    return _entry(kind, await store.get(KINDS[kind], _key(key)))


def put(rows: OAuthRows, key: bytes | str, entry: object, *, expires_at: int | None) -> None:
    """Write an entry; it may be removed after its end."""
    rows.put(KINDS[type(entry)], _key(key), msgspec.json.encode(entry), expires_at=expires_at)


def drop(rows: OAuthRows, kind: type, key: bytes | str) -> None:
    rows.remove(KINDS[kind], _key(key))


def _entry(kind: type[_E], document: bytes | None) -> _E | None:
    return None if document is None else msgspec.json.decode(document, type=kind)


def _key(key: bytes | str) -> bytes:
    return key.encode() if isinstance(key, str) else key
