"""What every test shares."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

Figure = Callable[[str, str], None]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def the_log_has_its_usual_level() -> None:
    """A program that was started in this process, by any fixture or test before, has set another one."""
    logging.getLogger().setLevel(logging.WARNING)


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
