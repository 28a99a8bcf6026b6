"""Settings: the password, the owner's tokens, the program's addresses, and a backup as a download."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import IO
from urllib.parse import quote

from headgate.auth.clients import token_mark
from headgate.auth.sessions import LEAST_CHARS
from headgate.console.formatting import day, moment
from headgate.console.pages import CONFIRM, Frame, OwnerRequest, View, cookies_of, page, see_other
from headgate.console.passkeys import settings_view
from headgate.console.records import connection_cards
from headgate.errors import AuthenticationFailed, InvalidRequest, NotFound, RateLimited
from headgate.home import key_ages
from headgate.model.ids import ConnectionId
from headgate.model.maintenance import LEAST_PASSPHRASE_CHARS
from headgate.web.replies import NO_STORE, HttpReply
from headgate.wiring import Services

_PATH = "/console/settings"
_PIECE_BYTES = 256 * 1024
#: The keys of a home by their files.
_KEYS = {
    "seal.json": ("Seal key", "makes cursors and handles that only this server can read"),
    "audit": ("Log key", "seals the log, so that a changed entry is noticed"),
    "introspection": ("Introspection password", "lets a resource server of yours check tokens"),
}


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show the settings."""
    notices = {
        "password": "The password is changed; every other session has ended.",
        "token": "The token has ended.",
        "passkey": "The passkey is added; it signs you in from now on.",
        "no-passkey": "The passkey is removed.",
        "erased": "The source and its records are erased.",
    }
    notice = notices.get(request.query.get("done"), "")
    return page(
        "settings.html",
        Frame("Settings", request, "settings", notice),
        await settings_page_view(console, request),
    )


async def change_password(console: Services, request: OwnerRequest) -> HttpReply:
    """Set another password."""
    form = await request.form()
    try:
        await console.sessions.change_password(
            request.session, form.get("old"), form.get("new"), cookies_of(request.web)
        )
    except (AuthenticationFailed, InvalidRequest, RateLimited) as error:
        view = await settings_page_view(console, request, problem=f"{error.message} {error.hint}")
        return page("settings.html", Frame("Settings", request, "settings"), view, status=error.status)
    return see_other(f"{_PATH}?done=password")


async def revoke_token(console: Services, request: OwnerRequest) -> HttpReply:
    """End one of the owner's tokens."""
    await request.form()
    await console.clients.revoke_owner_token(request.places["mark"])
    return see_other(f"{_PATH}?done=token")


async def ask_to_erase(console: Services, request: OwnerRequest) -> HttpReply:
    """Ask whether a source is to be erased."""
    return _erase_page(request, await _card(console, request))


async def erase(console: Services, request: OwnerRequest) -> HttpReply:
    """Erase a source with its records, after its name was typed and the owner was asked for the password."""
    form = await request.form()
    card = await _card(console, request)
    if not request.session.is_fresh:
        return see_other(f"{CONFIRM}?next={quote(request.here, safe='')}")
    if form.get("typed").strip() != card.name:
        return _erase_page(request, card, f"Type {card.name} to erase it.")
    await console.intake.store.delete_connection(ConnectionId(card.id))
    return see_other(f"{_PATH}?done=erased")


async def _card(console: Services, request: OwnerRequest) -> View:
    for card in await connection_cards(console):
        if card.id == request.places["connection_id"]:
            return card
    raise NotFound("There is no such source.", hint="Look at the list in the settings.")


def _erase_page(request: OwnerRequest, card: View, problem: str = "") -> HttpReply:
    view = View(name=card.name, records=card.records, problem=problem)
    status = InvalidRequest.status if problem else 200
    return page("erase.html", Frame(f"Erase {card.name}", request, "settings"), view, status=status)


async def settings_page_view(
    console: Services, request: OwnerRequest, *, problem: str = "", backup_problem: str = ""
) -> View:
    tokens = tuple(
        View(
            mark=token_mark(token),
            name=token.name or "unnamed",
            scope="everything" if token.scope is None else token.scope.value,
            since=day(token.issued_at),
            until="no end" if token.expires_at is None else day(token.expires_at),
        )
        for token in await console.clients.owner_tokens()
    )
    return View(
        services=console,
        tokens=tokens,
        passkeys=await settings_view(console, request),
        keys=_keys(console),
        connections=await connection_cards(console),
        problem=problem,
        backup_problem=backup_problem,
        least_chars=LEAST_CHARS,
        least_passphrase_chars=LEAST_PASSPHRASE_CHARS,
    )


def _keys(console: Services) -> tuple[tuple[str, str, str], ...]:
    ages = key_ages(console.home)
    return tuple(
        (name, what, f"since {day(ages[file])}") for file, (name, what) in _KEYS.items() if file in ages
    )


async def download_backup(console: Services, request: OwnerRequest) -> HttpReply:
    """Make a backup and send it: everything the home holds, in one file that only a passphrase opens.

    It is always encrypted, because a browser writes it into a folder that other programs read and that may be copied
    to other machines. A backup without a passphrase is made on the machine that serves.
    """
    form = await request.form()
    passphrase = form.get("passphrase")
    problem = _passphrase_problem(passphrase, form.get("again"))
    if problem:
        view = await settings_page_view(console, request, backup_problem=problem)
        return page(
            "settings.html", Frame("Settings", request, "settings"), view, status=InvalidRequest.status
        )
    await console.pump.flush()
    backup = await asyncio.to_thread(console.make_backup, passphrase)
    console.log_owner(request.web.context.route, request_id=request.web.context.request_id)
    name = f"headgate-{moment(console.clock()):%Y-%m-%d}.age"
    headers = (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"content-length", b"%d" % os.fstat(backup.fileno()).st_size),
        NO_STORE,
    )
    return HttpReply(headers=headers, stream=_pieces(backup))


def _passphrase_problem(passphrase: str, again: str) -> str:
    if len(passphrase) < LEAST_PASSPHRASE_CHARS:
        return f"A passphrase has at least {LEAST_PASSPHRASE_CHARS} characters. Choose several words."
    return "" if passphrase == again else "The two passphrases differ. Type the same one twice."


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
