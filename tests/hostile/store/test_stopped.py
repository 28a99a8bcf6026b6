"""F1 for maintenance: a killed backup, restore or erasure has not begun or is done; run again, it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Figure

ROOT = Path(__file__).parents[3]
COMMANDS = ["backup", "restore", "erase-record", "erase-connection"]


def kill(place: Path, command: str, *, most_steps: int, moments: int, figure: Figure) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.store.stopped", place, command, str(most_steps), str(moments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    figure("F1", f"{command}: {done.stdout.strip()}")
    assert figures["wrong"] == []
    assert figures["kills"] >= min(most_steps, figures["steps"]) * 9 // 10
    assert figures["old"] + figures["new"] >= figures["kills"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_leaves_the_old_state_or_the_new_and_ends_when_run_again(
    tmp_path: Path, command: str, figure: Figure
):
    kill(tmp_path, command, most_steps=4, moments=2, figure=figure)


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_killed_at_every_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, command: str, figure: Figure
):
    kill(tmp_path, command, most_steps=10_000, moments=100, figure=figure)
