"""Serve a home on HTTP: the web application and the hosted MCP server, put together from the program."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from headgate import __version__
from headgate.audit.chain import load_audit_key
from headgate.auth.admission import Admission
from headgate.auth.introspect import load_secret
from headgate.auth.keys import load_ring
from headgate.auth.revoke import revoke_grant
from headgate.errors import AdapterConfigInvalid, ConfigInvalid, HeadgateError, ServerFault
from headgate.home import Home
from headgate.mcp.client.from_mcp import FromMCP, ImportOptions
from headgate.mcp.client.pins import FilePins
from headgate.mcp.client.servers import Secrets, import_entry, read_servers
from headgate.mcp.gateway.hosted import SCOPE as GATEWAY_SCOPE, HostedGateway
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.hosted import HostedMcp
from headgate.mcp.serve.results import ServerIdentity
from headgate.operations.access import Identity
from headgate.settings import Settings
from headgate.sources.intake import Intake
from headgate.telemetry import get_logger
from headgate.web.api.calls import Rooms
from headgate.web.app import Site, build_app
from headgate.web.guard import Doorstep, Limits
from headgate.web.mcp import Doorkeeper, gateway_routes, mcp_apps, mcp_routes
from headgate.web.server import listen, serve, serve_with_workers
from headgate.wiring import AppServices, build_services, mcp_url, prepare


def build_site(settings: Settings, program: AppServices) -> Site:
    """Say what the web application is built from."""
    intake = Intake(program.store, clock=program.clock)
    limits = Limits(settings.rate_limit)
    hosted = HostedMcp(
        Doorkeeper(program.read_services, program.admission, limits, settings.public_url),
        HandleMaker(program.read_services.sealer),
        ServerIdentity(__version__, icon=f"{mcp_url(settings).removesuffix('/mcp')}/icon.svg"),
        with_fast_path=settings.mcp_fast_path,
    )
    gateway = build_gateway(settings, program)
    own = {settings.host, *filter(None, [urlsplit(settings.public_url).hostname])}
    return Site(
        version=__version__,
        rooms=Rooms(program.read_services, program.admission, intake),
        revoke=partial(revoke_grant, program.ledger, program.admission, clock=program.clock),
        doorstep=Doorstep(
            hosts=frozenset(own) | settings.allowed_hosts,
            origins=settings.allowed_origins,
            most_at_once=settings.max_requests,
        ),
        limits=limits,
        introspection_secret=load_secret(program.home),
        lifespan=lambda _app: _all(program.running, hosted.running, *([gateway.running] if gateway else [])),
        more=[
            *mcp_routes(),
            *(gateway_routes(gateway, program.admission, limits) if gateway else []),
        ],
        direct=mcp_apps(hosted),
        authorization_server=settings.public_url or None,
    )


@asynccontextmanager
async def _all(*parts: Callable[[], AbstractAsyncContextManager[None]]) -> AsyncGenerator[None]:
    async with AsyncExitStack() as stack:
        for part in parts:
            await stack.enter_async_context(part())
        yield


def build_gateway(settings: Settings, program: AppServices) -> HostedGateway | None:
    """Build the gateway over the servers of a file, when there is one.

    Raises:
        ConfigInvalid: the file cannot be read.
    """
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
        lambda token: _gateway_client(program.admission, token, settings.gateway_clients),
        __version__,
    )


async def _gateway_client(admission: Admission, token: str, clients: frozenset[str]) -> Identity | None:
    """Say which client of the gateway holds a token; an owner's token opens nothing here."""
    try:
        client = admission.admit(token).client_id
    except HeadgateError:
        return None
    return Identity(client, frozenset({GATEWAY_SCOPE})) if client is not None and client in clients else None


def run_server(settings: Settings, announce: Callable[[str, Home], None]) -> None:
    """Serve a home over HTTP until asked to stop.

    Raises:
        ServerFault: it did not stop in good order.
    """
    home = prepare(settings)
    taken = listen(settings.host, settings.port)
    host, port = taken.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log = get_logger().bind(version=__version__)

    def ready() -> None:
        log.info("serving", address=address, home=str(home.path))
        announce(address, home)

    def work(number: int) -> bool:
        program = build_services(settings, home)
        return serve(build_app(build_site(settings, program)), taken, ready if number == 0 else _say_nothing)

    # Made here once, so that workers do not race to make them.
    load_ring(home)
    load_secret(home)
    load_audit_key(home)
    in_order = work(0) if settings.workers == 1 else serve_with_workers(settings.workers, work)
    log.info("stopped")
    if not in_order:
        raise ServerFault("The server was stopped before its work was done.", hint="Look at the log.")


def _say_nothing() -> None:
    """Let the first worker speak for all."""
