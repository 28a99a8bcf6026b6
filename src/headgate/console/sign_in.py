"""Sign-in and sign-out, the link that sets the first password, and the password or passkey asked for again."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from headgate.auth.sessions import LEAST_CHARS, check_site
from headgate.console.pages import (
    HOME,
    SIGN_IN,
    Frame,
    OwnerRequest,
    cookies_of,
    ended_cookie,
    error_page,
    fetch_site,
    is_private_line,
    own_path,
    page,
    query_of,
    read_form,
    see_other,
    session_cookies,
)
from headgate.console.passkeys import elsewhere, options_of, signed
from headgate.errors import AuthenticationFailed, HeadgateError, InvalidRequest, RateLimited
from headgate.web.replies import HttpReply, RequestContext, WebRequest
from headgate.wiring import Services


@dataclass(frozen=True, slots=True)
class SignInView:
    """What a page that asks for a password shows."""

    #: Where the browser goes after it.
    back: str = HOME
    problem: str = ""
    least_chars: int = LEAST_CHARS
    has_password: bool = True
    #: What the browser needs to use a passkey, as JSON; empty where there is none.
    passkey: str = ""
    #: Where a passkey of this machine can be used, if it cannot be used at this address.
    passkey_elsewhere: str = ""
    #: Whether a cookie may be sent on this connection at all.
    is_private_line: bool = True


async def show(console: Services, request: WebRequest) -> HttpReply:
    """Ask for the password."""
    return await _sign_in_page(console, request, _back(request))


async def sign_in(console: Services, request: WebRequest) -> HttpReply:
    """Check the password and begin a session."""
    try:
        check_site(fetch_site(request))
        form = await read_form(request)
    except HeadgateError as error:
        return error_page(error, None)
    back = own_path(form.get("next"))
    if not is_private_line(request.context):
        return await _sign_in_page(console, request, back, status=403)
    try:
        signed_in = await console.sessions.sign_in(form.get("password"), cookies_of(request))
    except (AuthenticationFailed, RateLimited) as error:
        return await _not_signed_in(console, request, back, error)
    return see_other(back, *session_cookies(request, signed_in))


async def sign_in_with_passkey(console: Services, request: WebRequest) -> HttpReply:
    """Check what a passkey signed, and begin a session."""
    try:
        check_site(fetch_site(request))
        form = await read_form(request)
    except HeadgateError as error:
        return error_page(error, None)
    back = own_path(form.get("next"))
    if not is_private_line(request.context):
        return await _sign_in_page(console, request, back, status=403)
    try:
        party, answer = signed(console, request, form)
        signed_in = await console.sessions.sign_in_with_passkey(party, answer, cookies_of(request))
    except (AuthenticationFailed, RateLimited) as error:
        return await _not_signed_in(console, request, back, error)
    return see_other(back, *session_cookies(request, signed_in))


async def sign_out(console: Services, request: OwnerRequest) -> HttpReply:
    """End the session."""
    await request.form()
    await console.sessions.sign_out(request.session)
    return see_other(SIGN_IN, ended_cookie(request.web))


async def welcome(console: Services, request: WebRequest) -> HttpReply:
    """Ask for a first password, if the link is open. Opening the page does not use the link up."""
    if not await console.sessions.is_open(request.places["link"]):
        return page("link_ended.html", Frame("Link ended", request=request), SignInView(), status=410)
    return _welcome_page(request)


async def set_password(console: Services, request: WebRequest) -> HttpReply:
    """Set the first password by the link, and sign in."""
    try:
        check_site(fetch_site(request))
        form = await read_form(request)
        if not is_private_line(request.context):
            return _welcome_page(request, status=403)
        if form.get("password") != form.get("again"):
            return _welcome_page(request, "The two passwords differ. Type the same one twice.", 400)
        link, cookies = request.places["link"], cookies_of(request)
        signed_in = await console.sessions.set_first_password(link, form.get("password"), cookies)
    except AuthenticationFailed:
        return page("link_ended.html", Frame("Link ended", request=request), SignInView(), status=410)
    except InvalidRequest as error:
        return _welcome_page(request, f"{error.message} {error.hint}", error.status)
    except HeadgateError as error:
        return error_page(error, None)
    return see_other(HOME, *session_cookies(request, signed_in))


async def ask_again(console: Services, request: OwnerRequest) -> HttpReply:
    """Ask for the password or a passkey again, before something that matters."""
    return await _confirm_page(console, request, own_path(request.query.get("next")))


async def confirm(console: Services, request: OwnerRequest) -> HttpReply:
    """Check the password that was asked for again."""
    form = await request.form()
    back = own_path(form.get("next"))
    try:
        await console.sessions.prove(request.session, form.get("password"), cookies_of(request.web))
    except (AuthenticationFailed, RateLimited) as error:
        _log_refusal(console, request.web.context, error)
        return await _confirm_page(console, request, back, error)
    return see_other(back)


async def confirm_with_passkey(console: Services, request: OwnerRequest) -> HttpReply:
    """Check the passkey that was asked for again."""
    form = await request.form()
    back, cookies = own_path(form.get("next")), cookies_of(request.web)
    try:
        party, answer = signed(console, request.web, form)
        await console.sessions.prove_with_passkey(request.session, party, answer, cookies)
    except (AuthenticationFailed, RateLimited) as error:
        _log_refusal(console, request.web.context, error)
        return await _confirm_page(console, request, back, error)
    return see_other(back)


def _back(request: WebRequest) -> str:
    return own_path(query_of(request).get("next"))


async def _confirm_page(
    console: Services, request: OwnerRequest, back: str, error: HeadgateError | None = None
) -> HttpReply:
    view = SignInView(
        back,
        "" if error is None else f"{error.message} {error.hint}",
        passkey=await options_of(console, request.web, request.session),
    )
    status = 200 if error is None else error.status
    return page("confirm.html", Frame("Confirm it is you", request), view, status=status)


async def _not_signed_in(
    console: Services, request: WebRequest, back: str, error: HeadgateError
) -> HttpReply:
    _log_refusal(console, request.context, error)
    problem = f"{error.message} {error.hint}"
    return await _sign_in_page(console, request, back, problem=problem, status=error.status)


async def _sign_in_page(
    console: Services, request: WebRequest, back: str, *, problem: str = "", status: int = 200
) -> HttpReply:
    view = SignInView(
        back,
        problem,
        has_password=await console.sessions.has_password(),
        passkey=await options_of(console, request),
        passkey_elsewhere=await _passkey_elsewhere(console, request, back),
        is_private_line=is_private_line(request.context),
    )
    return page("sign_in.html", Frame("Sign in", request=request), view, status=status)


async def _passkey_elsewhere(console: Services, request: WebRequest, back: str) -> str:
    # The request of a client is answered by the address that the client called, and no other.
    passkeys = console.sessions.passkeys
    if not back.startswith(HOME) or not await passkeys.usable(passkeys.local()):
        return ""
    return elsewhere(console, request, f"{SIGN_IN}?next={quote(back, safe='')}")


def _welcome_page(request: WebRequest, problem: str = "", status: int = 200) -> HttpReply:
    view = SignInView(problem=problem, is_private_line=is_private_line(request.context))
    return page("welcome.html", Frame("Welcome"), view, status=status)


def _log_refusal(console: Services, context: RequestContext, error: HeadgateError) -> None:
    """Log that a password or a passkey was not accepted. What is not looked at any more, is not logged."""
    if not isinstance(error, RateLimited):
        console.log_owner(context.route, error.code, context.request_id)
