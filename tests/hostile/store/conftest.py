"""What tests of cut connections share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from headgate.audit import pump
from headgate.store.changes import writer
from tests import postgres
from tests.hostile.store.cut_scene import Scene, cut_scene
from tests.postgres_proxy import CuttingProxy, cutting_proxy


@pytest.fixture
def nothing_runs_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the statements of the work be the only ones: what runs by itself waits longer than any test."""
    monkeypatch.setattr(pump, "PAUSE_SECONDS", 3600.0)
    monkeypatch.setattr(writer, "IDLE_SECONDS", 3600.0)


@pytest.fixture
def proxy() -> Generator[CuttingProxy]:
    """Cut connections on their way to the tests' server."""
    postgres.database_url()
    with cutting_proxy(postgres.server().folder) as made:
        yield made


@pytest.fixture
async def at(tmp_path: Path, proxy: CuttingProxy) -> AsyncGenerator[Scene]:
    """A program over a proxy; at the end its records and its log must be whole."""
    async with cut_scene(tmp_path, proxy) as scene:
        yield scene
        await scene.assert_whole()
