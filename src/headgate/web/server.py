"""Run the application on a socket until a signal asks it to stop."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from headgate.errors import ConfigInvalid
from headgate.web.head import HEAD, Head
from headgate.web.protocol import PatientProtocol

_DRAIN_SECONDS = 10
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2048
_SWITCH_SECONDS = 0.0005
_ALLOCATIONS_BETWEEN_ROUNDS = 5_000


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


def serve(app: ASGIApp, taken: socket.socket, on_ready: Callable[[], None]) -> bool:
    """Serve until SIGINT or SIGTERM; requests in flight get a few seconds to finish.

    Gives whether it ended in good order: a second signal ends it at once, and not so.
    """
    config = uvicorn.Config(
        _Forwarding(app),
        interface="asgi3",
        http=PatientProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Done by our own wrapper, which does nothing for requests that no proxy has passed on.
        proxy_headers=False,
        lifespan="on",
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    server = _Announcing(config, on_ready)
    # Threads that compute beside the loop hand the interpreter back this soon; it would be 5 ms otherwise,
    # which every request that touches a file or a socket meanwhile would wait for.
    sys.setswitchinterval(_SWITCH_SECONDS)
    with _signals_that_end_nothing():
        server.run(sockets=[taken])
    return server.started and not server.force_exit


def serve_with_workers(workers: int, work: Callable[[int], bool]) -> bool:
    """Run the same work in several processes on one socket, and stop them all together.

    A worker that dies is replaced. Gives whether all ended in good order.
    """
    running = {_start(number, work): number for number in range(workers)}
    stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for pid in running:
            ask_to_stop(pid)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    in_order = True
    try:
        while running:
            pid, status = os.wait()
            number = running.pop(pid, None)
            if number is None:
                continue
            if stopping:
                in_order = in_order and os.waitstatus_to_exitcode(status) == 0
            else:
                running[_start(number, work)] = number
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
    return in_order


def ask_to_stop(pid: int) -> None:
    """Ask a worker to stop, if it is still there."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def _start(number: int, work: Callable[[int], bool]) -> int:
    pid = os.fork()
    if pid:
        return pid
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_DFL)
    code = 1
    try:
        code = 0 if work(number) else 1
    finally:
        os._exit(code)


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


def _settle() -> None:
    """Take what was made at the start out of the rounds that look for garbage, and make those rounds rarer.

    It lives as long as the program does, and answers leave hardly any garbage that needs looking for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_BETWEEN_ROUNDS, 10, 10)


class _Forwarding:
    """Believes a proxy in front of the server what it says about a request: its scheme, and who sent it.

    Which proxies are believed is uvicorn's to say: this machine, or those in ``FORWARDED_ALLOW_IPS``.
    """

    __slots__ = ("_app", "_believing")

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        proxies = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")
        self._believing = ProxyHeadersMiddleware(cast("Any", app), trusted_hosts=proxies)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass a request on, as it was before a proxy if it came through one."""
        head: Head | None = scope.get(HEAD)
        if head is not None and head.is_forwarded:
            return self._believing(cast("Any", scope), cast("Any", receive), cast("Any", send))
        return self._app(scope, receive, send)


class _Announcing(uvicorn.Server):
    """A server that says when it answers, and does not outlive a second signal."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            _settle()
            self._on_ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop; asked twice, stop at once."""
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)
