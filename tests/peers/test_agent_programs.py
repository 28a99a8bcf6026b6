"""The agent programs themselves read what `headgate connect` writes and the lines that it prints.

They are large (two gigabytes together) and not among the locked packages: install them with
`npm install --prefix DIR @anthropic-ai/claude-code @openai/codex @google/gemini-cli @github/copilot opencode-ai
@qwen-code/qwen-code node@22`, and set HEADGATE_AGENT_PROGRAMS to `DIR/node_modules/.bin`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from headgate.agent_programs.programs import PROGRAMS, HttpServer, StdioServer, shell_line
from tests.in_process import local_program, record
from tests.on_socket import environment, headgate, serving
from tests.schema.declarations import declaration

pytestmark = pytest.mark.soak
#: The executable of each program, and what its list of servers prints of a server that it accepts.
LISTED = {
    "claude-code": ("claude", "Connected"),
    "codex": ("codex", "enabled"),
    "gemini-cli": ("gemini", "Connected"),
    "copilot-cli": ("copilot", "headgate"),
    "opencode": ("opencode", "connected"),
    "qwen-code": ("qwen", "Connected"),
}
PATHS = os.pathsep.join(filter(None, [os.environ.get("HEADGATE_AGENT_PROGRAMS"), os.environ["PATH"]]))


async def _fill(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        await program.ingest(connection, "messages", [record("m1", sent_at="2026-03-01T00:00:00Z")])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    asyncio.run(_fill(tmp_path))
    # The program that filled the home had a clock in the future.
    (tmp_path / "home" / "latest-time").unlink()
    # Gemini CLI starts no server in a folder that it was not asked to trust.
    (tmp_path / ".gemini").mkdir()
    trusted = json.dumps({str(tmp_path): "TRUST_FOLDER"})
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(trusted, encoding="utf-8")
    return tmp_path


def listed(place: Path, name: str) -> str:
    """Let a program list its servers, as the person does."""
    return started(place, executable_of(name), "mcp", "list")


def started(place: Path, *command: str) -> str:
    variables = environment(place, {"PATH": PATHS})
    done = subprocess.run(
        command, cwd=place, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def executable_of(name: str) -> str:
    executable = LISTED[name][0]
    found = shutil.which(executable, path=PATHS)
    if found is None:
        pytest.skip(f"needs {executable}; see the head of this file")
    return found


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("name", LISTED)
def test_a_program_accepts_what_is_written_into_its_configuration(place: Path, name: str, way: str):
    executable_of(name)
    with serving(place):
        flags = ["--http"] if way == "http" else []
        made = headgate(place, "--home", str(place / "home"), "connect", name, "--write", "--yes", *flags)
        assert made.code == 0, made.err
        shown = listed(place, name)
    assert "headgate" in shown
    assert LISTED[name][1] in shown, shown


@pytest.mark.parametrize("name", ["claude-code", "gemini-cli"])
def test_the_line_of_a_program_adds_the_server_for_all_projects(place: Path, name: str):
    executable = executable_of(name)
    servers = (
        HttpServer("http://127.0.0.1:9/mcp", "hg_x"),
        StdioServer(["headgate", "mcp", "--client", name]),
    )
    lines = [line for one in servers if (line := shell_line(PROGRAMS[name], one))]
    assert lines
    for line in lines:
        started(place, executable, *shlex.split(line)[1:])
        assert "headgate" in PROGRAMS[name].file("linux", place, {}).read_text(encoding="utf-8")
        PROGRAMS[name].file("linux", place, {}).unlink()
