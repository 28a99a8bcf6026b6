"""The systemd user unit: written, enabled, removed, and right for any home."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.on_socket import headgate, serving

ODD = 'a "strange" $HOME with 100% \\ spaces; and quotes'


def unit_of(place: Path) -> Path:
    return place / "etc" / "systemd" / "user" / "headgate.service"


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="this machine has no systemd")
def test_the_unit_serves_the_home_is_enabled_and_removed(tmp_path: Path):
    home = tmp_path / "home"
    done = headgate(tmp_path, "--home", str(home), "service", "install")
    assert done.code == 0, done.err
    assert "systemctl --user start headgate" in done.out
    (line,) = [line for line in unit_of(tmp_path).read_text().splitlines() if line.startswith("ExecStart=")]
    assert line == f"ExecStart={sys.executable} -m headgate --home {home} serve"
    link = unit_of(tmp_path).parent / "default.target.wants" / "headgate.service"
    assert link.resolve() == unit_of(tmp_path)
    with serving(tmp_path) as server:
        shown = json.loads(headgate(tmp_path, "--home", str(home), "service", "status", "--json").out)
        assert shown == {
            "unit": str(unit_of(tmp_path)),
            "installed": True,
            "enabled": True,
            "address": server.address,
        }
    assert headgate(tmp_path, "service", "remove").code == 0
    assert not unit_of(tmp_path).exists()
    assert not link.is_symlink()
    assert headgate(tmp_path, "service", "remove").out == "No unit is installed.\n"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_systemd_accepts_the_unit_of_a_home_with_a_strange_name(tmp_path: Path):
    done = headgate(tmp_path, "--home", str(tmp_path / ODD), "service", "install")
    assert done.code == 0, done.err
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit_of(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "headgate.service" not in checked.stderr, checked.stderr


def test_a_home_that_no_unit_can_name_is_refused(tmp_path: Path):
    done = headgate(tmp_path, "--home", str(tmp_path / "two\nlines"), "service", "install")
    assert done.code != 0
    assert "--home DIR" in done.err
    assert not unit_of(tmp_path).exists()
