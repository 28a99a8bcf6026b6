"""Authlib's authorization server over the rows of one write transaction, and what Authlib leaves to its users.

An instance serves one request. Since the whole of it runs inside the writer's transaction, a code or a refresh token
cannot change between the check and the use: of parallel requests one is first, and the others see what it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from authlib.oauth2 import AuthorizationServer, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import InvalidGrantError, grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc8628 import DeviceCodeGrant, ExpiredTokenError

from headgate.auth.documents import authorization_detail
from headgate.auth.oauth import entries
from headgate.auth.oauth.clients import AUTH_METHODS, OAuthClient
from headgate.auth.oauth.entries import AuthorizationCode, DeviceCode, RefreshToken, TokenFamily
from headgate.auth.oauth.rules import FormRequest, RequestRules, check_resource, default_redirect
from headgate.auth.tokens import digest_of, mint
from headgate.model.grant import GrantState, TokenKind
from headgate.model.ids import ClientId, SubjectId
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant, IssuedToken
from headgate.store.oauth import OAuthRows

SECOND_US = 1_000_000
#: A refresh token that is not used for so long ends.
IDLE_US = 30 * DAY_US
POLL_SECONDS = 5
#: As many exchanges of one refresh token as parallel sessions of a client may need within the window.
_MOST_SIBLINGS = 64
_UNAUTHORIZED = 401
METHODS = list(AUTH_METHODS)


@dataclass(frozen=True, slots=True)
class TokenRules:
    """How long tokens last, and for which resource they are."""

    now: int
    #: Every accepted spelling of the resource.
    resources: frozenset[str]
    #: How long after its first use a refresh token may be used again; 0 is never.
    reuse_window_us: int
    access_seconds: int


@dataclass(frozen=True, slots=True)
class OAuthReply:
    """What is sent back: a status, a JSON document or nothing, and headers."""

    status: int
    body: Any
    headers: tuple[tuple[str, str], ...]


class TokenServer(AuthorizationServer):
    """Answers one request."""

    def __init__(self, rows: OAuthRows, rules: TokenRules, client: OAuthClient | None = None) -> None:
        super().__init__()
        self.rows = rows
        self.rules = rules
        #: The client of an authorization request, which may not be stored yet.
        self._client = client
        #: A family that was revoked because a refresh token was used again too late.
        self.reused: TokenFamily | None = None
        self.register_token_generator("default", cast("Any", self._mint))
        self.register_grant(_CodeGrant, [RequestRules(rules.resources)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_DeviceGrant)
        cast("Any", self).register_endpoint(_Revocation)

    def consent_grant(self, request: FormRequest) -> Any:
        """Check an authorization request; the result holds its redirect address."""
        return cast("Any", self).get_consent_grant(request)

    def token_reply(self, request: FormRequest) -> OAuthReply:
        """Answer at the token endpoint."""
        return cast("Any", self).create_token_response(request)

    def revocation_reply(self, request: FormRequest) -> OAuthReply:
        """Answer at the revocation endpoint."""
        return cast("Any", self).create_endpoint_response("revocation", request)

    def query_client(self, client_id: str) -> Any:
        """Find a client: the one that was looked up for an authorization request, or a stored one."""
        if self._client is not None and self._client.id == client_id:
            return self._client
        return entries.find(self.rows, OAuthClient, client_id)

    def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
        """Take the request as it is."""
        return request

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Tell no one: there is one listener for what happens here, the log of disclosures."""

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
        source = request.authorization_code or request.refresh_token or request.credential
        family = self.family(source.family)
        assert family is not None
        self._store_access(token, family)
        if "refresh_token" in token:
            self._store_refresh(token, family)
        self.rows.consume(family.grant_ids if family.is_single_use else (), self.rules.now)
        token |= _rights(family, self.rows.grants(family.grant_ids))

    def _store_access(self, token: Mapping[str, Any], family: TokenFamily) -> None:
        self.rows.put_token(
            IssuedToken(
                digest=digest_of(token["access_token"]),
                kind=family.kind,
                subject_id=SubjectId("owner"),
                issued_at=self.rules.now,
                client_id=ClientId(family.client_id),
                grant_id=None if family.kind is TokenKind.MCP_PACKAGE else family.grant_ids[0],
                package_id=family.package_id,
                expires_at=self.rules.now + token["expires_in"] * SECOND_US,
            ),
            family.id,
        )

    def _store_refresh(self, token: Mapping[str, Any], family: TokenFamily) -> None:
        digest = digest_of(token["refresh_token"])
        ends_at = min(self.rules.now + IDLE_US, family.ends_at)
        refresh = RefreshToken(digest, family.id, family.client_id, family.scope, ends_at)
        entries.put(self.rows, digest, refresh, expires_at=ends_at)

    def family(self, family_id: str) -> TokenFamily | None:
        """Find a family whose approval still holds."""
        found = entries.find(self.rows, TokenFamily, family_id)
        if found is None or found.is_revoked:
            return None
        states = [one.state(self.rules.now) for one in self.rows.grants(found.grant_ids)]
        readable = {GrantState.ACTIVE, GrantState.CONSUMED} if found.is_single_use else {GrantState.ACTIVE}
        return found if any(state in readable for state in states) else None

    def revoke(self, family_id: str) -> TokenFamily | None:
        """End a family: its tokens, and the grants that only they could use."""
        found = entries.find(self.rows, TokenFamily, family_id)
        if found is not None:
            entries.put(self.rows, family_id, replace(found, is_revoked=True), expires_at=found.ends_at)
            self.rows.revoke_family(family_id, self.rules.now)
            self.rows.revoke_grants(found.grant_ids, self.rules.now)
        return found

    def _mint(
        self, *, scope: str, user: TokenFamily, include_refresh_token: bool, **_more: object
    ) -> dict[str, Any]:
        token = {
            "access_token": mint(),
            "token_type": "Bearer",
            "expires_in": self.rules.access_seconds,
            "scope": scope,
        }
        if include_refresh_token and not user.is_single_use:
            token["refresh_token"] = mint()
        return token


class _CodeGrant(grants.AuthorizationCodeGrant):
    """Codes: used up by the first request that shows one, whatever comes of that request."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    server: TokenServer
    request: Any

    @classmethod
    def check_authorization_endpoint(cls, request: OAuth2Request) -> bool:
        del request
        return True

    @staticmethod
    def validate_authorization_redirect_uri(request: OAuth2Request, client: Any) -> str:
        return default_redirect(request, client)

    def query_authorization_code(self, code: str, client: Any) -> Any:
        check_resource(self.request.payload, self.server.rules.resources)
        digest, rows = digest_of(code), self.server.rows
        found = entries.find(rows, AuthorizationCode, digest)
        if found is None:
            return None
        if found.is_used:
            self.server.revoke(found.family)
            return None
        entries.put(rows, digest, replace(found, is_used=True), expires_at=found.expires_at + DAY_US)
        is_right = found.client_id == client.id and self.server.rules.now < found.expires_at
        return found if is_right else None

    def authenticate_user(self, authorization_code: Any) -> Any:
        return self.server.family(authorization_code.family)

    def delete_authorization_code(self, authorization_code: Any) -> None:
        """Keep it, marked as used: a second use revokes what the first one produced."""


class _RefreshGrant(grants.RefreshTokenGrant):
    """Refresh tokens: exchanged for a new one at every use; again within the window, or the family ends."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True
    server: TokenServer
    request: Any

    def authenticate_refresh_token(self, refresh_token: str) -> Any:
        check_resource(self.request.payload, self.server.rules.resources)
        found = entries.find(self.server.rows, RefreshToken, digest_of(refresh_token))
        if found is None or self.server.rules.now >= found.expires_at:
            return None
        if found.client_id != self.request.client.id or self.server.family(found.family) is None:
            return None
        if found.rotated_at is not None and not self._may_repeat(found):
            self.server.reused = self.server.revoke(found.family)
            return None
        return found

    def _may_repeat(self, found: RefreshToken) -> bool:
        assert found.rotated_at is not None
        since = self.server.rules.now - found.rotated_at
        return since < self.server.rules.reuse_window_us and found.siblings < _MOST_SIBLINGS

    def authenticate_user(self, refresh_token: Any) -> Any:
        return self.server.family(refresh_token.family)

    def revoke_old_credential(self, refresh_token: Any) -> None:
        old: RefreshToken = refresh_token
        used = replace(old, rotated_at=old.rotated_at or self.server.rules.now, siblings=old.siblings + 1)
        entries.put(self.server.rows, used.digest, used, expires_at=used.expires_at)


class _DeviceGrant(DeviceCodeGrant):
    """Devices that have no browser (RFC 8628)."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    server: TokenServer
    request: Any

    def query_device_credential(self, device_code: str) -> Any:
        found = entries.find(self.server.rows, DeviceCode, digest_of(device_code))
        if found is None:
            raise InvalidGrantError("The device_code is not known.")
        if self.server.rules.now >= found.expires_at:
            raise ExpiredTokenError
        return found

    def query_user_grant(self, user_code: str) -> Any:
        del user_code
        found = entries.find(self.server.rows, DeviceCode, digest_of(self.request.form["device_code"]))
        if found is None or found.family is None:
            return None
        entries.drop(self.server.rows, DeviceCode, found.digest)
        family = self.server.family(found.family)
        return family, family is not None

    def should_slow_down(self, credential: Any) -> bool:
        now = self.server.rules.now
        noted = replace(credential, polled_at=now)
        entries.put(self.server.rows, noted.digest, noted, expires_at=noted.expires_at)
        return now - credential.polled_at < POLL_SECONDS * SECOND_US


class _Revocation(RevocationEndpoint):
    """Revocation by a client (RFC 7009): of a refresh token or an access token, and of all of its family."""

    CLIENT_AUTH_METHODS = METHODS

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        del token_type_hint
        rows, digest = self._server.rows, digest_of(token_string)
        refresh = entries.find(rows, RefreshToken, digest)
        family = rows.family_of(digest) if refresh is None else refresh.family
        found = None if family is None else entries.find(rows, TokenFamily, family)
        return None if found is None else RefreshToken(digest, found.id, found.client_id, found.scope, 0)

    def revoke_token(self, token: Any, request: Any) -> None:
        del request
        self._server.revoke(token.family)

    @property
    def _server(self) -> TokenServer:
        server = self.server
        assert isinstance(server, TokenServer)
        return server


def _rights(family: TokenFamily, granted: Any) -> dict[str, Any]:
    """Name what was granted, as PDPP asks, and to those that asked precisely what exactly (RFC 9396)."""
    issued: list[IssuedGrant] = list(granted)
    rights: dict[str, Any] = (
        {"grant_id": family.grant_ids[0]}
        if family.package_id is None
        else {"grant_package_id": family.package_id}
    )
    if family.has_details:
        rights["authorization_details"] = [authorization_detail(one.grant) for one in issued]
    return rights
