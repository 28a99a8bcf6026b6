"""Serve a home on HTTP: the web application and the hosted MCP server, put together from the program."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace

from starlette.types import ASGIApp

from headgate import __version__
from headgate.audit.chain import load_audit_key
from headgate.auth.documents import load_secret
from headgate.auth.keys import load_ring
from headgate.auth.sessions import OwnerSessions
from headgate.console.addresses import console_addresses
from headgate.console.consent import consent_addresses
from headgate.errors import ConfigInvalid, ServerFault, StorageUnusable
from headgate.home import Home
from headgate.settings import Settings
from headgate.telemetry import get_logger
from headgate.web.api.oauth import oauth_addresses
from headgate.web.app import build_app
from headgate.web.server import listen, serve
from headgate.wiring import Services, build_services, place_of, prepare, serving_on, welcome_url
from headgate.workers import run_workers

_MINUTE_SECONDS = 60


def web_app(services: Services, *on_start: Callable[[], Awaitable[None]]) -> ASGIApp:
    """Put the web application together; it runs everything that `running_all` does while it is served."""
    addresses = (
        *console_addresses(services),
        *oauth_addresses(services.authorization),
        *consent_addresses(services),
    )
    return build_app(services, lambda _app: running_all(services, *on_start), addresses)


@asynccontextmanager
async def running_all(services: Services, *on_start: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Run what goes on beside the requests of a server, and end it in the opposite order."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(services.running())
        await stack.enter_async_context(services.mcp.running())
        if services.gateway is not None:
            await stack.enter_async_context(services.gateway.running())
        await stack.enter_async_context(_fetching_accounts(services))
        await stack.enter_async_context(services.uploads.cleaning())
        for start in on_start:
            await start()
        yield


@asynccontextmanager
async def _fetching_accounts(services: Services) -> AsyncGenerator[None]:
    """Fetch from accounts when they are due; without the extra there can be none."""
    try:
        from headgate.sources.accounts import Accounts, scheduled  # noqa: PLC0415 - needs the extra
        from headgate.wiring import live_sources  # noqa: PLC0415 - needs the extra
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "headgate":
            # A module of the program is always there: this is a fault, and no missing extra.
            raise
        yield
        return
    accounts = Accounts(
        services.store,
        live_sources(services.home.path, os.environ),
        services.clock,
        services.settings.sync_minutes * _MINUTE_SECONDS,
    )
    async with scheduled(services.home, accounts, services.supervisor, services.has_turn):
        yield


def run_server(settings: Settings, announce: Callable[[str, Home, str | None], None]) -> None:
    """Serve a home over HTTP until asked to stop; `announce` gets the link that sets the first password, if there is none."""
    _refuse_open_line(settings)
    home = prepare(settings)
    bound = listen(settings.host, settings.port)
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    # The port may have been left open; what is bound to the address, such as passkeys, needs the real one.
    settings = replace(settings, port=port)
    log = get_logger().bind(version=__version__)

    def ready(link: str | None) -> None:
        log.info("serving", address=address, home=str(home.path))
        announce(address, home, None if link is None else welcome_url(settings.public_url or address, link))

    def work(number: int, begin: Callable[[], None]) -> bool:
        services = build_services(settings, home)
        first = FirstLink(services.sessions)
        app = web_app(services, *([first.make] if number == 0 else []))

        def on_ready() -> None:
            begin()
            if number == 0:
                ready(first.secret)

        return serve(app, bound, on_ready, settings.trusted_proxies)

    # Created before the workers fork, so that they do not race to create them.
    load_ring(home)
    load_secret(home)
    load_audit_key(place_of(settings, home))
    with serving_on(home, address):
        in_order = work(0, _begin_alone) if settings.workers == 1 else run_workers(settings.workers, work)
    log.info("stopped")
    if not in_order:
        raise ServerFault("The server was stopped before its work was done.", hint="Look at the log.")


class FirstLink:
    """The link by which the owner sets a first password; made when the server starts, if there is none."""

    def __init__(self, sessions: OwnerSessions) -> None:
        self._sessions = sessions
        self.secret: str | None = None

    async def make(self) -> None:
        """Make the link, unless a password is set; a home that cannot be written is served all the same."""
        if not await self._sessions.has_password():
            with suppress(StorageUnusable):
                self.secret = await self._sessions.make_link()


def _refuse_open_line(settings: Settings) -> None:
    """Refuse to listen where others on the network could read passwords and tokens on their way."""
    is_encrypted = settings.behind_proxy or settings.public_url.startswith("https://")
    if not is_encrypted and not _is_loopback(settings.host):
        raise ConfigInvalid(
            f"Listening on {settings.host} without encryption would show tokens and passwords to the network.",
            hint="Listen on 127.0.0.1, or put a proxy with https before it and add --behind-proxy.",
            param="host",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _begin_alone() -> None:
    """Report to no other process."""
