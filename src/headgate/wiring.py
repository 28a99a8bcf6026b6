"""The one place that builds the whole program from settings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from headgate import __version__
from headgate.home import Home, open_home
from headgate.settings import Settings
from headgate.telemetry import configure_logs, get_logger
from headgate.web.app import build_app
from headgate.web.server import listen, serve


def prepare(settings: Settings) -> Home:
    """Set up logs and the home: what every command that works on a home needs first."""
    configure_logs(settings.log_level, settings.log_format, sys.stderr)
    return open_home(Path(settings.home))


def run_server(settings: Settings, announce: Callable[[str, Home], None]) -> None:
    """Serve a home over HTTP until asked to stop."""
    home = prepare(settings)
    taken = listen(settings.host, settings.port)
    host, port = taken.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    log = get_logger().bind(version=__version__)

    def ready() -> None:
        log.info("serving", address=address, home=str(home.path))
        announce(address, home)

    serve(build_app(__version__), taken, ready)
    log.info("stopped")
