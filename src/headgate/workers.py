"""Run the same work in several processes: start them, replace those that die, stop them together."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from headgate.errors import ConfigInvalid


def run_workers(workers: int, work: Callable[[int], bool]) -> bool:
    """Run the same work in several processes on one socket, and stop them all together.

    A worker that dies is replaced. Returns whether all ended in good order.

    Raises:
        ConfigInvalid: this system cannot continue one process as several.
    """
    if sys.platform == "win32":
        raise ConfigInvalid("Windows cannot share one socket among workers.", hint="Use --workers 1.")
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
    """Send SIGTERM to a worker, if it still runs."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def _start(number: int, work: Callable[[int], bool]) -> int:
    assert sys.platform != "win32"
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
