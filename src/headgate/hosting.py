"""Serve a home on HTTP: the web application and the hosted MCP server, put together from the program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlsplit

from headgate import __version__
from headgate.auth.desk import Desk
from headgate.auth.introspect import load_secret
from headgate.auth.keys import load_ring
from headgate.errors import ServerFault
from headgate.home import Home
from headgate.mcp.serve.handles import HandleMaker
from headgate.mcp.serve.hosted import HostedMcp
from headgate.mcp.serve.results import Identity
from headgate.reading.journal import load_audit_key
from headgate.settings import Settings
from headgate.sources.intake import Intake
from headgate.telemetry import get_logger
from headgate.web.api.calls import Rooms
from headgate.web.app import Site, build_app
from headgate.web.guard import Doorstep, Limits
from headgate.web.mcp import Doorkeeper, mcp_routes
from headgate.web.server import listen, serve, serve_with_workers
from headgate.wiring import Program, build_program, mcp_url, prepare


def build_site(settings: Settings, program: Program) -> Site:
    """Say what the web application is built from."""
    intake = Intake(program.store, clock=program.clock)
    limits = Limits(settings.rate_limit)
    hosted = HostedMcp(
        Doorkeeper(program.house, program.admission, limits, settings.public_url),
        HandleMaker(program.house.sealer),
        Identity(__version__, icon=f"{mcp_url(settings).removesuffix('/mcp')}/icon.svg"),
    )
    own = {settings.host, *filter(None, [urlsplit(settings.public_url).hostname])}
    return Site(
        version=__version__,
        rooms=Rooms(program.house, program.admission, intake),
        desk=Desk(program.ledger, program.admission, clock=program.clock),
        doorstep=Doorstep(
            hosts=frozenset(own) | settings.allowed_hosts,
            origins=settings.allowed_origins,
            most_at_once=settings.max_requests,
        ),
        limits=limits,
        introspection_secret=load_secret(program.home),
        lifespan=lambda _app: _both(program.running(), hosted.running()),
        more=mcp_routes(hosted),
        authorization_server=settings.public_url or None,
    )


@asynccontextmanager
async def _both(
    outer: AbstractAsyncContextManager[None], inner: AbstractAsyncContextManager[None]
) -> AsyncGenerator[None]:
    async with outer, inner:
        yield


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
        program = build_program(settings, home)
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
