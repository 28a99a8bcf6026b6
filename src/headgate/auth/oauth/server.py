"""Authlib's authorization server over the rows of one write transaction, and what Authlib leaves to its users.

An instance serves one request. Since the whole of it runs inside the writer's transaction, a code or a refresh token
cannot change between the check and the use: of parallel requests one is first, and the others see what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import AuthorizationServer, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import InvalidGrantError, InvalidRequestError, UnauthorizedClientError, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant, ExpiredTokenError

from headgate.auth.documents import authorization_detail
from headgate.auth.keys import digest_of, mint
from headgate.auth.oauth import entries
from headgate.auth.oauth.clients import AUTH_METHODS, DEVICE, OAuthClient
from headgate.auth.oauth.entries import AuthorizationCode, DeviceCode, RefreshToken, TokenFamily
from headgate.auth.oauth.rules import DETAILS, FormRequest, Pairs, RequestRules, check_resource
from headgate.model.grant import GrantState, TokenKind
from headgate.model.ids import ClientId, SubjectId
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.ledger.oauth import OAuthRows

SECOND_US = 1_000_000
#: How long the owner may take to decide.
REQUEST_SECONDS = 10 * 60
_CODE_US = 60 * SECOND_US
#: A refresh token that is not used for so long ends.
_IDLE_US = 30 * DAY_US
_POLL_SECONDS = 5
_ACCESS_SECONDS = 3600
#: With strict rotation a lost answer ends the session, so that clients should have to refresh rarely.
_STRICT_ACCESS_SECONDS = 12 * 3600
#: As many exchanges of one refresh token as parallel sessions of a client may need within the window.
_MOST_SIBLINGS = 64
_UNAUTHORIZED = 401
_METHODS = list(AUTH_METHODS)


@dataclass(frozen=True, slots=True)
class OAuthPlace:
    """By which address the server was called: its name as an issuer, and the spellings of its resource."""

    issuer: str
    origins: frozenset[str]

    @property
    def resources(self) -> frozenset[str]:
        """Every spelling of the one resource: clients differ in the path and the slash at its end."""
        return frozenset(
            f"{origin}{path}" for origin in self.origins for path in ("", "/", "/mcp", "/mcp/", "/v1")
        )


@dataclass(frozen=True, slots=True)
class OAuthReply:
    """What is sent back: a status, a JSON document or nothing, and headers."""

    status: int
    body: Any
    headers: tuple[tuple[str, str], ...]


class TokenServer(AuthorizationServer):
    """Answers one request."""

    def __init__(self, rows: OAuthRows, place: OAuthPlace, *, now: int, window_us: int) -> None:
        super().__init__()
        self.rows = rows
        self.place = place
        self.now = now
        #: How long after its first use a refresh token may be used again; 0 is never.
        self.window_us = window_us
        #: The client of an authorization request, which may not be stored yet.
        self._client: OAuthClient | None = None
        #: Refuses a precise request for something that is not there.
        self.check_details: Callable[[str], object] = str
        #: A family that was revoked because a refresh token was used again too late.
        self.reused: TokenFamily | None = None
        self.register_token_generator("default", cast("Any", self._mint))
        self.register_grant(_CodeGrant, [RequestRules(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_DeviceGrant)
        for endpoint in (_Revocation, _DeviceEndpoint):
            cast("Any", self).register_endpoint(endpoint)

    def consent_grant(self, pairs: Pairs, client: OAuthClient) -> Any:
        """Check an authorization request; the result holds its redirect address."""
        self._client = client
        return cast("Any", self).get_consent_grant(FormRequest("GET", pairs))

    def decided(self, pairs: Pairs, client: OAuthClient, family: TokenFamily | None) -> str:
        """Return where the browser goes after the owner's decision: with a code, or with a refusal."""
        grant = self.consent_grant(pairs, client)
        return self.location(cast("Any", self).create_authorization_response(grant.request, family, grant))

    def location(self, reply: OAuthReply) -> str:
        """Add the issuer to a redirect: it tells a client of several servers which one answered (RFC 9207)."""
        return add_params_to_uri(dict(reply.headers)["Location"], [("iss", self.place.issuer)])

    def query_client(self, client_id: str) -> Any:
        """Find a client: the one that was looked up for an authorization request, or a stored one."""
        if self._client is not None and self._client.id == client_id:
            return self._client
        return entries.find(self.rows, OAuthClient, client_id)

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        return request

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Do nothing: Authlib's hook for signals is not used."""

    def handle_response(self, status: int, body: Any, headers: Any) -> Any:
        """Make the reply."""
        return OAuthReply(status, body, tuple(headers))

    def handle_error_response(self, request: Any, error: OAuth2Error) -> Any:
        """Make the reply of a refusal; an unknown client is answered with 401, so that it registers again."""
        if error.error == "invalid_client":
            error.status_code = _UNAUTHORIZED
        return super().handle_error_response(request, error)

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        """Store the tokens that were made for a code, a refresh token or a device."""
        family: TokenFamily = request.user
        self._store_access(token, family)
        if "refresh_token" in token:
            digest = digest_of(token["refresh_token"])
            ends_at = min(self.now + _IDLE_US, family.ends_at)
            stored = RefreshToken(family.client_id, family.scope, ends_at, digest, family.id)
            entries.put(self.rows, digest, stored, expires_at=ends_at)
        self.rows.consume(family.grant_ids if family.is_single_use else (), self.now)
        token |= _rights(family, self.rows.grants(family.grant_ids))

    def _store_access(self, token: Mapping[str, Any], family: TokenFamily) -> None:
        self.rows.put_token(
            IssuedToken(
                digest=digest_of(token["access_token"]),
                kind=family.kind,
                subject_id=SubjectId("owner"),
                issued_at=self.now,
                client_id=ClientId(family.client_id),
                grant_id=None if family.kind is TokenKind.MCP_PACKAGE else family.grant_ids[0],
                package_id=family.package_id,
                expires_at=self.now + token["expires_in"] * SECOND_US,
            ),
            family.id,
        )

    def family(self, family_id: str) -> TokenFamily | None:
        """Find a family whose approval still holds."""
        family = entries.find(self.rows, TokenFamily, family_id)
        if family is None or family.is_revoked:
            return None
        states = {grant.state(self.now) for grant in self.rows.grants(family.grant_ids)}
        readable = {GrantState.ACTIVE, GrantState.CONSUMED} if family.is_single_use else {GrantState.ACTIVE}
        return family if states & readable else None

    def revoke(self, family_id: str) -> TokenFamily | None:
        """End a family: its tokens, and the grants that only they could use."""
        family = entries.find(self.rows, TokenFamily, family_id)
        if family is not None:
            entries.put(self.rows, family_id, replace(family, is_revoked=True), expires_at=family.ends_at)
            self.rows.revoke_family(family_id, self.now)
            self.rows.revoke_grants(family.grant_ids, self.now)
        return family

    def _mint(
        self, *, scope: str, user: TokenFamily, include_refresh_token: bool, **_more: object
    ) -> dict[str, Any]:
        seconds = _ACCESS_SECONDS if self.window_us else _STRICT_ACCESS_SECONDS
        token = {"access_token": mint(), "token_type": "Bearer", "expires_in": seconds, "scope": scope}
        if include_refresh_token and not user.is_single_use:
            token["refresh_token"] = mint()
        return token


class _OwnGrant:
    """What the grants have in common."""

    TOKEN_ENDPOINT_AUTH_METHODS = _METHODS
    server: TokenServer
    request: Any


class _CodeGrant(_OwnGrant, grants.AuthorizationCodeGrant):
    """Codes: used up by the first request that shows one, whatever comes of that request."""

    @classmethod
    def check_authorization_endpoint(cls, request: OAuth2Request) -> bool:
        del request
        return True

    @staticmethod
    def validate_authorization_redirect_uri(request: OAuth2Request, client: Any) -> str:
        uri = cast("Any", request).payload.redirect_uri or client.get_default_redirect_uri()
        if not client.check_redirect_uri(uri):
            # Authlib's text would quote the address, and fails on characters that an error must not hold.
            raise InvalidRequestError("The redirect_uri is not one of this client.")
        return uri

    def generate_authorization_code(self) -> str:
        return mint()

    def save_authorization_code(self, code: str, request: Any) -> None:
        now, challenge = self.server.now, request.form["code_challenge"]
        stored = AuthorizationCode(
            request.client.id, request.scope, now + _CODE_US, request.user.id, self.redirect_uri, challenge
        )
        entries.put(self.server.rows, digest_of(code), stored, expires_at=now + DAY_US)

    def query_authorization_code(self, code: str, client: Any) -> Any:
        check_resource(self.request, self.server)
        digest, rows = digest_of(code), self.server.rows
        stored = entries.find(rows, AuthorizationCode, digest)
        if stored is None:
            return None
        if stored.is_used:
            self.server.revoke(stored.family)
            return None
        entries.put(rows, digest, replace(stored, is_used=True), expires_at=stored.expires_at + DAY_US)
        return stored if stored.check_client(client) and self.server.now < stored.expires_at else None

    def authenticate_user(self, authorization_code: Any) -> Any:
        return self.server.family(authorization_code.family)

    def delete_authorization_code(self, authorization_code: Any) -> None:
        """Keep it, marked as used: a second use revokes what the first one produced."""


class _RefreshGrant(_OwnGrant, grants.RefreshTokenGrant):
    """Refresh tokens: exchanged for a new one at every use; again within the window, or the family ends."""

    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Any:
        check_resource(self.request, self.server)
        stored = entries.find(self.server.rows, RefreshToken, digest_of(refresh_token))
        if stored is None or self.server.now >= stored.expires_at:
            return None
        if not stored.check_client(self.request.client) or self.server.family(stored.family) is None:
            return None
        if stored.rotated_at is not None and not self._may_repeat(stored.rotated_at, stored.siblings):
            self.server.reused = self.server.revoke(stored.family)
            return None
        return stored

    def _may_repeat(self, rotated_at: int, siblings: int) -> bool:
        return self.server.now - rotated_at < self.server.window_us and siblings < _MOST_SIBLINGS

    def authenticate_user(self, refresh_token: Any) -> Any:
        return self.server.family(refresh_token.family)

    def revoke_old_credential(self, refresh_token: Any) -> None:
        old: RefreshToken = refresh_token
        used = replace(old, rotated_at=old.rotated_at or self.server.now, siblings=old.siblings + 1)
        entries.put(self.server.rows, used.digest, used, expires_at=used.expires_at)


class _DeviceEndpoint(DeviceAuthorizationEndpoint):
    """Gives a device that has no browser its codes (RFC 8628)."""

    CLIENT_AUTH_METHODS = _METHODS
    EXPIRES_IN = REQUEST_SECONDS
    INTERVAL = _POLL_SECONDS
    server: TokenServer

    def authenticate_client(self, request: Any) -> OAuthClient:
        self._request = request
        client = cast("Any", super()).authenticate_client(request)
        if not client.check_grant_type(DEVICE):
            raise UnauthorizedClientError("The client did not register the device code grant.")
        check_resource(request, self.server)
        return client

    def generate_device_code(self) -> str:
        return mint()

    def get_verification_uri(self) -> str:
        return f"{self.server.place.issuer}/oauth/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: Mapping[str, Any]) -> None:
        rows, expires_at = self.server.rows, self.server.now + REQUEST_SECONDS * SECOND_US
        digest = digest_of(data["device_code"])
        allowed = self._request.client.get_allowed_scope(scope)
        details = self._request.form.get(DETAILS, "")
        device = DeviceCode(client_id, allowed, expires_at, digest, details, data["user_code"])
        entries.put(rows, digest, device, expires_at=expires_at)


class _DeviceGrant(_OwnGrant, DeviceCodeGrant):
    """Exchanges the code of a device once the owner has decided."""

    def query_device_credential(self, device_code: str) -> Any:
        device = entries.find(self.server.rows, DeviceCode, digest_of(device_code))
        if device is None:
            raise InvalidGrantError("The device_code is not known.")
        if self.server.now >= device.expires_at:
            raise ExpiredTokenError
        return device

    def query_user_grant(self, user_code: str) -> Any:
        del user_code
        device: DeviceCode = self.query_device_credential(self.request.form["device_code"])
        if device.family is None:
            return None
        entries.drop(self.server.rows, DeviceCode, device.digest)
        family = self.server.family(device.family)
        return family, family is not None

    def should_slow_down(self, credential: Any) -> bool:
        noted = replace(credential, polled_at=self.server.now)
        entries.put(self.server.rows, noted.digest, noted, expires_at=noted.expires_at)
        return self.server.now - credential.polled_at < _POLL_SECONDS * SECOND_US


class _Revocation(RevocationEndpoint):
    """Revocation by a client (RFC 7009): of a refresh token or an access token, and of all of its family."""

    CLIENT_AUTH_METHODS = _METHODS
    server: Any

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        del token_type_hint
        rows, digest = self.server.rows, digest_of(token_string)
        refresh = entries.find(rows, RefreshToken, digest)
        family = rows.family_of(digest) if refresh is None else refresh.family
        return None if family is None else entries.find(rows, TokenFamily, family)

    def revoke_token(self, token: Any, request: Any) -> None:
        del request
        self.server.revoke(token.id)


def _rights(family: TokenFamily, granted: Sequence[IssuedGrant]) -> dict[str, Any]:
    """Name what was granted, as PDPP asks, and the granted details for RAR requests (RFC 9396)."""
    single, package = {"grant_id": family.grant_ids[0]}, {"grant_package_id": family.package_id}
    details = {DETAILS: [authorization_detail(issued.grant) for issued in granted]}
    return (package if family.package_id else single) | (details if family.has_details else {})
