"""One home with all worlds for all journeys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.sessions import SharedHome, shared_home


@pytest.fixture(scope="session")
def home() -> Iterator[SharedHome]:
    with shared_home() as made:
        yield made
