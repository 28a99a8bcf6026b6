"""The doctor against a real server, through a proxy that spoils things, and on a home that is open to others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from tests.in_process import local_program, record
from tests.on_socket import Outcome, headgate, serving
from tests.schema.declarations import declaration


def examined(place: Path, **extra: str) -> tuple[int, dict[str, Any]]:
    done = headgate(place, "--home", str(place / "home"), "doctor", "--json", **extra)
    return done.code, {one["check"]: one for one in json.loads(done.out)}


@contextmanager
def redirecting() -> Iterator[str]:
    """Serve an address that sends everyone elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(301)
            self.send_header("location", "https://elsewhere.example/")
            self.send_header("content-length", "0")
            self.end_headers()

        do_POST = do_GET  # noqa: N815 - the name that the library calls

        def log_message(self, *_arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_that_runs_is_good_and_the_doctor_ends_with_0(tmp_path: Path):
    with serving(tmp_path):
        code, found = examined(tmp_path)
    levels = {name: one["level"] for name, one in found.items()}
    assert code == 0, found
    assert levels == {
        "files": "good", "tools": "good", "address": "warning", "issuer": "good", "challenge": "good",
        "slash": "good", "clock": "good",
    }  # fmt: skip


def test_faults_are_named_with_what_to_do_and_the_doctor_ends_with_1(tmp_path: Path):
    save = ("grants", "create", "--client", "a", "--save")
    made = headgate(tmp_path, "--home", str(tmp_path / "home"), *save)
    (tmp_path / "home").mkdir(mode=0o700, exist_ok=True)
    stray = tmp_path / "home" / "stray.txt"
    stray.write_text("x", encoding="utf-8")
    stray.chmod(0o644)
    tokens = tmp_path / "etc" / "headgate" / "clients"
    tokens.mkdir(parents=True, exist_ok=True)
    (tokens / "home-x.json").write_text("{}", encoding="utf-8")
    (tokens / "home-x.json").chmod(0o600)
    with redirecting() as address:
        code, found = examined(tmp_path, HEADGATE_PUBLIC_URL=address)
    assert (code, made.err.count("Traceback")) == (1, 0)
    assert found["files"]["text"] == f"{stray} is open to other users."
    assert found["files"]["advice"] == f"Run: chmod go-rwx {stray}"
    assert "holds no credential" in found["token files"]["text"]
    assert "redirects to https://elsewhere.example/" in found["resource metadata"]["text"]
    assert "redirects" in found["challenge"]["text"]
    shown = headgate(tmp_path, "--home", str(tmp_path / "home"), "doctor")
    assert shown.code == 1
    assert f"FAULT  {stray} is open to other users.\n       Run: chmod" in shown.out


async def _fill(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        await program.ingest(connection, "messages", [record("m1", sent_at="2026-03-01T00:00:00Z")])


def test_a_saved_token_whose_grants_are_revoked_is_a_fault(tmp_path: Path):
    asyncio.run(_fill(tmp_path))
    (tmp_path / "home" / "latest-time").unlink()

    def run(*arguments: str) -> Outcome:
        return headgate(tmp_path, "--home", str(tmp_path / "home"), *arguments)

    for client in ("agent one", "b"):
        assert run("grants", "create", "--client", client, "--save", "--yes").code == 0
    code, found = examined(tmp_path)
    assert (code, found["token files"]["level"]) == (0, "good")
    assert run("grants", "revoke", "agent one").code == 0
    code, found = examined(tmp_path)
    assert (code, found["token files"]["level"]) == (1, "problem")
    assert "The grants of agent one are revoked: it can read nothing." in found["token files"]["text"]
    assert found["token files"]["advice"].endswith("grants create --client 'agent one' --save")
