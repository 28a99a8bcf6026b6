"""F1: `kill -9` while records come in loses nothing that was acknowledged, and tears no batch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Figure

ROOT = Path(__file__).parents[3]


def kill(place: Path, kills: int, seed: int, figure: Figure) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.store.killed", str(place), str(kills), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    figure("F1", done.stdout.strip())
    return figures


def assert_nothing_was_lost(figures: dict[str, Any], kills: int) -> None:
    assert figures["kills"] == kills
    assert figures["acknowledged"] > kills
    assert (figures["lost"], figures["torn"], figures["unsound"]) == (0, 0, [])


def test_ten_kills_lose_nothing_and_tear_nothing(tmp_path: Path, figure: Figure):
    assert_nothing_was_lost(kill(tmp_path, 10, 1, figure), 10)


@pytest.mark.soak
def test_two_thousand_kills_lose_nothing_and_tear_nothing(tmp_path: Path, figure: Figure):
    assert_nothing_was_lost(kill(tmp_path, 2000, 2, figure), 2000)
