"""What every test shares."""

from __future__ import annotations

import gc
import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.store.ledgers import LedgerHome

Figure = Callable[[str, str], None]

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    # A shell starts what it runs in the background so, and the programs of the tests would never be interrupted.
    signal.signal(signal.SIGINT, signal.default_int_handler)


# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Exclude the tests and all modules from garbage collection: they stay, and one look at them takes long."""
    gc.freeze()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def the_log_has_its_usual_level() -> None:
    """A program that was started in this process, by any fixture or test before, has set another one."""
    logging.getLogger().setLevel(logging.WARNING)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what takes a ledger with each engine. Some tests run without the packages of any, so these are imported late."""
    if "ledgers" in metafunc.fixturenames:
        from tests.store.ledgers import LEDGERS  # noqa: PLC0415 - for that reason

        metafunc.parametrize("ledgers", list(LEDGERS), indirect=True)


@pytest.fixture
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerHome:
    """A new home, whose ledger is opened with each engine."""
    from headgate.home import open_home  # noqa: PLC0415 - the same
    from tests.store.ledgers import LEDGERS, LedgerHome  # noqa: PLC0415 - the same

    return LedgerHome(open_home(tmp_path / "home"), LEDGERS[request.param])


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Figure:
    """Note what a fault test measured; it is shown at the end of the run."""
    return lambda fault, text: record_property("figure", f"{fault}  {text}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    figures = [
        value
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for name, value in report.user_properties
        if name == "figure" and report.when == "call"
    ]
    if figures:
        terminalreporter.section("figures")
        for one in sorted(figures):
            terminalreporter.write_line(str(one))
