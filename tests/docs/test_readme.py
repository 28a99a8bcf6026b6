"""The README's walk from a file to a refusal does what it says, each command as it is written there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.on_socket import environment, serving

ROOT = Path(__file__).parents[2]
WALK = (
    (ROOT / "README.md")
    .read_text(encoding="utf-8")
    .partition("## From a file to a refusal")[2]
    .partition("\n## ")[0]
)
IMPORT, START, *BLOCKS = re.findall(r"```sh\n(.*?)```", WALK, re.DOTALL)
PRINTED = re.search(r"```text\n(.*?)```", WALK, re.DOTALL)[1]
SHOWN = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", WALK, re.DOTALL)]


@pytest.fixture
def walked(tmp_path: Path) -> list[str]:
    """What each block printed; only the port is another, so that it is free."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    with serving(tmp_path) as served:
        script = "\necho '-----'\n".join(["set -eu", IMPORT, *BLOCKS]).replace(
            "127.0.0.1:8321", served.address[7:]
        )
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path, env=environment(tmp_path, {}), capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("-----\n")[1:]


def test_the_second_terminal_starts_a_server():
    assert START == ".venv/bin/headgate --home ./home serve\n"


def test_the_walk_from_a_file_to_a_refusal_goes_as_it_is_written(walked: list[str]):
    taken, read, ended = walked
    assert re.match(re.escape(PRINTED).replace(r"\.\.\.", r"\w+"), taken)
    words, page = read.split("\n{", 1)
    assert "agent may read" in words
    rows = json.loads("{" + page)["data"]
    assert [row["data"]["subject"] for row in rows] == [
        "The plot for this year",
        "Invoice 2026-117",
        "Re: Offer for the roof",
    ]
    assert all(row["data"].keys() == {"id", "from", "sent_at", "subject"} for row in rows)
    log, refusal = ended.split("\n{", 1)
    assert re.search(r"agent  GET /v1/streams/\{stream\}/records  answered  3 records", log)
    assert "is revoked." in log
    error = json.loads("{" + refusal)["error"]
    assert {name: error[name] for name in ("type", "code")} == {
        name: SHOWN[0]["error"][name] for name in ("type", "code")
    }
