"""What pages of other origins may do from a browser (CORS).

Documents that everyone may read are open to every page. Addresses that take a token or a client's proof are open to the
pages that the owner lists in ``allowed_origins``, such as an agent that runs in a browser. The owner's pages are open to
none. Credentials are never allowed: no page of another origin is answered by the owner's cookies.
"""

from __future__ import annotations

from enum import StrEnum

from headgate.errors import PermissionRefused
from headgate.web.context import RequestContext
from headgate.web.replies import NO_CONTENT, Header, HttpReply

_ORIGIN = b"origin"
_ASKED_METHOD = b"access-control-request-method"
_HEADERS = (
    b"accept, authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-method, mcp-name, "
    b"mcp-protocol-version, mcp-session-id, pdpp-version, range, request-id"
)
#: What a script may read of a response, beside what every script may.
_READABLE: Header = (
    b"access-control-expose-headers",
    b"content-range, etag, mcp-session-id, pdpp-version, request-id, retry-after, www-authenticate",
)
_VARY: Header = (b"vary", b"origin")
_MAX_AGE: Header = (b"access-control-max-age", b"600")


class Sharing(StrEnum):
    """Which pages of other origins may call an address, and read its answers."""

    #: None: what is shown there is the owner's.
    NO_PAGE = "no page"
    #: Those that the owner lists.
    LISTED = "listed"
    #: All: it is public, and the same for everyone.
    EVERY_PAGE = "every page"


def asked_method(method: str, context: RequestContext) -> str | None:
    """Give the method that a browser asks about before it sends a page's request; None if it asks nothing."""
    sent = context.headers.values
    is_question = method == "OPTIONS" and _ORIGIN in sent and _ASKED_METHOD in sent
    return sent[_ASKED_METHOD].decode("latin-1") if is_question else None


def sharing_headers(context: RequestContext, sharing: Sharing) -> tuple[Header, ...]:
    """Write the headers that let a page of another origin read an answer; its origin was judged before."""
    origin = context.headers.values.get(_ORIGIN)
    if sharing is Sharing.EVERY_PAGE:
        return (b"access-control-allow-origin", b"*"), _READABLE
    is_other = origin is not None and origin.decode("latin-1") != context.origin
    if sharing is Sharing.NO_PAGE or origin is None or not is_other:
        return ()
    return (b"access-control-allow-origin", origin), _VARY, _READABLE


def permission(method: str, sharing: Sharing) -> HttpReply:
    """Answer a browser's question: the page may send such a request, with these headers.

    Raises:
        PermissionRefused: it may not.
    """
    if sharing is Sharing.NO_PAGE:
        raise PermissionRefused("Pages of other origins may not call this address.")
    allowed = (
        (b"access-control-allow-methods", method.encode()),
        (b"access-control-allow-headers", _HEADERS),
    )
    return HttpReply(status=NO_CONTENT, headers=(*allowed, _MAX_AGE))
