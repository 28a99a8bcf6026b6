from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.store.engines import ENGINES, Driven
from tests.store.ledger import Ledger


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def store(engine: str, tmp_path: Path) -> Generator[Driven]:
    """An empty store of each engine."""
    driven = Driven(engine, tmp_path / "home")
    yield driven
    driven.close()


@pytest.fixture
def ledger(store: Driven) -> Ledger:
    """A store of each engine with the declaration and two connections."""
    return Ledger(store, connections=2)
