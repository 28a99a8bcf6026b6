"""Serve a home on HTTP: the web application and the hosted MCP server, put together from the program."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from headgate import __version__
from headgate.audit.chain import load_audit_key
from headgate.auth.introspect import load_secret
from headgate.auth.keys import load_ring
from headgate.auth.revoke import revoke_grant
from headgate.errors import AdapterConfigInvalid, ConfigInvalid, ServerFault
from headgate.home import Home
from headgate.mcp.client.from_mcp import FromMCP, ImportOptions
from headgate.mcp.client.pins import FilePins
from headgate.mcp.client.servers import Secrets, import_entry, read_servers
from headgate.mcp.gateway.hosted import HostedGateway
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.hosted import HostedMcp
from headgate.mcp.serve.results import ServerIdentity
from headgate.settings import Settings
from headgate.sources.intake import Intake
from headgate.telemetry import get_logger
from headgate.web.app import AppConfig, build_app
from headgate.web.guard import AllowedCallers
from headgate.web.limits import RequestLimits
from headgate.web.server import listen, serve
from headgate.web.services import WebServices
from headgate.wiring import AppServices, build_services, mcp_url, prepare
from headgate.workers import run_workers


def build_config(settings: Settings, program: AppServices) -> AppConfig:
    """Put the web application's parts together."""
    mcp = HostedMcp(
        HandleMaker(program.read_services.sealer),
        ServerIdentity(__version__, icon=f"{mcp_url(settings).removesuffix('/mcp')}/icon.svg"),
        with_fast_path=settings.mcp_fast_path,
    )
    gateway = build_gateway(settings, program)
    services = WebServices(
        version=__version__,
        reads=program.read_services,
        admission=program.admission,
        intake=Intake(program.store, clock=program.clock),
        revoke_grant=partial(revoke_grant, program.ledger, program.admission, clock=program.clock),
        mcp=mcp,
        gateway=gateway,
        gateway_clients=settings.gateway_clients,
        public_url=settings.public_url,
    )
    own_names = {settings.host, *filter(None, [urlsplit(settings.public_url).hostname])}
    return AppConfig(
        services=services,
        allowed=AllowedCallers(
            hosts=frozenset(own_names) | settings.allowed_hosts,
            origins=settings.allowed_origins,
            max_requests=settings.max_requests,
        ),
        limits=RequestLimits(settings.rate_limit),
        introspection_password=load_secret(program.home),
        lifespan=lambda _app: _all(program.running, mcp.running, *([gateway.running] if gateway else [])),
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
        __version__,
    )


def run_server(settings: Settings, announce: Callable[[str, Home], None]) -> None:
    """Serve a home over HTTP until asked to stop.

    Raises:
        ServerFault: it did not stop in good order.
    """
    home = prepare(settings)
    bound = listen(settings.host, settings.port)
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log = get_logger().bind(version=__version__)

    def ready() -> None:
        log.info("serving", address=address, home=str(home.path))
        announce(address, home)

    def work(number: int) -> bool:
        program = build_services(settings, home)
        return serve(
            build_app(build_config(settings, program)), bound, ready if number == 0 else _announce_nothing
        )

    # Created before the workers fork, so that they do not race to create them.
    load_ring(home)
    load_secret(home)
    load_audit_key(home)
    in_order = work(0) if settings.workers == 1 else run_workers(settings.workers, work)
    log.info("stopped")
    if not in_order:
        raise ServerFault("The server was stopped before its work was done.", hint="Look at the log.")


def _announce_nothing() -> None:
    """Leave the announcement to the first worker."""
