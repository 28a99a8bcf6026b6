"""The authorization server, as its addresses use it: each method is one request, decided in one transaction."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, cast

from authlib.common.urls import add_params_to_uri
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidRequestError
from authlib.oauth2.rfc8628.endpoint import create_string_user_code  # pyright: ignore[reportUnknownVariableType]

from headgate.auth.grants import Conditions, granted_terms
from headgate.auth.latest_time import LatestTime
from headgate.auth.limits import TokenBuckets
from headgate.auth.oauth import entries
from headgate.auth.oauth.client_documents import ClientDocuments
from headgate.auth.oauth.clients import (
    AUTH_METHODS,
    DEVICE,
    NONE,
    SECRET_METHODS,
    ClientOrigin,
    OAuthClient,
    from_registration,
)
from headgate.auth.oauth.entries import AuthorizationCode, DeviceCode, PendingRequest, TokenFamily, UserCode
from headgate.auth.oauth.rules import FormRequest, check_resource
from headgate.auth.oauth.server import POLL_SECONDS, SECOND_US, OAuthReply, TokenRules, TokenServer
from headgate.auth.tokens import digest_of, fresh_id, mint
from headgate.errors import HeadgateError, InvalidClientMetadata, NotFound, RateLimited
from headgate.model.grant import AccessMode
from headgate.model.instants import DAY_US
from headgate.policy.resolve import Terms
from headgate.store.oauth import OAuthRows, OAuthStore

Pairs = Sequence[tuple[str, str]]
#: How long the owner may take to decide.
REQUEST_US = 10 * 60 * SECOND_US
_CODE_US = 60 * SECOND_US
_FAMILY_US = 365 * DAY_US
#: A client that registered itself and was never approved is removed after this.
_UNUSED_CLIENT_US = 3600 * SECOND_US
_MOST_CLIENTS = 500
_ACCESS_SECONDS = 3600
#: With strict rotation a lost answer ends the session, so that clients should have to refresh rarely.
_STRICT_ACCESS_SECONDS = 12 * 3600
_NO_STORE = (("Cache-Control", "no-store"), ("Pragma", "no-cache"))
_WAIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class OAuthPlace:
    """By which address the server was called: its name as an issuer, and the spellings of its resource."""

    issuer: str
    origins: frozenset[str]

    @property
    def resources(self) -> frozenset[str]:
        """Every spelling of the one resource: clients differ in the path and the slash at its end."""
        return frozenset(f"{one}{path}" for one in self.origins for path in ("", "/", "/mcp", "/mcp/", "/v1"))


@dataclass(frozen=True, slots=True)
class Refused:
    """An authorization request that cannot be shown to the owner: where the browser goes, if the client is trusted."""

    error: str
    description: str
    location: str | None


class AuthorizationService:
    """One home's authorization server."""

    def __init__(
        self,
        store: OAuthStore,
        *,
        clock: Callable[[], int],
        latest: LatestTime,
        documents: ClientDocuments,
        reuse_window_seconds: int,
        on_reuse: Callable[[TokenFamily], None],
        ticks: Callable[[], float] = monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._latest = latest
        self._documents = documents
        self._window_us = reuse_window_seconds * SECOND_US
        #: Is called when a refresh token is used again after its window, which looks like a theft.
        self._on_reuse = on_reuse
        self._by_address = TokenBuckets(16 / 60, 16, ticks)
        self._overall = TokenBuckets(120 / 600, 120, ticks)

    # Clients

    async def client(self, client_id: str, *, may_fetch: bool) -> OAuthClient | None:
        """Find a client; a document is fetched only for a signed-in owner, so that no one else makes us call out."""
        known = entries.find(self._store, OAuthClient, client_id)
        if may_fetch and (fetched := await self._documents.client(client_id)) is not None:
            return replace(fetched, is_approved=known is not None)
        return known

    def clients(self) -> list[OAuthClient]:
        """List the clients that are known."""
        return entries.find_all(self._store, OAuthClient)

    async def register(self, document: Mapping[str, Any], address: str) -> OAuthReply:
        """Register a client that names itself (RFC 7591).

        Raises:
            RateLimited: too many registered lately.
        """
        self._limit(address)
        try:
            client, secret = from_registration(document, now=self._now())
        except OAuth2Error as error:
            return _refusal(error)
        client = await self._store.change(lambda rows: self._put_client(rows, client))
        return OAuthReply(201, _registered(client, secret), _NO_STORE)

    def _limit(self, address: str) -> None:
        if not self._by_address.take(address.encode()) or not self._overall.take(b""):
            raise RateLimited(data={"retry_after_seconds": _WAIT_SECONDS})

    def _put_client(self, rows: OAuthRows, client: OAuthClient) -> OAuthClient:
        rows.remove_ended(self._now())
        known = entries.find_all(rows, OAuthClient)
        same = next((one for one in known if _is_same(one, client)), None)
        if same is not None:
            # Some clients register at every connection; they get the same id.
            return same
        if len(known) >= _MOST_CLIENTS:
            unused = [one for one in known if not one.is_approved]
            if not unused:
                raise RateLimited(data={"retry_after_seconds": _WAIT_SECONDS})
            entries.drop(rows, OAuthClient, min(unused, key=lambda one: one.made_at).id)
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
            server = TokenServer(rows, self._rules(place), client)
            request = FormRequest("GET", pairs)
            try:
                grant = server.consent_grant(request)
                _check_details(request, grant.redirect_uri, check_details)
            except OAuth2Error as error:
                return _refused(error, place.issuer)
            if session is None:
                return None
            data = request.payload.data
            pending = PendingRequest(
                client=client,
                session=session,
                redirect_uri=grant.redirect_uri,
                scope=client.get_allowed_scope(data.get("scope")),
                challenge=data["code_challenge"],
                state=data.get("state"),
                issuer=place.issuer,
                details=data.get("authorization_details", ""),
            )
            return self._put_request(rows, pending)

        return await self._store.change(work)

    async def begin_device(self, user_code: str, session: bytes, place: OAuthPlace) -> str | None:
        """Find the device that shows a code to the owner; gives the id of its request."""

        def work(rows: OAuthRows) -> str | None:
            lead = entries.find(rows, UserCode, user_code.strip().upper())
            device = None if lead is None else entries.find(rows, DeviceCode, lead.device)
            if device is None or device.family is not None or self._now() >= device.expires_at:
                return None
            client = entries.find(rows, OAuthClient, device.client_id)
            if client is None:
                return None
            pending = PendingRequest(
                client, session, "", device.scope, details=device.details, device=device.digest,
                issuer=place.issuer,
            )  # fmt: skip
            return self._put_request(rows, pending)

        return await self._store.change(work)

    def _put_request(self, rows: OAuthRows, pending: PendingRequest) -> str:
        rows.remove_ended(self._now())
        request_id = mint()
        entries.put(rows, digest_of(request_id), pending, expires_at=self._now() + REQUEST_US)
        return request_id

    def pending(self, request_id: str, session: bytes) -> PendingRequest:
        """Find a request that this session may decide.

        Raises:
            NotFound: there is none, or it is another session's, or is decided.
        """
        return _undecided(self._store, request_id, session)

    async def approve(
        self, request_id: str, session: bytes, terms: Sequence[Terms], conditions: Conditions
    ) -> str:
        """Grant what the owner approved; gives where the browser goes, or nothing for a device.

        Raises:
            NotFound: the request is decided already.
        """
        now = self._now()

        def work(rows: OAuthRows) -> str:
            pending = _undecided(rows, request_id, session)
            issued, kind, package_id = granted_terms(terms, conditions, now)
            family = TokenFamily(
                id=fresh_id("fam"),
                client_id=pending.client.id,
                kind=kind,
                grant_ids=tuple(one.grant.id for one in issued),
                package_id=package_id,
                scope=pending.scope,
                is_single_use=conditions.access_mode is AccessMode.SINGLE_USE,
                has_details=bool(pending.details),
                ends_at=min(now + _FAMILY_US, issued[0].grant.expires_at or now + _FAMILY_US),
            )
            rows.put_grants(issued)
            entries.put(rows, family.id, family, expires_at=family.ends_at)
            entries.put(rows, pending.client.id, replace(pending.client, is_approved=True), expires_at=None)
            return self._decided(rows, request_id, pending, family)

        return await self._store.change(work)

    async def deny(self, request_id: str, session: bytes) -> str:
        """Refuse a request; gives where the browser goes, or nothing for a device."""
        return await self._store.change(
            lambda rows: self._decided(rows, request_id, _undecided(rows, request_id, session), None)
        )

    def _decided(
        self, rows: OAuthRows, request_id: str, pending: PendingRequest, family: TokenFamily | None
    ) -> str:
        now = self._now()
        entries.put(
            rows, digest_of(request_id), replace(pending, is_decided=True), expires_at=now + REQUEST_US
        )
        if pending.device is not None:
            device = entries.find(rows, DeviceCode, pending.device)
            if device is not None:
                noted = replace(device, family="" if family is None else family.id)
                entries.put(rows, device.digest, noted, expires_at=device.expires_at)
            return ""
        if family is None:
            return _location(pending, [("error", "access_denied")])
        code = mint()
        stored = AuthorizationCode(
            family.id,
            pending.client.id,
            pending.redirect_uri,
            pending.scope,
            pending.challenge,
            now + _CODE_US,
        )
        entries.put(rows, digest_of(code), stored, expires_at=now + DAY_US)
        return _location(pending, [("code", code)])

    # Tokens

    async def token(self, pairs: Pairs, authorization: str | None, place: OAuthPlace) -> OAuthReply:
        """Answer at the token endpoint."""
        return await self._served(pairs, authorization, place, TokenServer.token_reply)

    async def revoke(self, pairs: Pairs, authorization: str | None, place: OAuthPlace) -> OAuthReply:
        """Revoke a token for its client (RFC 7009)."""
        return await self._served(pairs, authorization, place, TokenServer.revocation_reply)

    async def device(
        self, pairs: Pairs, authorization: str | None, place: OAuthPlace, address: str
    ) -> OAuthReply:
        """Give a device its codes (RFC 8628).

        Raises:
            RateLimited: too many were given lately.
        """
        self._limit(address)
        return await self._served(
            pairs, authorization, place, lambda server, request: self._put_device(server, request, place)
        )

    def _put_device(self, server: TokenServer, request: FormRequest, place: OAuthPlace) -> OAuthReply:
        client: OAuthClient = cast("Any", server).authenticate_client(request, AUTH_METHODS)
        if not client.check_grant_type(DEVICE):
            raise InvalidRequestError("The client did not register the device code grant.")
        check_resource(request.payload, place.resources)
        data, expires_at = request.payload.data, self._now() + REQUEST_US
        code, user_code = mint(), cast("str", create_string_user_code())
        device = DeviceCode(
            digest_of(code), client.id, client.get_allowed_scope(data.get("scope")),
            data.get("authorization_details", ""), user_code, expires_at,
        )  # fmt: skip
        server.rows.remove_ended(self._now())
        entries.put(server.rows, device.digest, device, expires_at=expires_at)
        entries.put(server.rows, user_code, UserCode(device.digest), expires_at=expires_at)
        page = f"{place.issuer}/oauth/device"
        body = {
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={user_code}",
            "expires_in": REQUEST_US // SECOND_US,
            "interval": POLL_SECONDS,
        }
        return OAuthReply(200, body, ())

    async def _served(
        self,
        pairs: Pairs,
        authorization: str | None,
        place: OAuthPlace,
        answer: Callable[[TokenServer, FormRequest], OAuthReply],
    ) -> OAuthReply:
        def work(rows: OAuthRows) -> tuple[OAuthReply, TokenFamily | None]:
            server = TokenServer(rows, self._rules(place))
            try:
                request = _form_request(pairs, authorization)
                reply = answer(server, request)
            except OAuth2Error as error:
                reply = cast("OAuthReply", server.handle_error_response(None, error))
            return reply, server.reused

        reply, reused = await self._store.change(work)
        if reused is not None:
            self._on_reuse(reused)
        return OAuthReply(reply.status, reply.body, (*reply.headers, *_NO_STORE))

    def _rules(self, place: OAuthPlace) -> TokenRules:
        seconds = _ACCESS_SECONDS if self._window_us else _STRICT_ACCESS_SECONDS
        return TokenRules(self._now(), place.resources, self._window_us, seconds)

    def _now(self) -> int:
        return self._latest.raise_to(self._clock())


async def add_owner_client(
    store: OAuthStore, name: str, redirect_uris: Sequence[str], *, now: int, has_secret: bool
) -> tuple[OAuthClient, str | None]:
    """Register a client by the owner's word; gives its secret if it has one.

    Raises:
        InvalidClientMetadata: an address is not one that an authorization may be sent to.
    """
    method = SECRET_METHODS[0] if has_secret else NONE
    document = {"client_name": name, "redirect_uris": [*redirect_uris], "token_endpoint_auth_method": method}
    try:
        made, secret = from_registration(document, now=now)
    except OAuth2Error as error:
        raise InvalidClientMetadata(error.get_error_description()) from None
    client = replace(made, origin=ClientOrigin.OWNER, is_approved=True)
    await store.change(lambda rows: entries.put(rows, client.id, client, expires_at=None))
    return client, secret


def _undecided(rows: OAuthRows | OAuthStore, request_id: str, session: bytes) -> PendingRequest:
    found = entries.find(rows, PendingRequest, digest_of(request_id))
    if found is None or found.is_decided or found.session != session:
        raise NotFound("This request is over.", hint="Start again in the program that asks for access.")
    return found


def _check_details(request: FormRequest, redirect_uri: str, check: Callable[[str], object]) -> None:
    data = request.payload.data
    if not data.get("authorization_details"):
        return
    try:
        check(data["authorization_details"])
    except HeadgateError:
        raise OAuth2Error(
            description="The authorization_details ask for something that is not here.",
            state=data.get("state"),
            redirect_uri=redirect_uri,
            error="invalid_authorization_details",
        ) from None


def _form_request(pairs: Pairs, authorization: str | None) -> FormRequest:
    request = FormRequest("POST", pairs, {} if authorization is None else {"Authorization": authorization})
    request.payload.refuse_repeated()
    if authorization is not None:
        _check_basic(authorization)
        if request.payload.data.get("client_secret"):
            raise InvalidRequestError("The client authenticates in two ways.")
    return request


def _check_basic(authorization: str) -> None:
    """Refuse a header that Authlib would fail on."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidClientError(description="The Authorization header cannot be read.") from None
    if scheme.lower() != "basic":
        raise InvalidClientError(description="The Authorization header must be Basic.")


def _refused(error: OAuth2Error, issuer: str) -> Refused:
    description = error.get_error_description()
    if not error.redirect_uri:
        return Refused(error.error or "", description, None)
    pairs: list[Any] = [*error.get_body(), ("iss", issuer)]
    return Refused(error.error or "", description, add_params_to_uri(error.redirect_uri, pairs))


def _location(pending: PendingRequest, pairs: list[tuple[str, str]]) -> str:
    state = [] if pending.state is None else [("state", pending.state)]
    # The issuer tells a client that talks to several servers which one answered (RFC 9207).
    return add_params_to_uri(pending.redirect_uri, [*pairs, *state, ("iss", pending.issuer)])


def _refusal(error: OAuth2Error) -> OAuthReply:
    return OAuthReply(error.status_code, dict(error.get_body()), _NO_STORE)


def _is_same(known: OAuthClient, client: OAuthClient) -> bool:
    return (
        known.secret is None is client.secret
        and (known.name, known.software_id, known.grant_types)
        == (client.name, client.software_id, client.grant_types)
        and set(known.redirect_uris) == set(client.redirect_uris)
    )


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
