"""F1 for care: a backup, a restoring or an erasure that is killed has not begun or is done; again, it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHORES = ["backup", "restore", "erase-record", "erase-connection"]


def kill(place: Path, chore: str, *, most_steps: int, moments: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.store.stopped", place, chore, str(most_steps), str(moments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    print(f"F1, {chore}: {figures}")  # noqa: T201 - the figures are the point
    assert figures["wrong"] == []
    assert figures["kills"] >= min(most_steps, figures["steps"]) * 9 // 10
    assert figures["old"] + figures["new"] >= figures["kills"]


@pytest.mark.parametrize("chore", CHORES)
def test_a_killed_chore_leaves_the_old_state_or_the_new_and_ends_when_given_again(tmp_path: Path, chore: str):
    kill(tmp_path, chore, most_steps=25, moments=5)


@pytest.mark.soak
@pytest.mark.parametrize("chore", CHORES)
def test_a_chore_killed_at_every_step_leaves_the_old_state_or_the_new(tmp_path: Path, chore: str):
    kill(tmp_path, chore, most_steps=10_000, moments=100)
