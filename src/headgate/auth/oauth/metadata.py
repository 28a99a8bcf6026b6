"""The metadata of the authorization server (RFC 8414): exactly what answers."""

from __future__ import annotations

from typing import Any

from headgate.auth.documents import DETAIL_TYPE
from headgate.auth.oauth.clients import AUTH_METHODS, GRANT_TYPES, SCOPES


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
