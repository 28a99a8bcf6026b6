"""Passkeys in the browser: the pages hold what a script needs, and a form sends back what was signed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from headgate.auth.passkeys import PasskeyParty, passkey_mark
from headgate.auth.sessions import SIGN_IN_PURPOSE, OwnerSession
from headgate.console.formatting import day
from headgate.console.pages import Form, OwnerRequest, View, is_private_line, see_other
from headgate.errors import AuthenticationFailed
from headgate.web.replies import HttpReply, WebRequest
from headgate.wiring import Services

_SETTINGS = "/console/settings"
_MOST_CHARS = 64 * 1024


def party_of(console: Services, request: WebRequest) -> PasskeyParty | None:
    """Find the configured name by which the browser calls."""
    return console.sessions.passkeys.party(urlsplit(f"//{request.context.headers.host}").hostname or "")


def elsewhere(console: Services, request: WebRequest, path: str) -> str:
    """Return a page's address at which a browser on this machine can use passkeys; empty unless it lacks them here."""
    is_here = party_of(console, request) is not None
    local = console.sessions.passkeys.local()
    # Over http the owner signs in only on the machine that serves, where its name leads back to it.
    if is_here or local is None or request.context.scheme == "https" or not is_private_line(request.context):
        return ""
    return local.origin + path


async def options_of(console: Services, request: WebRequest, session: OwnerSession | None = None) -> str:
    """Write what a browser needs to use a passkey; empty where there is none."""
    passkeys, party = console.sessions.passkeys, party_of(console, request)
    if party is None or not await passkeys.usable(party):
        return ""
    purpose = SIGN_IN_PURPOSE if session is None else session.stored.digest
    return _json(passkeys.options(party, purpose))


async def settings_view(console: Services, request: OwnerRequest) -> View:
    """List the passkeys, with what is needed to make another one."""
    passkeys, party = console.sessions.passkeys, party_of(console, request.web)
    lines = tuple(
        View(
            mark=passkey_mark(passkey), name=passkey.name, party=passkey.party, since=day(passkey.made_at), used=day(passkey.used_at) if passkey.used_at else "never"
        )
        for passkey in await passkeys.all()
    )  # fmt: skip
    if party is None:
        return View(
            lines=lines, options="", elsewhere=elsewhere(console, request.web, f"{_SETTINGS}#passkeys")
        )
    return View(
        lines=lines,
        options=_json(await passkeys.options_to_add(party, request.session.stored.digest)),
        elsewhere="",
    )


async def add(console: Services, request: OwnerRequest) -> HttpReply:
    """Store the passkey that the browser made."""
    form = await request.form()
    party, answer = signed(console, request.web, form)
    await console.sessions.passkeys.add(party, request.session.stored.digest, form.get("name"), answer)
    return see_other(f"{_SETTINGS}?done=passkey")


async def remove(console: Services, request: OwnerRequest) -> HttpReply:
    await request.form()
    await console.sessions.passkeys.remove(request.places["mark"])
    return see_other(f"{_SETTINGS}?done=no-passkey")


def signed(console: Services, request: WebRequest, form: Form) -> tuple[PasskeyParty, Mapping[str, Any]]:
    """Read what the browser signed.

    Raises:
        AuthenticationFailed: it cannot be read, or passkeys cannot be used at this address.
    """
    party, text = party_of(console, request), form.get("answer")
    if party is None:
        raise AuthenticationFailed("Passkeys cannot be used at this address.", hint="Use the password.")
    try:
        if len(text) <= _MOST_CHARS:
            return party, msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    raise AuthenticationFailed("The browser sent no passkey.", hint="Try again, or use the password.")


def _json(options: Mapping[str, Any]) -> str:
    return msgspec.json.encode(_plain(options["publicKey"])).decode()


def _plain(value: Any) -> Any:
    """Turn the library's mappings into those that are written as JSON."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in cast("list[Any]", value)]
    return value
