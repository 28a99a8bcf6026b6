"""The discovery document of the REST interface: what a client reads before it has a token."""

from __future__ import annotations

from typing import Any

from headgate.model.query import DEFAULT_PAGE, MAX_PAGE
from headgate.web.addresses import WebRequest
from headgate.web.replies import NO_STORE, PLAIN_JSON, HttpReply, json_reply

_HEADERS = (PLAIN_JSON, NO_STORE)


def _retrieval(endpoint: str, **more: Any) -> dict[str, Any]:
    return {
        "supported": True,
        "endpoint": endpoint,
        "cross_stream": True,
        "snippets": True,
        "default_limit": DEFAULT_PAGE,
        "max_limit": MAX_PAGE,
        "cursor_supported": True,
        **more,
    }


_BY_MEANING = {
    "semantic_retrieval": _retrieval(
        "/v1/search/semantic",
        count_supported=False,
        stability="experimental",
        query_input="text",
        distance_metric="cosine",
        lexical_blending=False,
    ),
    "hybrid_retrieval": _retrieval("/v1/search/find", count_supported=False, stability="experimental"),
}


async def resource_metadata(request: WebRequest) -> HttpReply:
    """Answer with the metadata of the REST resource."""
    services, origin = request.services, request.context.origin
    document = protected_resource(
        origin,
        services.public_url or origin,
        strict_core=services.reads.rules.strict_core,
        has_meaning=services.reads.rules.has_meaning,
    )
    return json_reply(document, headers=_HEADERS)


def protected_resource(
    origin: str, authorization_server: str, *, strict_core: bool, has_meaning: bool = False
) -> dict[str, Any]:
    """Describe the resource server (RFC 9728)."""
    return {
        "resource": origin,
        "resource_name": "Headgate Resource Server",
        "authorization_servers": [authorization_server],
        "bearer_methods_supported": ["header"],
        "pdpp_core_query_base": f"{origin}/v1",
        "pdpp_self_export_supported": True,
        "pdpp_token_kinds_supported": ["owner", "client"],
        "pdpp_discovery_hints": {
            "schema_endpoint": "/v1/schema",
            "query_base": "/v1",
            "connectors_endpoint": "/v1/connectors",
            "streams_endpoint_template": "/v1/streams/{stream}",
            "aggregate": {"endpoint_template": "/v1/streams/{stream}/aggregate"},
            "changes_since_bootstrap": "beginning",
            "blob_indirection": "data.blob_ref.fetch_url",
            "search": {
                "endpoint": "/v1/search",
                "scope_param": "streams[]",
                "filter_requires_single_stream": True,
            },
        },
        "capabilities": {
            "lexical_retrieval": _retrieval("/v1/search", count_supported=True),
            **(_BY_MEANING if has_meaning else {}),
            "client_filters": {"supported": not strict_core},
        },
    }
