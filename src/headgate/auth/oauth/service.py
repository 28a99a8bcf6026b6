"""The authorization server, as its addresses use it: each method is one request, decided in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from authlib.consts import default_json_headers
from authlib.oauth2 import OAuth2Error

from headgate.auth.documents import DETAIL_TYPE
from headgate.auth.gateway import bind_grants
from headgate.auth.grants import Conditions, granted_terms
from headgate.auth.keys import digest_of, fresh_id, mint
from headgate.auth.limits import RegistrationLimits
from headgate.auth.oauth import entries
from headgate.auth.oauth.client_documents import ClientDocuments
from headgate.auth.oauth.clients import (
    AUTH_METHODS,
    GRANT_TYPES,
    SCOPES,
    ClientOrigin,
    OAuthClient,
    from_registration,
)
from headgate.auth.oauth.entries import DeviceCode, PendingRequest, TokenFamily
from headgate.auth.oauth.rules import DETAILS, Pairs, posted
from headgate.auth.oauth.server import REQUEST_SECONDS, SECOND_US, OAuthPlace, OAuthReply, TokenServer
from headgate.errors import NotFound, RateLimited
from headgate.model.grant import AccessMode
from headgate.model.instants import DAY_US
from headgate.policy.resolve import Terms
from headgate.store.ledger.oauth import OAuthRows, OAuthStore

_FAMILY_US = 365 * DAY_US
#: A client that registered itself and was never approved is removed after this.
_UNUSED_CLIENT_US = 3600 * SECOND_US
_MOST_CLIENTS = 500
_SELF = ClientOrigin.REGISTERED
_NO_STORE = tuple(default_json_headers)


@dataclass(frozen=True, slots=True)
class Refused:
    """An authorization request that cannot be shown to the owner: where the browser goes, if the client is trusted."""

    description: str
    location: str | None


@dataclass(frozen=True, slots=True)
class AuthorizationService:
    """One home's authorization server."""

    store: OAuthStore
    #: Gives the latest time that was seen: what has ended stays ended when the clock goes back.
    now: Callable[[], int]
    #: Gives the latest time that is certain: what has ended by it is removed.
    certain: Callable[[], int]
    documents: ClientDocuments
    reuse_window_seconds: int
    #: Is called when a refresh token is used again after its window, which looks like a theft.
    on_reuse: Callable[[TokenFamily], None]
    limits: RegistrationLimits = field(default_factory=RegistrationLimits)

    # Clients

    async def client(self, client_id: str, *, may_fetch: bool) -> OAuthClient | None:
        """Find a client; a document is fetched only for a signed-in owner, so that no one else makes us call out."""
        known = await entries.look_up(self.store, OAuthClient, client_id)
        if may_fetch and (fetched := await self.documents.client(client_id)) is not None:
            return replace(fetched, is_approved=known is not None)
        return known

    async def register(self, document: Mapping[str, Any], address: str) -> OAuthReply:
        """Register a client that names itself (RFC 7591)."""
        await self.limits.check(address)
        try:
            client, secret = from_registration(document, now=self.now())
        except OAuth2Error as error:
            return OAuthReply(error.status_code, dict(error.get_body()), _NO_STORE)
        client = await self.store.change(lambda rows: self._put_client(rows, client))
        return OAuthReply(201, _registered(client, secret), _NO_STORE)

    def _put_client(self, rows: OAuthRows, client: OAuthClient) -> OAuthClient:
        rows.remove_ended(self.certain())
        known = entries.find_all(rows, OAuthClient)
        unused = [other for other in known if not other.is_approved]
        same = next((other for other in unused if _identity(other) == _identity(client)), None)
        if same is not None:
            # Some clients register at every connection; they get the same id. One that was approved is not given
            # away: any program could register under its name, and be taken for it.
            return same
        if len(known) >= _MOST_CLIENTS:
            # After them those whose approvals have all ended: a program that registers anew leaves one each time.
            families = entries.find_all(rows, TokenFamily)
            living = {family.client_id for family in families if not family.is_revoked}
            unused = unused or [other for other in known if other.id not in living and other.origin is _SELF]
            if not unused:
                raise RateLimited(data={"retry_after_seconds": 60})
            entries.drop(rows, OAuthClient, min(unused, key=lambda other: other.made_at).id)
        entries.put(rows, client.id, client, expires_at=client.made_at + _UNUSED_CLIENT_US)
        return client

    # Requests that wait for the owner

    async def begin(
        self,
        pairs: Pairs,
        client: OAuthClient,
        place: OAuthPlace,
        *,
        session: bytes | None,
        check_details: Callable[[str], object],
    ) -> str | Refused | None:
        """Check an authorization request; with a session, store it and give its id; without one give None."""

        def work(rows: OAuthRows) -> str | Refused | None:
            server = self._server(rows, place)
            server.check_details = check_details
            try:
                grant = server.consent_grant(pairs, client)
            except OAuth2Error as error:
                reply = server.handle_error_response(None, error)
                location = server.location(reply) if error.redirect_uri else None
                return Refused(error.get_error_description(), location)
            if session is None:
                return None
            request_id, request = mint(), grant.request
            wanted = grant.redirect_uri, request.scope, tuple(pairs), request.form.get(DETAILS, "")
            self._put_pending(rows, PendingRequest(digest_of(request_id), client, session, *wanted))
            return request_id

        return await self.store.decide(work)

    async def begin_device(self, user_code: str, session: bytes) -> str | None:
        """Find the device that shows a code to the owner; gives the id of its request."""

        def work(rows: OAuthRows) -> str | None:
            request_id, waiting = mint(), filter(self._is_waiting, entries.find_all(rows, DeviceCode))
            device = next((candidate for candidate in waiting if candidate.user_code == user_code), None)
            client = None if device is None else entries.find(rows, OAuthClient, device.client_id)
            if device is None or client is None:
                return None
            wanted = "", device.scope, (), device.details, device.digest
            self._put_pending(rows, PendingRequest(digest_of(request_id), client, session, *wanted))
            return request_id

        return await self.store.change(work)

    def _put_pending(self, rows: OAuthRows, pending: PendingRequest) -> None:
        rows.remove_ended(self.certain())
        ends_at = self.now() + REQUEST_SECONDS * SECOND_US
        entries.put(rows, pending.digest, pending, expires_at=ends_at)

    async def pending(self, request_id: str, session: bytes) -> PendingRequest:
        return _undecided(await entries.look_up(self.store, PendingRequest, digest_of(request_id)), session)

    async def approve(
        self, request: PendingRequest, place: OAuthPlace, terms: Sequence[Terms], conditions: Conditions
    ) -> str:
        """Grant what the owner approved; gives where the browser goes, or nothing for a device."""
        now = self.now()

        def work(rows: OAuthRows) -> str:
            pending = _again(rows, request)
            issued, kind, package_id = granted_terms(terms, conditions, now)
            family = TokenFamily(
                id=fresh_id("fam"),
                client_id=pending.client.id,
                kind=kind,
                grant_ids=tuple(grant.grant.id for grant in issued),
                package_id=package_id,
                scope=pending.scope,
                is_single_use=conditions.access_mode is AccessMode.SINGLE_USE,
                has_details=bool(pending.details),
                ends_at=min(now + _FAMILY_US, issued[0].grant.expires_at or now + _FAMILY_US),
            )
            rows.put_grants(issued)
            bind_grants(rows, pending.client.id, family.grant_ids)
            entries.put(rows, family.id, family, expires_at=family.ends_at)
            entries.put(rows, pending.client.id, replace(pending.client, is_approved=True), expires_at=None)
            return self._decided(rows, pending, place, family)

        return await self.store.change(work)

    async def deny(self, request: PendingRequest, place: OAuthPlace) -> str:
        """Refuse a request; gives where the browser goes, or nothing for a device."""
        return await self.store.change(lambda rows: self._decided(rows, _again(rows, request), place, None))

    def _decided(
        self, rows: OAuthRows, pending: PendingRequest, place: OAuthPlace, family: TokenFamily | None
    ) -> str:
        self._put_pending(rows, replace(pending, is_decided=True))
        if pending.device is None:
            return self._server(rows, place).decided(pending.pairs, pending.client, family)
        device = entries.find(rows, DeviceCode, pending.device)
        # Another page may have decided for the device, and each decision would leave a grant.
        if device is None or not self._is_waiting(device):
            raise _is_over()
        noted = replace(device, family="" if family is None else family.id)
        entries.put(rows, device.digest, noted, expires_at=device.expires_at)
        return ""

    def _is_waiting(self, device: DeviceCode) -> bool:
        return device.family is None and self.now() < device.expires_at

    # Tokens

    async def answer(
        self, endpoint: str, pairs: Pairs, authorization: str | None, place: OAuthPlace, address: str
    ) -> OAuthReply:
        """Answer what a client sent to ``token``, ``revocation`` or ``device_authorization``.

        Raises:
            RateLimited: too many devices asked lately, or the address asks too often.
        """
        self.limits.check_request(address)
        if endpoint == "device_authorization":
            await self.limits.check(address)

        def work(rows: OAuthRows) -> tuple[OAuthReply, TokenFamily | None]:
            server: Any = self._server(rows, place)
            try:
                request = posted(pairs, authorization)
            except OAuth2Error as error:
                return server.handle_error_response(None, error), None
            if endpoint == "token":
                return server.create_token_response(request), server.reused
            return server.create_endpoint_response(endpoint, request), None

        reply, reused = await self.store.decide(work)
        if reused is not None:
            self.on_reuse(reused)
        return reply

    def _server(self, rows: OAuthRows, place: OAuthPlace) -> TokenServer:
        return TokenServer(rows, place, now=self.now(), window_us=self.reuse_window_seconds * SECOND_US)


def _again(rows: OAuthRows, request: PendingRequest) -> PendingRequest:
    return _undecided(entries.find(rows, PendingRequest, request.digest), request.session)


def _undecided(pending: PendingRequest | None, session: bytes) -> PendingRequest:
    if pending is None or pending.is_decided or pending.session != session:
        raise _is_over()
    return pending


def _is_over() -> NotFound:
    return NotFound("This request is over.", hint="Start again in the program that asks for access.")


def _identity(client: OAuthClient) -> tuple[object, ...]:
    """What two registrations of one program have in common; one with a secret is never another's."""
    described = client.origin, client.name, client.software_id, client.grant_types, client.secret
    return *described, frozenset(client.redirect_uris)


def _registered(client: OAuthClient, secret: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "client_id": client.id,
        "client_id_issued_at": client.made_at // SECOND_US,
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(client.grant_types),
        "response_types": ["code"],
        "token_endpoint_auth_method": "none" if secret is None else "client_secret_basic",
    }
    return document if secret is None else document | {"client_secret": secret, "client_secret_expires_at": 0}


def server_metadata(issuer: str, *, takes_documents: bool = True) -> dict[str, Any]:
    """Describe the authorization server; the issuer is compared byte for byte, so it stands everywhere as it is."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "introspection_endpoint": f"{issuer}/introspect",
        "device_authorization_endpoint": f"{issuer}/oauth/device_authorization",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        # Clients take a document as their id only where both this list has none and the flag below is set.
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic"],
        "code_challenge_methods_supported": ["S256"],
        # Some clients ask for everything that is listed here.
        "scopes_supported": list(SCOPES),
        "client_id_metadata_document_supported": takes_documents,
        "authorization_response_iss_parameter_supported": True,
        "authorization_details_types_supported": [DETAIL_TYPE],
    }
