"""Settings: the password, the owner's tokens, the program's addresses, and the page that shows the design."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.auth.clients import token_mark
from headgate.auth.passwords import LEAST_CHARS
from headgate.console.pages import Frame, OwnerRequest, cookies_of, page, see_other
from headgate.console.passkeys import PasskeysView, settings_view
from headgate.console.services import ConsoleFacts, ConsoleServices
from headgate.console.words import day
from headgate.errors import AuthenticationFailed, InvalidRequest, RateLimited
from headgate.web.replies import HttpReply

_PATH = "/console/settings"


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One of the owner's tokens."""

    mark: str
    name: str
    scope: str
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class SettingsView:
    """What the settings page shows."""

    facts: ConsoleFacts
    tokens: tuple[TokenLine, ...]
    passkeys: PasskeysView
    problem: str = ""
    least_chars: int = LEAST_CHARS


@dataclass(frozen=True, slots=True)
class StylesView:
    """The tokens of the design."""

    colours: tuple[str, ...] = (
        *("ink", "soft", "paper", "card", "line", "sunk", "accent", "accent-wash"),
        *("good", "good-wash", "warn", "warn-wash", "bad", "bad-wash"),
    )
    sizes: tuple[str, ...] = ("tiny", "small", "text", "lead", "title")


async def show(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show the settings."""
    notices = {
        "password": "The password is changed; every other session has ended.",
        "token": "The token has ended.",
        "passkey": "The passkey is added; it signs you in from now on.",
        "no-passkey": "The passkey is removed.",
    }
    notice = notices.get(asked.query.get("done"), "")
    return page("settings.html", Frame("Settings", asked, "settings", notice), _view(console, asked))


async def change_password(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Set another password."""
    form = await asked.form()
    try:
        await console.sessions.change_password(
            asked.session, form.get("old"), form.get("new"), cookies_of(asked.request)
        )
    except (AuthenticationFailed, InvalidRequest, RateLimited) as error:
        view = _view(console, asked, f"{error.message} {error.hint}")
        return page("settings.html", Frame("Settings", asked, "settings"), view, status=error.status)
    return see_other(f"{_PATH}?done=password")


async def revoke_token(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """End one of the owner's tokens."""
    await asked.form()
    await console.clients.revoke_owner_token(asked.places["mark"])
    return see_other(f"{_PATH}?done=token")


async def styles(_console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show the design: tokens and components."""
    return page("styles.html", Frame("Styles", asked), StylesView())


def _view(console: ConsoleServices, asked: OwnerRequest, problem: str = "") -> SettingsView:
    tokens = tuple(
        TokenLine(
            token_mark(one),
            one.name or "unnamed",
            "everything" if one.scope is None else one.scope.value,
            day(one.issued_at),
            "no end" if one.expires_at is None else day(one.expires_at),
        )
        for one in console.clients.owner_tokens()
    )
    return SettingsView(console.facts, tokens, settings_view(console, asked), problem)
