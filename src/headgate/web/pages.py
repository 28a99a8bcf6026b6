"""The pages for a person who opens the address, the OpenAPI document, the icon, and the headers that pages have."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files
from string import Template

import msgspec

from headgate.web.addresses import WebRequest
from headgate.web.api.openapi import openapi_document
from headgate.web.replies import HTML, Header, HttpReply

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
