"""The front page and the icon, and the headers that every page has."""

from __future__ import annotations

from html import escape

from headgate.web.addresses import WebRequest
from headgate.web.replies import HTML, Header, HttpReply
from headgate.web.templates import template

_POLICY = b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
#: A page runs nothing, loads nothing, sends nothing and is shown inside no other page.
PAGE_HEADERS: tuple[Header, ...] = (
    HTML,
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
)
_ICON = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><rect width="48" height="48" rx="9" fill="#1b5e6b"/>'
    b'<path d="M10 9h4v30h-4zM34 9h4v30h-4zM14 13h20v13H14z" fill="#fff"/>'
    b'<path d="M14 32q5-4 10 0t10 0v7H14z" fill="#9fd3dc"/></svg>'
)


async def front_page(request: WebRequest) -> HttpReply:
    """Show a person who opens the address what runs here."""
    page = template("front.html").substitute(version=escape(request.services.version))
    return HttpReply(page.encode(), headers=PAGE_HEADERS)


async def icon(_request: WebRequest) -> HttpReply:
    """Answer with the server's icon."""
    headers = ((b"content-type", b"image/svg+xml"), (b"cache-control", b"public, max-age=86400"))
    return HttpReply(_ICON, headers=headers)
