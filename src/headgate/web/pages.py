"""What needs no token: pages for a person, the OpenAPI document, the icon, discovery, health; and metrics for the owner."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import msgspec

from headgate.errors import StorageFull, StorageReadOnly
from headgate.model.query import DEFAULT_PAGE, MAX_PAGE
from headgate.web.api.openapi import openapi_document
from headgate.web.replies import HTML, NO_STORE, PLAIN_JSON, Header, HttpReply, WebRequest, json_reply

_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#: A page runs nothing, loads nothing, sends nothing and is shown inside no other page.
PAGE_HEADERS: tuple[Header, ...] = (
    HTML,
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
)


@cache
def template(name: str) -> Template:
    """Read a page of ``templates/``; what changes is filled in where ``$name`` stands."""
    return Template(files("headgate.web").joinpath("templates", name).read_text(encoding="utf-8"))


async def front_page(request: WebRequest) -> HttpReply:
    """Show a person who opens the address what runs here."""
    page = template("front.html").substitute(version=escape(request.services.version))
    return HttpReply(page.encode(), headers=PAGE_HEADERS)


async def docs(_request: WebRequest) -> HttpReply:
    """Show a person where the REST interface is described."""
    return HttpReply(template("docs.html").substitute().encode(), headers=PAGE_HEADERS)


async def openapi(_request: WebRequest) -> HttpReply:
    """Answer with the OpenAPI document."""
    return HttpReply(_openapi_json(), headers=((b"content-type", b"application/json"),))


@cache
def _openapi_json() -> bytes:
    return msgspec.json.encode(openapi_document())


async def icon(_request: WebRequest) -> HttpReply:
    """Answer with the server's icon."""
    headers = ((b"content-type", b"image/svg+xml"), (b"cache-control", b"public, max-age=86400"))
    return HttpReply(template("icon.svg").template.encode(), headers=headers)


_HEADERS = (PLAIN_JSON, NO_STORE)
#: What the store says by itself, and takes back at once: a loop notices later.
_OF_THE_STORE = frozenset({StorageFull.code, StorageReadOnly.code})
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


async def healthz(request: WebRequest) -> HttpReply:
    """Answer that the process serves requests."""
    return json_reply({"status": "ok", "version": request.services.version}, headers=_HEADERS)


async def readyz(request: WebRequest) -> HttpReply:
    """Answer whether the store can be read and written, and which background loops of this process fail."""
    reads = request.services.reads
    await reads.catalog()
    answer: dict[str, Any] = {"status": "ready" if reads.store.is_writable else "degraded"}
    troubles = request.services.supervisor.troubles()
    failing = {(trouble.loop, trouble.code) for trouble in troubles if trouble.code not in _OF_THE_STORE}
    if failing:
        listed = [{"loop": loop, "code": code} for loop, code in sorted(failing)]
        answer = {"status": "degraded", "troubles": listed}
    return json_reply(answer, headers=_HEADERS)


async def metrics(request: WebRequest) -> HttpReply:
    """Write the counters in the format of Prometheus."""
    return HttpReply(request.services.metrics.text().encode(), headers=(_TEXT, NO_STORE))


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
    "hybrid_retrieval": _retrieval("/v1/search/hybrid", count_supported=False, stability="experimental"),
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
