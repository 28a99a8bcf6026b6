"""The owner's sign-in: a link that sets the first password, passkeys, sessions of browsers, the check of their forms.

A browser holds 256 random bits in a cookie; only the SHA-256 is stored. A session ends 12 hours after its last use.
What a form must send besides is derived from the session, so that a page of another origin, which cannot read the
cookie, cannot send it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from argon2 import PasswordHasher, Type
from argon2.exceptions import Argon2Error, InvalidHashError

from headgate.auth.clock import LatestTime
from headgate.auth.limits import SignInLimits
from headgate.auth.passkeys import PasskeyParty, Passkeys
from headgate.errors import AuthenticationFailed, InvalidRequest, PermissionRefused
from headgate.model.ledger import BrowserKind, BrowserSecret, SetupLink
from headgate.store.ledger.owner import OwnerStore

LEAST_CHARS = 10
_MOST_BYTES = 1024
#: Each takes 64 MiB while it is computed.
_AT_ONCE = 2


class Passwords:
    """Hashes and checks passwords in threads."""

    __slots__ = ("_hasher", "_turns")

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher(type=Type.ID)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def hash(self, password: str) -> str:
        if len(password) < LEAST_CHARS or len(password.encode()) > _MOST_BYTES:
            raise InvalidRequest(
                f"A password has at least {LEAST_CHARS} characters.",
                hint="Choose several words, or let a password manager make one.",
                param="password",
            )
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, stored: str, password: str) -> bool:
        """Check a password against the stored hash."""
        if len(password.encode("utf-8", "surrogatepass")) > _MOST_BYTES:
            return False
        async with self._turns:
            return await asyncio.to_thread(self._matches, stored, password)

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (Argon2Error, InvalidHashError, UnicodeEncodeError):
            return False


_SECOND_US = 1_000_000
LINK_MINUTES = 15
_LINK_BYTES = 16
_SECRET_BYTES = 32
_IDLE_US = 12 * 3600 * _SECOND_US
_LONGEST_US = 30 * 24 * 3600 * _SECOND_US
_KNOWN_US = 365 * 24 * 3600 * _SECOND_US
#: A use is written down at most this often, because every write ends what admission remembers.
_NOTE_US = 600 * _SECOND_US
#: What grants to new clients, exports and erasures need: the password or a passkey, this recently.
_FRESH_US = 300 * _SECOND_US
#: What a passkey signs for, before there is a session.
SIGN_IN_PURPOSE = b"sign in"
#: Where a browser tells that a page of another origin made the request.
_OWN_SITES = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True)
class OwnerSession:
    """A session that is valid now."""

    #: What the browser holds. Shown nowhere.
    secret: str
    stored: BrowserSecret
    is_fresh: bool

    @property
    def form_key(self) -> str:
        """What every form of this session sends along."""
        return hmac.new(self.secret.encode(), b"form", hashlib.sha256).hexdigest()

    def __repr__(self) -> str:
        """Keep the secret out of logs."""
        return "OwnerSession(...)"


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The secrets that a browser is given after a sign-in."""

    session: str
    known_browser: str


@dataclass(frozen=True, slots=True)
class BrowserCookies:
    """What a browser sent along, and from where."""

    session: str = ""
    known_browser: str = ""
    client_address: str = ""
    #: Whether an open page asks by itself, without a person: that must not make a session last longer.
    is_poll: bool = False


class OwnerSessions:
    """Signs the owner in and out. The decisions are here; pages only show them."""

    __slots__ = ("_clock", "_latest", "_limits", "_passwords", "_store", "passkeys")

    def __init__(
        self,
        store: OwnerStore,
        passkeys: Passkeys,
        *,
        clock: Callable[[], int],
        latest: LatestTime,
        passwords: Passwords | None = None,
        limits: SignInLimits | None = None,
    ) -> None:
        self._store = store
        self.passkeys = passkeys
        self._clock = clock
        self._latest = latest
        self._passwords = passwords or Passwords()
        self._limits = limits or SignInLimits()

    async def has_password(self) -> bool:
        return await self._store.password() is not None

    async def make_link(self) -> str:
        """Make the secret of a link by which a first password is set; the last link ends."""
        secret, link = fresh_link(self._now())
        await self._store.put_link(link)
        return secret

    async def is_open(self, link: str) -> bool:
        """Return whether a password can be set by this link now."""
        return await self._link(link) is not None

    async def set_first_password(self, link: str, password: str, cookies: BrowserCookies) -> SignedIn:
        """Set the password by a link, which ends with that, and sign in.

        Raises:
            AuthenticationFailed: the link has ended.
            InvalidRequest: the password is too short.
        """
        known = await self._link(link)
        if known is None:
            raise _link_ended()
        if not await self._store.set_password(await self._passwords.hash(password), known):
            raise _link_ended()
        return await self._begin(cookies)

    async def sign_in(self, password: str, cookies: BrowserCookies) -> SignedIn:
        """Check the password and begin a session; the browser's last one ends.

        Raises:
            RateLimited: too many passwords were tried.
            AuthenticationFailed: it is another one.
        """
        await self._check(password, cookies)
        return await self._begin(cookies)

    async def sign_in_with_passkey(
        self, party: PasskeyParty, answer: Mapping[str, Any], cookies: BrowserCookies
    ) -> SignedIn:
        """Check what a passkey signed and begin a session; the browser's last one ends.

        Raises:
            RateLimited: too many were tried from this network; passwords do not count for it.
            AuthenticationFailed: it is not the owner's.
        """
        await self._limits.check_passkey(cookies.client_address)
        await self.passkeys.check(party, SIGN_IN_PURPOSE, answer)
        return await self._begin(cookies)

    async def session(self, cookies: BrowserCookies) -> OwnerSession | None:
        """Find the session of a browser; None if there is none, or it has ended."""
        stored = await self._store.browser(_digest(cookies.session), BrowserKind.SESSION)
        now = self._now()
        if stored is None or now - stored.used_at > _IDLE_US or now - stored.made_at > _LONGEST_US:
            return None
        if now - stored.used_at > _NOTE_US and not cookies.is_poll:
            stored = replace(stored, used_at=now)
            await self._store.note_use(stored)
        return OwnerSession(cookies.session, stored, is_fresh=now - stored.proved_at <= _FRESH_US)

    async def sign_out(self, session: OwnerSession) -> None:
        """End a session."""
        await self._store.remove_browser(session.stored.digest)

    async def prove(self, session: OwnerSession, password: str, cookies: BrowserCookies) -> None:
        """Note that the owner has given the password again.

        Raises:
            RateLimited: too many passwords were tried.
            AuthenticationFailed: it is another one.
        """
        await self._check(password, cookies)
        await self._note_proof(session)

    async def prove_with_passkey(
        self, session: OwnerSession, party: PasskeyParty, answer: Mapping[str, Any], cookies: BrowserCookies
    ) -> None:
        """Note that the owner has used a passkey again.

        Raises:
            RateLimited: too many were tried from this network.
            AuthenticationFailed: it is not the owner's.
        """
        await self._limits.check_passkey(cookies.client_address)
        await self.passkeys.check(party, session.stored.digest, answer)
        await self._note_proof(session)

    async def change_password(
        self, session: OwnerSession, old: str, new: str, cookies: BrowserCookies
    ) -> None:
        """Set another password; every other session ends.

        Raises:
            RateLimited: too many passwords were tried.
            AuthenticationFailed: the old one is another one.
            InvalidRequest: the new one is too short.
        """
        await self._check(old, cookies)
        await self._store.set_password(await self._passwords.hash(new), None)
        await self._store.end_sessions(but=session.stored.digest)

    async def _note_proof(self, session: OwnerSession) -> None:
        now = self._now()
        await self._store.note_use(replace(session.stored, used_at=now, proved_at=now))

    def _now(self) -> int:
        return self._latest.raise_to(self._clock())

    async def _link(self, link: str) -> SetupLink | None:
        stored = await self._store.link()
        is_this = stored is not None and hmac.compare_digest(stored.digest, _digest(link))
        return stored if stored is not None and is_this and self._now() < stored.ends_at else None

    async def _check(self, password: str, cookies: BrowserCookies) -> None:
        await self._limits.check(cookies.client_address, await self._known(cookies))
        stored = await self._store.password()
        if stored is None or not await self._passwords.matches(stored, password):
            raise AuthenticationFailed(
                "Wrong password.", hint="Try again; 'headgate owner reset' sets a new one."
            )

    async def _known(self, cookies: BrowserCookies) -> bytes | None:
        browser = await self._store.browser(_digest(cookies.known_browser), BrowserKind.KNOWN)
        is_known = browser is not None and self._now() - browser.made_at <= _KNOWN_US
        return browser.digest if browser is not None and is_known else None

    async def _begin(self, cookies: BrowserCookies) -> SignedIn:
        now = self._now()
        signed_in = SignedIn(secrets.token_urlsafe(_SECRET_BYTES), secrets.token_urlsafe(_SECRET_BYTES))
        for kind, secret, before in (
            (BrowserKind.SESSION, signed_in.session, cookies.session),
            (BrowserKind.KNOWN, signed_in.known_browser, cookies.known_browser),
        ):
            stored = BrowserSecret(_digest(secret), kind, made_at=now, used_at=now, proved_at=now)
            await self._store.put_browser(stored, replaces=_digest(before))
        return signed_in


def fresh_link(now: int) -> tuple[str, SetupLink]:
    """Make a link's secret, and what is stored of it."""
    secret = secrets.token_urlsafe(_LINK_BYTES)
    return secret, SetupLink(_digest(secret), now + LINK_MINUTES * 60 * _SECOND_US)


def check_form(session: OwnerSession, form_key: str, fetch_site: str | None) -> None:
    """Refuse a form that no page of this session sent."""
    check_site(fetch_site)
    if not hmac.compare_digest(form_key.encode("utf-8", "surrogatepass"), session.form_key.encode()):
        raise PermissionRefused(
            "The form was not sent from a page of this session.",
            hint="Open the page again, and send it there.",
        )


def check_site(fetch_site: str | None) -> None:
    """Refuse a form that a page of another origin sent, where the browser says so."""
    if fetch_site is not None and fetch_site not in _OWN_SITES:
        raise PermissionRefused("Forms of other sites are not accepted.", hint="Open the console itself.")


def _link_ended() -> AuthenticationFailed:
    return AuthenticationFailed(
        "This link has ended.", hint="Run 'headgate owner reset' on the machine that serves for a new one."
    )


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
