"""The owner's commands on the machine that serves: the link, its replacement, tokens, and the stop of everything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.http_clients import ask_once
from tests.on_socket import headgate, serving

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)(/console/welcome/[\w-]{22})\b")
PASSWORD = b"password=six+green+boats+at+noon&again=six+green+boats+at+noon"


def command(place: Path, *words: str) -> str:
    done = headgate(place, "--home", str(place / "home"), *words)
    assert done.code == 0, done.err
    return done.out


def test_serve_prints_a_link_while_no_password_is_set_and_reset_prints_another(tmp_path: Path):
    with serving(tmp_path) as server:
        assert server.process.stdout is not None
        printed = LINK.search(server.process.stdout.readline())
        assert printed
        assert printed[1] == server.address
        replaced = LINK.search(command(tmp_path, "owner", "reset", "--yes"))
        assert replaced
        assert replaced[1] == server.address
        assert ask_once(server.address, "GET", printed[2]).status == 410
        assert ask_once(server.address, "POST", replaced[2], body=PASSWORD).status == 303
    with serving(tmp_path) as server:
        server.process.terminate()
        assert server.process.stdout is not None
        assert "/console/welcome/" not in server.process.stdout.read()


def test_a_reset_asks_first_and_says_what_it_did(tmp_path: Path):
    home = tmp_path / "home"
    asked = headgate(tmp_path, "--home", str(home), "owner", "reset")
    assert (asked.code, asked.out) == (1, "")
    assert f"This removes the password and the passkeys of {home}, and ends every session. " in asked.err
    assert "--yes" in asked.err
    assert not home.exists()
    done = command(tmp_path, "owner", "reset", "--yes")
    assert done.startswith(
        f"The password and the passkeys of {home} are removed, and every session has ended.\n"
    )


def test_a_reset_is_logged(tmp_path: Path):
    command(tmp_path, "owner", "reset", "--yes")
    (entry,) = json.loads(command(tmp_path, "audit", "list", "--json"))
    assert (entry["via"], entry["client_id"]) == ("headgate owner reset", None)


def test_tokens_are_named_listed_limited_and_revoked(tmp_path: Path):
    made = command(
        tmp_path, "owner", "token", "--name", "graphs", "--scope", "metrics", "--days", "9"
    ).strip()
    (listed,) = json.loads(command(tmp_path, "owner", "tokens", "--json"))
    assert (listed["name"], listed["scope"]) == ("graphs", "metrics")
    assert listed["expires_at"] is not None
    with serving(tmp_path) as server:
        assert ask_once(server.address, "GET", "/metrics", made).status == 200
        assert ask_once(server.address, "GET", "/v1/streams", made).status == 403
        command(tmp_path, "owner", "revoke-token", listed["mark"])
        assert ask_once(server.address, "GET", "/metrics", made).status == 401
    assert json.loads(command(tmp_path, "owner", "tokens", "--json")) == []


def test_stop_all_ends_nothing_where_there_is_nothing(tmp_path: Path):
    assert json.loads(command(tmp_path, "stop-all", "--json")) == {"ended": 0}


def test_stop_all_ends_every_grant_of_every_agent_from_the_next_request_on(tmp_path: Path):
    (tmp_path / "cards.vcf").write_text("BEGIN:VCARD\nVERSION:3.0\nUID:u1\nFN:Ada\nEND:VCARD\n")
    command(tmp_path, "import", str(tmp_path / "cards.vcf"))
    made = [command(tmp_path, "grants", "create", "--client", one, "--yes", "--json") for one in ("a", "b")]
    tokens = [json.loads(one)["access_token"] for one in made]
    with serving(tmp_path) as server:
        path = "/v1/streams/contacts/records"
        assert {ask_once(server.address, "GET", path, one).status for one in tokens} == {200}
        assert json.loads(command(tmp_path, "stop-all", "--json")) == {"ended": 2}
        assert {ask_once(server.address, "GET", path, one).status for one in tokens} == {403}
    assert json.loads(command(tmp_path, "stop-all", "--json")) == {"ended": 0}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "headgate.example"])
def test_serve_refuses_an_open_line_in_one_clear_line(tmp_path: Path, host: str):
    done = headgate(tmp_path, "--home", str(tmp_path / "home"), "serve", "--host", host, "--port", "0")
    assert done.code != 0
    assert done.err.count("\n") == 1
    assert "--behind-proxy" in done.err


def test_serve_listens_everywhere_behind_a_proxy(tmp_path: Path):
    with serving(tmp_path, "--host", "0.0.0.0", "--behind-proxy") as server:
        port = server.address.rpartition(":")[2]
        assert ask_once(f"http://127.0.0.1:{port}", "GET", "/healthz").status == 200
