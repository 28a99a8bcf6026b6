"""OAuth clients: what is believed of one, and how a registration or a metadata document becomes one."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749 import ClientMixin, OAuth2Error

from headgate.auth.keys import digest_of, fresh_id
from headgate.model.ids import is_plain

# Authlib has classes of these errors in a package that imports its JWT library, which is slow.
_bad_metadata = partial(OAuth2Error, error="invalid_client_metadata")
_bad_uri = partial(OAuth2Error, error="invalid_redirect_uri")
MAX_URIS, MAX_URI_CHARS = 10, 512
#: Private-use schemes can be claimed by any program of a device, so only these exact addresses are accepted.
PRIVATE_USE = frozenset({"cursor://anysphere.cursor-mcp/oauth/callback"})
#: A path or query of visible ASCII characters without ``#`` and without backslashes, which browsers read as slashes.
_REST = r'((?:[/?][!-"$-\[\]-~]*)?)'
#: A host name; its last label begins with a letter, so that no spelling of an IP address is one.
_HTTPS = re.compile(r"https://((?:[A-Za-z0-9-]+\.)*[A-Za-z][A-Za-z0-9-]*)(?::[0-9]{1,5})?" + _REST)
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?" + _REST)


def is_allowed_uri(uri: str) -> bool:
    """Return whether a client may register an address: https by name, http on loopback, or a listed private one."""
    return len(uri) <= MAX_URI_CHARS and (
        uri in PRIVATE_USE or bool(_HTTPS.fullmatch(uri)) or is_loopback(uri)
    )


def is_loopback(uri: str) -> bool:
    """Return whether an address is one of the owner's machine, where any program may listen."""
    return _LOOPBACK.fullmatch(uri) is not None


def is_same_uri(registered: str, requested: str) -> bool:
    """Compare byte for byte; only the port of a loopback address is free (RFC 8252, section 7.3)."""
    if registered == requested:
        return True
    ours, theirs = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(requested)
    return ours is not None and theirs is not None and ours.groups() == theirs.groups()


def host_of(uri: str) -> str:
    """Return the host that a person is shown; of a private-use address the whole of it."""
    match = _HTTPS.fullmatch(uri) or _LOOPBACK.fullmatch(uri)
    return uri if match is None else match[1]


READ_SCOPE = "records:read"
SCOPES = (READ_SCOPE, "offline_access")
CODE, REFRESH = "authorization_code", "refresh_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
GRANT_TYPES = (CODE, REFRESH, DEVICE)
NONE = "none"
SECRET_METHODS = ("client_secret_basic", "client_secret_post")
AUTH_METHODS = (NONE, *SECRET_METHODS)
_MAX_NAME_CHARS = 80
_MAX_DOCUMENT_URL_CHARS = 2000
#: A document's address: https, a host name, no port, no user, a path (section 3 of the Client ID Metadata Document draft).
_DOCUMENT_URL = re.compile(r"https://((?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]*)(/[!-\"$-\[\]-~]*)")
_DOT_SEGMENT = re.compile(r"/\.{1,2}(?:[/?]|$)")


class ClientOrigin(StrEnum):
    """How a client became known, which decides what of it is verified."""

    #: Its id is the address of a document, so that its host is verified.
    DOCUMENT = "document"
    #: It registered itself: nothing about it is verified.
    REGISTERED = "registered"
    #: The owner registered it.
    OWNER = "owner"


@dataclass(frozen=True, slots=True)
class OAuthClient(ClientMixin):
    """A client; the methods are those that Authlib calls."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    origin: ClientOrigin
    #: Microseconds since 1970.
    made_at: int
    grant_types: tuple[str, ...] = (CODE, REFRESH)
    #: SHA-256 of the secret; None for a public client.
    secret: bytes | None = None
    software_id: str = ""
    #: Whether an owner ever approved something for it: such a client is not removed to make room.
    is_approved: bool = False

    @property
    def verified_host(self) -> str | None:
        """The host that vouches for the client."""
        return urlsplit(self.id).hostname if self.origin is ClientOrigin.DOCUMENT else None

    def get_client_id(self) -> str:
        return self.id

    def get_default_redirect_uri(self) -> str:
        """Return the address of a client that has one."""
        return self.redirect_uris[0] if len(self.redirect_uris) == 1 else ""

    def get_allowed_scope(self, scope: Any) -> str:
        """Narrow a requested scope to what there is; an unknown one is ignored, as RFC 6749 allows."""
        requested = [name for name in SCOPES if name in (scope or "").split()]
        return " ".join(requested if READ_SCOPE in requested else (READ_SCOPE, *requested))

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Return whether the client may be answered at an address."""
        return is_allowed_uri(redirect_uri) and any(
            is_same_uri(uri, redirect_uri) for uri in self.redirect_uris
        )

    def check_client_secret(self, client_secret: str) -> bool:
        """Compare a secret with the stored digest."""
        return self.secret is not None and hmac.compare_digest(self.secret, digest_of(client_secret))

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Accept a secret in either place: clients do not always use the one they registered."""
        del endpoint
        return method == NONE if self.secret is None else method in SECRET_METHODS

    def check_response_type(self, response_type: str) -> bool:
        """Leave the check to the request's rules: Authlib would quote the caller's text in an error."""
        del response_type
        return True

    def check_grant_type(self, grant_type: str) -> bool:
        """Return whether the client registered a way to get tokens."""
        return grant_type in self.grant_types


def plain_name(text: Any, fallback: str) -> str:
    """Take out of a name whatever could change how the text around it is read, and cut it."""
    plain = "".join(" " if char.isspace() else char for char in str(text or "") if is_plain(char))
    return " ".join(plain.split())[:_MAX_NAME_CHARS].strip() or fallback


def from_registration(document: Mapping[str, Any], *, now: int) -> tuple[OAuthClient, str | None]:
    """Make a client of what it sent to register (RFC 7591), and its secret if it asked for one."""
    method = document.get("token_endpoint_auth_method", NONE)
    if method not in AUTH_METHODS:
        raise _bad_metadata("token_endpoint_auth_method must be one that the metadata lists.")
    secret = None if method == NONE else secrets.token_urlsafe(32)
    client = _claimed(document, fresh_id("cli"), ClientOrigin.REGISTERED, now)
    return replace(client, secret=None if secret is None else digest_of(secret)), secret


def is_document_url(client_id: str) -> bool:
    """Return whether a client's id can be the address of its metadata document."""
    match = _DOCUMENT_URL.fullmatch(client_id)
    if match is None or len(client_id) > _MAX_DOCUMENT_URL_CHARS:
        return False
    # Names below localhost mean this machine, whatever a resolver says.
    return not match[1].lower().endswith(".localhost") and not _DOT_SEGMENT.search(match[2])


def from_document(client_id: str, document: Mapping[str, Any], *, now: int) -> OAuthClient:
    """Make a client of the document at its id."""
    if document.get("client_id") != client_id:
        raise _bad_metadata("The document names another client_id.")
    if document.get("token_endpoint_auth_method", NONE) != NONE or "client_secret" in document:
        raise _bad_metadata("A client that is known by a document has no secret.")
    return _claimed(document, client_id, ClientOrigin.DOCUMENT, now)


def _claimed(document: Mapping[str, Any], client_id: str, origin: ClientOrigin, now: int) -> OAuthClient:
    return OAuthClient(
        id=client_id,
        name=plain_name(document.get("client_name"), "A client without a name"),
        redirect_uris=_redirect_uris(document),
        origin=origin,
        made_at=now,
        grant_types=_grant_types(document),
        software_id=plain_name(document.get("software_id"), ""),
    )


def _redirect_uris(document: Mapping[str, Any]) -> tuple[str, ...]:
    uris = _texts(document.get("redirect_uris"))
    # A client that only runs on devices has no address to be answered at.
    if len(uris) > MAX_URIS or (not uris and CODE in _grant_types(document)):
        raise _bad_uri(f"redirect_uris must hold 1 to {MAX_URIS} addresses.")
    if not all(map(is_allowed_uri, uris)):
        raise _bad_uri("A redirect URI must be https, or http on a loopback address.")
    return tuple(uris)


def _grant_types(document: Mapping[str, Any]) -> tuple[str, ...]:
    if document.get("grant_types") is None:
        return CODE, REFRESH
    # What is not offered is left out, and the answer says what remains (RFC 7591, section 3.2.1).
    offered = [grant_type for grant_type in GRANT_TYPES if grant_type in _texts(document["grant_types"])]
    if not {CODE, DEVICE} & set(offered):
        raise _bad_metadata("grant_types must hold authorization_code or the device code.")
    return tuple(offered)


def _texts(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in cast("list[Any]", value)):
        raise _bad_metadata("Lists must hold texts.")
    return cast("list[str]", value)
