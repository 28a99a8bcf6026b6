from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest

from headgate import __version__
from tests.on_socket import WAIT_SECONDS, headgate, served_program, serving


def get(address: str) -> tuple[int, str, str]:
    with urllib.request.urlopen(address, timeout=WAIT_SECONDS) as answer:
        return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_serve_answers_healthz(tmp_path: Path):
    with serving(tmp_path) as server:
        status, kind, body = get(f"{server.address}/healthz")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body) == {"status": "ok", "version": __version__}


def test_serve_says_what_it_is_where_it_is_and_how_to_stop_it(tmp_path: Path):
    with serving(tmp_path) as server:
        assert server.announcement.splitlines() == [
            f"Headgate {__version__} serves {server.address}",
            f"  home  {tmp_path / 'home'}",
            "  stop  Ctrl-C",
        ]


def test_serve_makes_the_home_for_its_owner_alone(tmp_path: Path):
    with serving(tmp_path):
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serve_stops_cleanly_when_asked(tmp_path: Path, stop: signal.Signals):
    with serving(tmp_path) as server:
        get(f"{server.address}/healthz")
        server.process.send_signal(stop)
        _, err = server.process.communicate(timeout=WAIT_SECONDS)
    assert server.process.returncode == 0, err
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["serving", "request", "stopped"]


def test_serve_on_an_address_in_use_says_so(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        outcome = headgate(tmp_path, "--home", "home", "serve", "--port", str(taken.getsockname()[1]))
    assert outcome.code == 78
    assert "--port" in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_person_who_opens_the_address_in_a_browser_comes_to_the_console(tmp_path: Path):
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("chromium is not on this machine")
    with serving(tmp_path) as server:
        page = subprocess.run(
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                f"--user-data-dir={tmp_path / 'b'}",
                "--dump-dom",
                server.address,
            ],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
    assert "<h1>Sign in</h1>" in page


def granted_url(place: Path, **extra: str) -> str:
    """Give the address that a new grant says to connect to."""
    made = headgate(
        place, "--home", "home", "grants", "create", "--client", "agent", "--yes", "--json", **extra
    )
    assert made.code == 0, made.err
    return json.loads(made.out)["mcp_url"]


def test_a_grant_names_the_port_that_is_served(tmp_path: Path):
    with served_program(tmp_path) as served:
        served.connect()
        assert granted_url(tmp_path) == f"{served.address}/mcp"
        public = "https://gate.example"
        assert granted_url(tmp_path, HEADGATE_PUBLIC_URL=public) == f"{public}/mcp"
    # The server was killed and has left its address behind, which is believed no more.
    assert granted_url(tmp_path, HEADGATE_PORT="8765") == "http://127.0.0.1:8765/mcp"
    with serving(tmp_path) as again, serving(tmp_path):
        assert granted_url(tmp_path) == f"{again.address}/mcp"
