"""The addresses of the console: rows for the one table, bound to the parts that they are drawn from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from headgate.auth.sessions import OwnerSessions
from headgate.console import (
    activity,
    agents,
    connect,
    home,
    looking,
    narrowing,
    passkeys,
    preferences,
    record,
    records,
    rules,
    servers,
    shown,
    sign_in,
    uploads,
)
from headgate.console.pages import (
    CONFIRM,
    HOME,
    SIGN_IN,
    OwnerHandler,
    OwnerRequest,
    recently_signed_in,
    signed_in,
    static_content,
)
from headgate.errors import NotFound
from headgate.web.admission import Callers
from headgate.web.front import Address
from headgate.web.replies import Handler, HttpReply, WebRequest
from headgate.wiring import Services

ConsolePage: TypeAlias = Callable[[Services, OwnerRequest], Awaitable[HttpReply]]
OpenPage: TypeAlias = Callable[[Services, WebRequest], Awaitable[HttpReply]]
#: Before a sign-in.
_OPEN: tuple[tuple[str, str, OpenPage], ...] = (
    ("GET", SIGN_IN, sign_in.show),
    ("POST", SIGN_IN, sign_in.sign_in),
    ("POST", f"{SIGN_IN}/passkey", sign_in.sign_in_with_passkey),
    ("GET", "/console/welcome/{link}", sign_in.welcome),
    ("POST", "/console/welcome/{link}", sign_in.set_password),
)
#: For the owner alone.
_OWN: tuple[tuple[str, str, ConsolePage], ...] = (
    ("GET", HOME, home.show),
    ("GET", "/console/search", records.search),
    ("GET", "/console/data", records.show_all),
    ("GET", "/console/data/{connection_id}/{stream}", records.browse),
    ("GET", "/console/records/{stream}/{id}", record.show),
    ("POST", "/console/records/{stream}/{id}/hide", record.hide),
    ("GET", "/console/records/{stream}/{id}/erase", record.ask_to_erase),
    ("POST", "/console/records/{stream}/{id}/erase", record.erase),
    ("GET", "/console/files/{blob_id}", records.show_file),
    ("GET", "/console/agents", agents.show_all),
    ("POST", "/console/agents/stop-all", agents.stop_all),
    ("GET", "/console/agents/{client}", agents.show),
    ("POST", "/console/agents/{client}/stop", agents.stop),
    ("GET", "/console/agents/{client}/look", looking.show),
    ("POST", "/console/agents/{client}/look", looking.run),
    ("POST", "/console/grants/{grant_id}/revoke", agents.revoke),
    ("GET", "/console/grants/{grant_id}/narrow", narrowing.show),
    ("POST", "/console/grants/{grant_id}/narrow", narrowing.change),
    ("GET", "/console/activity", activity.show),
    ("GET", "/console/activity/records", shown.show),
    ("GET", "/console/activity/export", activity.export),
    ("POST", "/console/activity/verify", activity.verify),
    ("GET", "/console/rules", rules.show),
    ("POST", "/console/rules", rules.add),
    ("POST", "/console/rules/{rule_id}/remove", rules.remove),
    ("GET", "/console/connect", connect.show),
    ("GET", "/console/add", uploads.show),
    ("POST", "/console/add", uploads.upload),
    ("GET", "/console/add/{upload_id}", uploads.preview),
    ("POST", "/console/add/{upload_id}", uploads.bring_in),
    ("GET", "/console/add/{upload_id}/progress", uploads.progress),
    ("GET", "/console/servers", servers.show),
    ("GET", "/console/servers/callers", servers.find_caller),
    ("GET", "/console/servers/callers/{caller}", servers.show_caller),
    ("POST", "/console/servers/callers/{caller}", servers.change_caller),
    ("POST", "/console/servers/{server}/list", servers.list_again),
    ("POST", "/console/servers/{server}/approve", servers.approve),
    ("GET", "/console/settings", preferences.show),
    ("POST", "/console/settings/password", preferences.change_password),
    ("POST", "/console/settings/tokens/{mark}/revoke", preferences.revoke_token),
    ("POST", "/console/settings/backup", preferences.download_backup),
    ("POST", "/console/settings/passkeys", passkeys.add),
    ("POST", "/console/settings/passkeys/{mark}/remove", passkeys.remove),
    ("GET", "/console/settings/erase/{connection_id}", preferences.ask_to_erase),
    ("POST", "/console/settings/erase/{connection_id}", preferences.erase),
    ("POST", "/console/sign-out", sign_in.sign_out),
    ("GET", CONFIRM, sign_in.ask_again),
    ("POST", CONFIRM, sign_in.confirm),
    ("POST", f"{CONFIRM}/passkey", sign_in.confirm_with_passkey),
)
#: What takes everything out, or changes who is let in: for these the password or a passkey was given just before.
_PROVED = frozenset(
    {
        "/console/activity/export",
        "/console/settings/backup",
        "/console/settings/passkeys",
        "/console/settings/passkeys/{mark}/remove",
    }
)
#: So many parts of a mistyped path lead to a page that says so.
_MOST_DEPTH = 6
_OTHER = f"{HOME}/*"
_STATIC = {
    "console.css": b"text/css; charset=utf-8",
    "console.js": b"text/javascript; charset=utf-8",
    "passkeys.js": b"text/javascript; charset=utf-8",
    "htmx.js": b"text/javascript; charset=utf-8",
}


def console_addresses(console: Services) -> tuple[Address, ...]:
    """Make the console's rows of the table. A session is checked by `signed_in`, not by a token."""
    opened = (Address(method, path, Callers.ANYONE, partial(page, console)) for method, path, page in _OPEN)
    owned = (
        Address(method, path, Callers.ANYONE, _guard(path)(console.sessions, partial(page, console)))
        for method, path, page in _OWN
    )
    static = Address("GET", "/console/static/{file}", Callers.ANYONE, _static)
    # Last: an address that no row has gets a page as well.
    places = ["".join(f"/{{place_{place}}}" for place in range(depth + 1)) for depth in range(_MOST_DEPTH)]
    nothing = signed_in(console.sessions, _nothing_here)
    other = (Address("GET", HOME + path, Callers.ANYONE, nothing, route=f"GET {_OTHER}") for path in places)
    return *opened, *owned, static, *other


def _guard(path: str) -> Callable[[OwnerSessions, OwnerHandler], Handler]:
    return recently_signed_in if path in _PROVED else signed_in


async def _nothing_here(_request: OwnerRequest) -> HttpReply:
    raise NotFound("There is no such page.", hint="It may have moved; the menu leads everywhere.")


async def _static(request: WebRequest) -> HttpReply:
    name = request.places["file"]
    if name not in _STATIC:
        raise NotFound("There is no such file.")
    headers = ((b"content-type", _STATIC[name]), (b"cache-control", b"public, max-age=31536000, immutable"))
    return HttpReply(static_content(name), headers=headers)
