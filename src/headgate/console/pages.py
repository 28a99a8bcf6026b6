"""What every page of the owner has: a session, a form that is checked, a frame, and headers.

A handler takes an `OwnerRequest` and returns a reply; `signed_in` makes it one of the table of addresses::

    async def show(request: OwnerRequest) -> HttpReply:
        return page("example.html", Frame("Example", request), View(title=..., rows=...))


    Address("GET", "/example", Callers.ANYONE, signed_in(sessions, show))

A template extends ``frame.html`` and finds what it shows as ``view``; a name that is not there is an error. Every form holds
``{{ form_key() }}``; a handler of POST calls ``await request.form()``, which refuses a form without it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs, quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.requests import cookie_parser

from headgate.auth.sessions import BrowserCookies, OwnerSession, OwnerSessions, SignedIn, check_form
from headgate.console import formatting, wording
from headgate.errors import HeadgateError, InvalidRequest, NotFound
from headgate.home import with_home
from headgate.web.replies import HTML, NO_STORE, Handler, Header, HttpReply, RequestContext, WebRequest

SIGN_IN = "/console/sign-in"
CONFIRM = "/console/confirm"
HOME = "/console"
_MAX_FORM_BYTES = 256 * 1024
_MAX_FORM_FIELDS = 5000
#: A number of so many digits fits wherever the store keeps one.
_MOST_DIGITS = 18
_SEE_OTHER = 303
#: What a page sends along when it asks by itself, without a person.
_POLL = b"headgate-poll"
_KNOWN_SECONDS = 365 * 24 * 3600
_LOOPBACK_NAMES = frozenset({"localhost"})
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_PAGE_HEADERS: tuple[Header, ...] = (
    HTML,
    NO_STORE,
    (b"x-frame-options", b"DENY"),
    # With "no-referrer" browsers send the origin of a form as null, and the front refuses that.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
#: For a page whose form ends in a redirect to another origin: browsers apply form-action to the whole chain.
OPEN_FORM_HEADERS: tuple[Header, ...] = (*_PAGE_HEADERS, (b"content-security-policy", _POLICY.encode()))
#: A page runs and loads only files of this server, sends forms only to it, and is shown inside no other page.
PAGE_HEADERS: tuple[Header, ...] = (
    *_PAGE_HEADERS,
    (b"content-security-policy", f"{_POLICY}; form-action 'self'".encode()),
)


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form that was sent; a name may occur several times."""

    fields: Mapping[str, list[str]]

    def get(self, name: str, default: str = "") -> str:
        """Return the last value of a name."""
        return self.fields.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        """Return every value of a name."""
        return self.fields.get(name, [])

    def number(self, name: str) -> int | None:
        """Return a number that a page of the console wrote; None for anything else."""
        text = self.get(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


@dataclass(frozen=True, slots=True)
class OwnerRequest:
    """A request of a browser in which the owner is signed in."""

    web: WebRequest
    session: OwnerSession
    query: Form

    @property
    def places(self) -> Mapping[str, str]:
        """The values at the places of the path."""
        return self.web.places

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks for a part of a page."""
        return self.web.context.headers.values.get(b"hx-request") == b"true"

    @property
    def here(self) -> str:
        """Path and query of the request."""
        return _here(self.web)

    async def form(self) -> Form:
        """Read the form that was sent.

        Raises:
            InvalidRequest: it cannot be read.
        """
        form = await read_form(self.web)
        check_form(self.session, form.get("form_key"), fetch_site(self.web))
        return form


@dataclass(frozen=True, slots=True)
class Frame:
    """What a page shows around its content."""

    title: str
    #: None on the pages before a sign-in, which have no navigation.
    owner_request: OwnerRequest | None = None
    #: The entry of the navigation that the page belongs to.
    section: str = ""
    #: A sentence on what was just done.
    notice: str = ""
    headers: tuple[Header, ...] = field(default=PAGE_HEADERS)
    #: Whether the page is one decision, which no navigation leads away from.
    is_decision: bool = False
    #: The request of a page before a sign-in, where it names commands.
    request: WebRequest | None = None


#: The values that a template shows, by name.
View = SimpleNamespace
OwnerHandler: TypeAlias = Callable[[OwnerRequest], Awaitable[HttpReply]]


def signed_in(sessions: OwnerSessions, handler: OwnerHandler) -> Handler:
    """Call a handler only for the owner; other browsers are sent to the sign-in page and come back after it."""

    async def answer(request: WebRequest) -> HttpReply:
        session = await sessions.session(cookies_of(request))
        if session is None:
            return _ask_to_sign_in(request)
        owner_request = OwnerRequest(request, session, query_of(request))
        try:
            return await handler(owner_request)
        except HeadgateError as error:
            return error_page(error, owner_request)

    return answer


def recently_signed_in(sessions: OwnerSessions, handler: OwnerHandler) -> Handler:
    """Call a handler only within five minutes after the owner gave the password or a passkey; else ask for it."""

    async def answer(request: OwnerRequest) -> HttpReply:
        if request.session.is_fresh:
            return await handler(request)
        is_read = request.web.scope["method"] == "GET"
        # What was sent in a form is not sent again by itself, so that the owner comes back to its page.
        back = request.here if is_read else "/".join(request.here.split("/")[:3])
        return see_other(f"{CONFIRM}?next={quote(back, safe='')}")

    return signed_in(sessions, answer)


def page(template: str, frame: Frame, view: object, *, status: int = 200) -> HttpReply:
    """Render a template of this package as a whole page."""
    return HttpReply(render(template, view, frame).encode(), status, frame.headers)


def part(template: str, request: OwnerRequest, view: object) -> HttpReply:
    """Render a template as the part of a page that htmx replaces."""
    return HttpReply(render(template, view, Frame("", request)).encode(), headers=PAGE_HEADERS)


def render(template: str, view: object, frame: Frame) -> str:
    """Fill a template; everything is escaped unless the template says otherwise."""
    session = None if frame.owner_request is None else frame.owner_request.session
    return _environment().get_template(template).render(view=view, frame=frame, session=session)


def error_page(error: HeadgateError, request: OwnerRequest | None) -> HttpReply:
    """Show a refusal to the owner."""
    title = "Not found" if error.status == NotFound.status else "Something went wrong"
    return page("error.html", Frame(title, request), error, status=error.status)


def see_other(path: str, *cookies: Header) -> HttpReply:
    """Send the browser to another page of this server."""
    return HttpReply(status=_SEE_OTHER, headers=((b"location", path.encode()), NO_STORE, *cookies))


def own_path(text: str) -> str:
    """Return a path of this server to go back to; the console's home for anything else."""
    parts = urlsplit(text) if text.isascii() and text.isprintable() and "\\" not in text else None
    is_own = parts is not None and not parts.scheme and not parts.netloc and text.startswith("/")
    return text if is_own and not text.startswith("//") else HOME


def cookies_of(request: WebRequest) -> BrowserCookies:
    """Read what a browser sent along."""
    context = request.context
    # All programs of this machine share the cookies of localhost, and theirs may be written in any way.
    cookies = cookie_parser(context.headers.values.get(b"cookie", b"").decode("latin-1"))
    session, known = (cookies.get(name, "") for name in _cookie_names(request))
    return BrowserCookies(session, known, context.client_address, is_poll=_POLL in context.headers.values)


def is_private_line(context: RequestContext) -> bool:
    """Return whether a cookie is safe on its way: over https, or on this machine."""
    return context.scheme == "https" or _is_at_loopback(context)


def _is_on_this_machine(context: RequestContext) -> bool:
    return _is_at_loopback(context) and _is_loopback(context.client_address)


def _is_at_loopback(context: RequestContext) -> bool:
    name = (urlsplit(f"//{context.headers.host}").hostname or "").removesuffix(".")
    return name in _LOOPBACK_NAMES or _is_loopback(name)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def session_cookies(request: WebRequest, signed_in: SignedIn) -> tuple[Header, Header]:
    """Write the cookies of a sign-in: the session's ends with the browser, the other one after a year."""
    session, known = _cookie_names(request)
    in_a_year = f"{signed_in.known_browser}; Max-Age={_KNOWN_SECONDS}"
    return _cookie(request, session, signed_in.session), _cookie(request, known, in_a_year)


def ended_cookie(request: WebRequest) -> Header:
    """Write the cookie that ends a session in the browser."""
    return _cookie(request, _cookie_names(request)[0], "; Max-Age=0")


def _cookie_names(request: WebRequest) -> tuple[str, str]:
    """Name the cookies of a session and of a known browser: for each home, because ports share cookies."""
    prefix = "__Host-" if request.context.scheme == "https" else ""
    name = f"{prefix}headgate-{request.services.home_mark}"
    return name, f"{name}-browser"


def _cookie(request: WebRequest, name: str, value: str) -> Header:
    secure = "; Secure" if request.context.scheme == "https" else ""
    return b"set-cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}".encode()


async def read_form(request: WebRequest) -> Form:
    """Read a form, without checking who sent it.

    Raises:
        InvalidRequest: it cannot be read.
    """
    return _fields(await request.body(_MAX_FORM_BYTES))


def fetch_site(request: WebRequest) -> str | None:
    """Read from which site the browser says that the request was made."""
    value = request.context.headers.values.get(b"sec-fetch-site")
    return None if value is None else value.decode("latin-1")


def query_of(request: WebRequest) -> Form:
    return _fields(request.scope["query_string"])


def _fields(content: bytes) -> Form:
    try:
        return Form(parse_qs(content.decode(), keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS))
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None


def _here(request: WebRequest) -> str:
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _ask_to_sign_in(request: WebRequest) -> HttpReply:
    back = _here(request) if request.scope["method"] == "GET" else HOME
    target = f"{SIGN_IN}?next={quote(back, safe='')}"
    if b"hx-request" in request.context.headers.values:
        # htmx follows a redirect inside of the page; this header makes the browser go there.
        return HttpReply(headers=(HTML, NO_STORE, (b"hx-redirect", SIGN_IN.encode())))
    return see_other(target)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("headgate.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own = cast("dict[str, Any]", environment.globals)
    own |= {"static": static_path, "form_key": _form_key, "command": _command}
    for function in (*formatting.FILTERS, *wording.FILTERS):
        environment.filters[function.__name__] = cast("Any", function)
    return environment


@pass_context
def _form_key(context: Context) -> Markup:
    return Markup('<input type="hidden" name="form_key" value="{}">').format(context["session"].form_key)


@pass_context
def _command(context: Context, text: str) -> str:
    """Write commands in a text for the home that is served."""
    frame: Frame = context["frame"]
    request = frame.request if frame.owner_request is None else frame.owner_request.web
    if request is None or not request.services.home_path:
        return text
    # Strangers see the pages before a sign-in, and learn nothing there about the machine.
    is_shown = frame.owner_request is not None or _is_on_this_machine(request.context)
    return with_home(text, request.services.home_path if is_shown else "DIR")


@cache
def static_path(name: str) -> str:
    """Return the path of a static file; its end changes with the content, so that caches may hold it for long."""
    return f"/console/static/{name}?v={sha256(static_content(name)).hexdigest()[:12]}"


@cache
def static_content(name: str) -> bytes:
    """Read a static file of this package."""
    return files("headgate.console").joinpath("static", name).read_bytes()
