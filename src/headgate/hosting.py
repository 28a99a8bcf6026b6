"""Serve a home on HTTP: the web application and the hosted MCP server, put together from the program."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from headgate import __version__, memory
from headgate.audit.activity import Activity
from headgate.audit.chain import load_audit_key
from headgate.auth.gateway import GatewayCallers
from headgate.auth.grants import revoke_grant
from headgate.auth.introspect import load_secret
from headgate.auth.keys import load_ring
from headgate.auth.oauth.client_documents import ClientDocuments
from headgate.auth.oauth.entries import TokenFamily
from headgate.auth.oauth.service import AuthorizationService
from headgate.auth.passkeys import PasskeyParty, Passkeys, passkey_names
from headgate.auth.sessions import OwnerSessions
from headgate.console.addresses import console_addresses
from headgate.console.consent import ConsentServices, consent_addresses
from headgate.console.services import ConsoleFacts, ConsoleServices
from headgate.errors import AdapterConfigInvalid, ConfigInvalid, ServerFault, StorageUnusable
from headgate.home import Home, home_in, key_ages, small_files
from headgate.mcp.client.documents import fetch_document
from headgate.mcp.client.from_mcp import FromMCP, ImportOptions
from headgate.mcp.client.pins import FilePins
from headgate.mcp.client.servers import import_entry, read_servers
from headgate.mcp.gateway.hosted import HostedGateway
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.hosted import HostedMcp
from headgate.mcp.serve.results import ServerIdentity
from headgate.model.disclosure import Disclosure
from headgate.model.ids import ClientId, RequestId
from headgate.reading.preview import StreamSpans
from headgate.settings import DEFAULT_HOME, Settings
from headgate.sources.intake import Intake
from headgate.sources.secrets import Secrets
from headgate.sources.uploads import Uploads
from headgate.stdio import surface_of
from headgate.store.maintenance import backup_to_send
from headgate.store.semantic.choice import what_leaves
from headgate.telemetry import get_logger
from headgate.web.api.oauth import oauth_addresses
from headgate.web.app import AppConfig, Lifespan, build_app
from headgate.web.guard import AllowedCallers
from headgate.web.server import listen, serve
from headgate.web.services import WebServices
from headgate.wiring import AppServices, build_services, mcp_url, prepare, serving_on, welcome_url
from headgate.workers import run_workers

_MINUTE_SECONDS = 60
#: What making a key of a passphrase takes.
_PASSPHRASE_BYTES = 256 * 1024 * 1024


def build_config(settings: Settings, program: AppServices) -> AppConfig:
    """Put the web application's parts together."""
    mcp = HostedMcp(
        HandleMaker(program.read_services.sealer),
        ServerIdentity(__version__, icon=f"{mcp_url(settings).removesuffix('/mcp')}/icon.svg"),
        surface=surface_of(settings),
    )
    gateway = build_gateway(settings, program)
    console = build_console(settings, program, gateway)
    services = WebServices(
        version=__version__,
        reads=program.read_services,
        admission=program.admission,
        intake=console.intake,
        uploads=console.uploads,
        revoke_grant=partial(revoke_grant, program.ledger, program.admission, clock=program.clock),
        mcp=mcp,
        gateway=gateway,
        gateway_callers=build_callers(settings, program),
        public_url=settings.public_url,
        home_path="" if settings.home == Path(DEFAULT_HOME) else str(settings.home.resolve()),
        supervisor=program.supervisor,
        home_mark=_home_mark(settings),
    )
    service = build_authorization(settings, program)
    consent = ConsentServices(console.sessions, service, program.read_services, console.gateway_callers)
    own_names = {settings.host, *filter(None, [urlsplit(settings.public_url).hostname])}
    return AppConfig(
        services=services,
        allowed=AllowedCallers(
            hosts=frozenset(own_names) | settings.allowed_hosts,
            origins=settings.allowed_origins,
            max_requests=settings.max_requests,
        ),
        limits=program.limits.requests,
        introspection_password=load_secret(program.home),
        lifespan=lambda _app: _all(
            program.running,
            mcp.running,
            *([gateway.running] if gateway else []),
            partial(_fetching_accounts, settings, program),
            console.uploads.cleaning,
        ),
        more_addresses=(*console_addresses(console), *oauth_addresses(service), *consent_addresses(consent)),
    )


def build_authorization(settings: Settings, program: AppServices) -> AuthorizationService:
    """Put together the authorization server."""
    return AuthorizationService(
        program.oauth_store,
        now=lambda: program.latest.raise_to(program.clock()),
        certain=lambda: program.latest.certain(program.clock()),
        documents=ClientDocuments(fetch_document, program.clock),
        reuse_window_seconds=settings.refresh_window,
        on_reuse=partial(_note_reuse, program),
        limits=program.limits.registrations,
    )


def _note_reuse(program: AppServices, family: TokenFamily) -> None:
    """Log that the tokens of a client were revoked because one of them was used twice."""
    get_logger().warning(
        "a refresh token was used again, so its tokens were revoked", client_id=family.client_id
    )
    program.read_services.discloser.write(
        Disclosure(
            at=program.clock(),
            request_id=RequestId(f"req_{secrets.token_hex(8)}"),
            token_kind=family.kind.value,
            client_id=ClientId(family.client_id),
            grant_ids=family.grant_ids,
            package_id=family.package_id,
            via="POST /oauth/token",
            outcome="refresh_token_reused",
        )
    )


def build_console(
    settings: Settings, program: AppServices, gateway: HostedGateway | None = None
) -> ConsoleServices:
    """Put together what the owner's pages are drawn from."""
    return ConsoleServices(
        sessions=build_sessions(program, passkey_names(settings.public_url, settings.host, settings.port)),
        clients=program.clients(),
        activity=Activity(program.ledger, program.home),
        reads=program.read_services,
        spans=StreamSpans(program.read_services),
        admission=program.admission,
        flush_log=program.pump.flush,
        clock=program.clock,
        facts=ConsoleFacts(
            __version__,
            str(program.home.path),
            mcp_url(settings),
            public_url=settings.public_url,
            meaning=what_leaves(settings.semantic_model),
            logs_queries=settings.log_queries,
        ),
        intake=Intake(program.store, program.clock),
        uploads=Uploads(program.home.path, program.store, clock=program.clock, supervisor=program.supervisor),
        supervisor=program.supervisor,
        gateway=gateway,
        gateway_callers=build_callers(settings, program),
        key_ages=partial(key_ages, program.home),
        alarm_factor=settings.alarm_factor,
        make_backup=partial(_make_backup, home_in(program.home, settings.store_url, settings.store_home)),
    )


def _make_backup(home: Home, passphrase: str) -> IO[bytes]:
    # Keys are made of passphrases with much memory, so that guessing is slow.
    memory.require(_PASSPHRASE_BYTES)
    return backup_to_send(home, passphrase, names=small_files(home))


def build_callers(settings: Settings, program: AppServices) -> GatewayCallers:
    """Put together what knows the gateway's callers."""
    return GatewayCallers(program.oauth_store, settings.gateway_clients, program.clock)


def _home_mark(settings: Settings) -> str:
    # In a database the home has a name, under which several machines may serve it.
    place = (
        f"{settings.store_url}#{settings.store_home}" if settings.store_url else str(settings.home.resolve())
    )
    return hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:8]


def build_sessions(program: AppServices, names: Sequence[PasskeyParty] = ()) -> OwnerSessions:
    """Put together what signs the owner in; passkeys are for the given names of the server."""
    owner, clock, latest = program.ledger.owner, program.clock, program.latest
    sealer = program.read_services.sealer
    passkeys = Passkeys(owner, sealer=sealer, clock=clock, latest=latest, names=names)
    return OwnerSessions(owner, passkeys, clock=clock, latest=latest, limits=program.limits.sign_ins)


@asynccontextmanager
async def _fetching_accounts(settings: Settings, program: AppServices) -> AsyncGenerator[None]:
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
        program.store,
        live_sources(program.home.path, os.environ),
        program.clock,
        settings.sync_minutes * _MINUTE_SECONDS,
    )
    async with scheduled(program.home, accounts, program.supervisor, program.has_turn):
        yield


@asynccontextmanager
async def _all(*parts: Callable[[], AbstractAsyncContextManager[None]]) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part())
        yield


def build_gateway(settings: Settings, program: AppServices) -> HostedGateway | None:
    """Build the gateway over the servers of a file, when there is one."""
    if settings.gateway_servers is None:
        return None
    try:
        entries, problems = read_servers(json.loads(settings.gateway_servers.read_bytes()))
    except (OSError, ValueError, AdapterConfigInvalid) as error:
        raise ConfigInvalid(
            f"{settings.gateway_servers} cannot be used: {error}.",
            hint="Give a JSON file with an mcpServers object, or set no gateway_servers.",
            param="gateway_servers",
        ) from error
    for name, problem in problems.items():
        get_logger().warning("a server is left out", server=name, reason=problem.message)
    pins, secrets_of = FilePins(program.home.path / "pins.json"), Secrets()
    adapter = partial(FromMCP, pins=pins, options=ImportOptions(on_bad_tool="skip"))
    return HostedGateway(
        entries,
        lambda entry: import_entry(entry, secrets_of, adapter),
        __version__,
        pins.stamp,
        program.supervisor,
    )


def run_server(
    settings: Settings,
    announce: Callable[[str, Home, str | None], None],
) -> None:
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
        program = build_services(settings, home)
        config = build_config(settings, program)
        first = FirstLink(build_sessions(program))
        if number == 0:
            config = replace(config, lifespan=_then(config.lifespan, first.make))

        def on_ready() -> None:
            begin()
            if number == 0:
                ready(first.secret)

        return serve(build_app(config), bound, on_ready, settings.trusted_proxies)

    # Created before the workers fork, so that they do not race to create them.
    load_ring(home)
    load_secret(home)
    load_audit_key(home_in(home, settings.store_url, settings.store_home))
    with serving_on(home, address):
        in_order = work(0, _begin_alone) if settings.workers == 1 else run_workers(settings.workers, work)
    log.info("stopped")
    if not in_order:
        raise ServerFault("The server was stopped before its work was done.", hint="Look at the log.")


def _then(lifespan: Lifespan, start: Callable[[], Awaitable[None]]) -> Lifespan:
    @asynccontextmanager
    async def both(app: Any) -> AsyncGenerator[None]:
        async with lifespan(app):
            await start()
            yield

    return both


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
