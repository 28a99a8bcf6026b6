"""Run the application on a socket until a signal stops it."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from headgate.errors import ConfigInvalid
from headgate.web.http import LimitedHttpProtocol

_DRAIN_SECONDS = 10
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2048
_SWITCH_SECONDS = 0.0005
_ALLOCATIONS_BETWEEN_COLLECTIONS = 5_000


def listen(host: str, port: int) -> socket.socket:
    """Bind the address, before the server is announced on it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise ConfigInvalid(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.",
            hint="Choose another with --host or --port.",
        ) from error
    return bound


def serve(
    app: ASGIApp, bound: socket.socket, on_ready: Callable[[], None], proxies: Collection[str] = ()
) -> bool:
    """Serve until SIGINT or SIGTERM; requests in flight get a few seconds to finish.

    ``proxies`` are the addresses whose X-Forwarded-* headers are trusted.

    Returns True after a graceful shutdown, False if a second signal forced it.
    """
    config = uvicorn.Config(
        app,
        interface="asgi3",
        http=LimitedHttpProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=",".join(proxies),
        lifespan="on",
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    server = _AnnouncingServer(config, on_ready)
    # How soon a thread that computes beside the loop releases the interpreter. With Python's 5 ms every request
    # that touches a file or a socket meanwhile would wait that long.
    sys.setswitchinterval(_SWITCH_SECONDS)
    with _signals_handled_by_uvicorn_only():
        server.run(sockets=[bound])
    return server.started and not server.force_exit


@contextmanager
def _signals_handled_by_uvicorn_only() -> Generator[None]:
    """Let a signal stop the server without ending the process.

    Uvicorn stops cleanly and then raises the signal again for the handler that was set before it; the default
    handler would end the process as if it had been killed.
    """
    before = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing."""


def _tune_garbage_collection() -> None:
    """Exclude the objects of the start from garbage collection, and make collections rarer.

    They live as long as the program does, and requests leave few reference cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS, 10, 10)


class _AnnouncingServer(uvicorn.Server):
    """A server that calls back when it listens, and ends at once on a second signal."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _tune_garbage_collection()
            self._on_ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop in order on the first signal, at once on the second."""
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)
