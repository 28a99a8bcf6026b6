"""What the doctor says of every known way in which a public address goes wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.doctor import judging
from headgate.doctor.judging import Answer, Finding, Level
from headgate.mcp.serve.tools import TOOLS

BASE = "https://data.example"
JSON = {"content-type": "application/json"}
NOW = 1_800_000_000
NOTED_IN = Path("home") / "latest-time"


def answer(path: str, document: Any, status: int = 200, **headers: str) -> Answer:
    return Answer(BASE + path, status, {**JSON, **headers}, json.dumps(document).encode())


RESOURCE = answer("/.well-known/x", {"resource": f"{BASE}/mcp", "authorization_servers": [BASE]})
SERVER = answer("/.well-known/y", {"issuer": BASE})
CHALLENGE = answer(
    "/mcp",
    {},
    401,
    **{"www-authenticate": f'Bearer resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp"'},
)


def documents(resource: Answer = RESOURCE, server: Answer = SERVER) -> Finding:
    (found,) = judging.judge_documents(BASE, resource, server)
    return found


def test_what_is_right_is_good():
    assert [one.level for one in judging.judge_address(BASE)] == [Level.GOOD]
    assert documents().level is Level.GOOD
    assert judging.judge_challenge(BASE, CHALLENGE).level is Level.GOOD
    assert judging.judge_slash(CHALLENGE).level is Level.GOOD
    assert judging.judge_tools(TOOLS).level is Level.GOOD
    assert judging.judge_clock("Fri, 15 Jan 2027 08:00:00 GMT", NOW, NOW, NOTED_IN).level is Level.GOOD


@pytest.mark.parametrize(
    ("url", "check", "words"),
    [
        ("", "address", "only agents on this machine"),
        ("http://data.example", "address", "not https"),
        ("https://192.0.2.1", "address", "has no name"),
        ("https://data.example:8443", "port", "port 8443"),
        ("https://data.example/headgate", "address", "has a path"),
    ],
)
def test_an_address_that_agents_do_not_call_is_named(url: str, check: str, words: str):
    (found,) = judging.judge_address(url)
    assert (found.check, found.level is Level.GOOD) == (check, False)
    assert words in found.text
    assert found.advice


@pytest.mark.parametrize(
    ("resource", "server", "words"),
    [
        (replace(RESOURCE, status=0, failure="ConnectError"), SERVER, "cannot be reached"),
        (answer("/a", {}, 301, location="https://www.data.example/"), SERVER, "redirects to https://www"),
        (answer("/a", {}, 421), SERVER, "not its name"),
        (RESOURCE, answer("/b", {}, 403), "forbidden"),
        (RESOURCE, replace(SERVER, headers={"content-type": "text/html"}), "no JSON"),
        (RESOURCE, replace(SERVER, body=b"\xff"), "no JSON"),
        (RESOURCE, answer("/b", []), "no JSON"),
        (RESOURCE, answer("/b", {"issuer": f"{BASE}/"}), "the issuer is 'https://data.example/'"),
        (RESOURCE, answer("/b", {"issuer": "http://127.0.0.1:8321"}), "the issuer is"),
        (answer("/a", {"resource": BASE, "authorization_servers": [BASE]}), SERVER, "the resource is"),
        (answer("/a", {"resource": f"{BASE}/mcp"}), SERVER, "authorization server of the resource is None"),
    ],
)
def test_metadata_that_clients_refuse_is_named(resource: Answer, server: Answer, words: str):
    found = documents(resource, server)
    assert found.level is Level.PROBLEM
    assert words in found.text
    assert found.advice


@pytest.mark.parametrize(
    "wrong",
    [
        answer("/mcp", {}, 404),
        answer("/mcp", {}, 200),
        answer("/mcp", {}, 401),
        answer("/mcp", {}, 307, location=f"{BASE}/mcp/"),
        replace(CHALLENGE, headers={"www-authenticate": 'Bearer resource_metadata="http://127.0.0.1/x"'}),
    ],
)
def test_an_answer_that_leads_no_client_to_the_metadata_is_named(wrong: Answer):
    assert judging.judge_challenge(BASE, wrong).level is Level.PROBLEM


@pytest.mark.parametrize("wrong", [answer("/mcp/", {}, 404), answer("/mcp/", {}, 308, location="/mcp")])
def test_a_slash_that_changes_the_answer_is_named(wrong: Answer):
    assert judging.judge_slash(wrong).level is Level.PROBLEM


@pytest.mark.parametrize(
    ("date", "latest"), [("Fri, 15 Jan 2027 08:02:00 GMT", NOW), ("", NOW + 61), ("nonsense", NOW + 3600)]
)
def test_a_clock_that_is_wrong_is_named(date: str, latest: int):
    found = judging.judge_clock(date, NOW, latest, NOTED_IN)
    assert found.level is Level.PROBLEM
    assert (str(NOTED_IN) in found.advice) is (latest > NOW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "get data"}, "other characters"),
        ({"name": "x" * 65}, "other characters"),
        ({"description": ""}, "no description"),
        ({"inputSchema": {"type": "array"}}, "is no object"),
        ({"inputSchema": {"type": "object", "oneOf": []}}, "choice at its top"),
    ],
)
def test_a_tool_that_a_client_refuses_is_named(change: dict[str, Any], words: str):
    found = judging.judge_tools([{**TOOLS[0], **change}])
    assert found.level is Level.PROBLEM
    assert words in found.text
