"""Run the application on a socket until a signal asks it to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from headgate.errors import ConfigInvalid

_DRAIN_SECONDS = 10


def listen(host: str, port: int) -> socket.socket:
    """Take the address, before anything is said about serving on it.

    Raises:
        ConfigInvalid: the address is in use or is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, port))
    except OSError as error:
        taken.close()
        raise ConfigInvalid(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.",
            hint="Choose another with --host or --port.",
        ) from error
    return taken


def serve(app: ASGIApp, taken: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; requests in flight get a few seconds to finish."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    with _signals_that_end_nothing():
        _Announcing(config, on_ready).run(sockets=[taken])


@contextmanager
def _signals_that_end_nothing() -> Generator[None]:
    """Let a signal stop the server and no more.

    Uvicorn stops on it cleanly and then raises it again for whoever handled it before; that handler
    would end the process as if it had been killed, though the owner got just what was asked for.
    """
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing."""


class _Announcing(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()
