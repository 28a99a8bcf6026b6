"""Run the same work in several processes: start them, replace those that die, stop them together."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

from headgate.errors import ConfigInvalid

#: How a worker ends that could not begin its work.
_NOT_STARTED = 70

#: Does the work of a worker, given its number and what to call once it has begun; returns whether it ended in good order.
Work = Callable[[int, Callable[[], None]], bool]


def run_workers(workers: int, work: Work) -> bool:
    """Run the same work in several processes on one socket, and stop them all together.

    A worker that dies is replaced. One that cannot begin ends them all: the next one could not begin either. Returns
    whether all ended in good order.
    """
    if sys.platform == "win32":
        raise ConfigInvalid("Windows cannot share one socket among workers.", hint="Use --workers 1.")
    return _Workers(work).run(workers)


def ask_to_stop(pid: int) -> None:
    """Send SIGTERM to a worker, if it still runs."""
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


class _Workers:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._running: dict[int, int] = {}
        self._is_stopping = False

    def run(self, count: int) -> bool:
        before = {
            number: signal.signal(number, lambda _number, _frame: self._stop())
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        in_order = True
        try:
            for number in range(count):
                self._start(number)
            while self._running:
                in_order = self._wait_for_one() and in_order
        finally:
            for signal_number, handler in before.items():
                signal.signal(signal_number, handler)
        return in_order

    def _wait_for_one(self) -> bool:
        """Wait until a worker ends, and replace it; returns whether it ended as it should."""
        assert sys.platform != "win32"
        pid, status = os.wait()
        number = self._running.pop(pid, None)
        if number is None:
            return True
        code = os.waitstatus_to_exitcode(status)
        if not self._is_stopping and code == _NOT_STARTED:
            self._stop()
            return False
        if not self._is_stopping:
            self._start(number)
            return True
        return code == 0

    def _stop(self) -> None:
        self._is_stopping = True
        for pid in list(self._running):
            ask_to_stop(pid)

    def _start(self, number: int) -> None:
        assert sys.platform != "win32"
        # A signal between the fork and the note of the worker would stop all others and not this one.
        signals = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            if self._is_stopping:
                return
            pid = os.fork()
            if not pid:
                self._be_worker(number, signals)
            self._running[pid] = number
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

    def _be_worker(self, number: int, signals: set[signal.Signals]) -> None:
        assert sys.platform != "win32"
        for signal_number in signals:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        has_begun = False

        def begin() -> None:
            nonlocal has_begun
            has_begun = True

        code = 1
        try:
            code = 0 if self._work(number, begin) else 1
        except BaseException:  # noqa: BLE001 - the process ends here, and nothing after it would write this
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code if has_begun or code == 0 else _NOT_STARTED)
