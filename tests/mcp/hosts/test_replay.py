"""What real agent programs send is answered as they expect it: both eras, both transports, and their oddities.

Each file of `recorded` has the requests of one run of a program, with its headers as they were sent; of calls that
repeat, the first. Tokens, ports and codes were replaced.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.mcp.serve.results import MODERN
from tests.http_clients import HttpAnswer, ask_once
from tests.mcp.hosts.demo import DemoHome, demo_home
from tests.on_socket import COMMAND, environment, serving

RECORDED = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "recorded").glob("*.json"))
}
HTTP = [name for name, run in RECORDED.items() if run["transport"].startswith("http")]
STDIO = [
    name
    for name, run in RECORDED.items()
    if run["transport"].startswith("stdio") and "late" not in run["transport"]
]
LATE = [name for name, run in RECORDED.items() if "late" in run["transport"]]
TOOLS = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
VERSION = "io.modelcontextprotocol/protocolVersion"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> DemoHome:
    return demo_home(tmp_path_factory.mktemp("replayed"))


@pytest.fixture(scope="module")
def address(home: DemoHome) -> Iterator[str]:
    with serving(home.place, log=home.place / "log") as served:
        yield served.address


def check(message: dict[str, Any], answer: dict[str, Any], *, is_refused: bool) -> None:
    """Check that an answer has the shape that the host of its request reads."""
    method, params = message["method"], message.get("params") or {}
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", message["id"])
    assert ("error" in answer) == is_refused, answer
    if is_refused:
        assert isinstance(answer["error"]["code"], int)
        return
    result = answer["result"]
    is_modern = params.get("_meta", {}).get(VERSION) in MODERN
    assert (result.get("resultType") == "complete") == is_modern
    if method == "initialize":
        assert result["protocolVersion"] == params["protocolVersion"]
        assert result["capabilities"]["tools"] == {"listChanged": False}
    elif method == "server/discover":
        assert result["supportedVersions"] == sorted(MODERN)
    elif method == "tools/list":
        assert [tool["name"] for tool in result["tools"]] == TOOLS
    elif method == "tools/call":
        check_call(params, result)


def check_call(params: dict[str, Any], result: dict[str, Any]) -> None:
    assert result["content"][0]["type"] == "text"
    assert result["content"][0]["text"]
    arguments = params.get("arguments") or {}
    # The two mistakes that every host was led to make: a field that is not there, and a stream of several connectors.
    is_mistake = "filter" in arguments or arguments == {"stream": "messages"}
    assert bool(result.get("isError")) == is_mistake, (params, result["content"][0]["text"][:200])


def sent(address: str, token: str, message: dict[str, Any]) -> HttpAnswer:
    method, path = message["request"].split(" ")
    headers = {name: value.replace("TOKEN", token) for name, value in message["headers"]}
    assert len(headers) == len(message["headers"])
    body = message.get("body")
    content = (
        b"" if body is None else json.dumps(body).encode() if not isinstance(body, str) else body.encode()
    )
    return ask_once(address, method, path, headers=headers, body=content)


@pytest.mark.parametrize("name", HTTP)
def test_what_a_host_sends_over_http_is_answered_as_it_was(home: DemoHome, address: str, name: str):
    for message in RECORDED[name]["messages"]:
        answer = sent(address, home.token, message)
        assert answer.status == message["status"], (message, answer)
        body = message.get("body")
        if not isinstance(body, dict) or "method" not in body or answer.status in {401, 405}:
            continue
        if "id" not in body:
            assert (answer.status, answer.content) == (202, b"")
            continue
        assert answer.headers["content-type"].startswith("application/json")
        check(body, answer.body, is_refused="error" in message)


class Pipe:
    """One process on stdio, and the lines of a host to it."""

    def __init__(self, home: DemoHome) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *home.command],
            env=environment(home.place, {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """Send messages at once, and give the answers to the requests among them by their order."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages))
        self._process.stdin.flush()
        asked = [message["id"] for message in messages if "id" in message]
        answers = [json.loads(self._process.stdout.readline()) for _ in asked]
        return sorted(answers, key=lambda answer: asked.index(answer["id"]))

    def end(self) -> None:
        """Close the input; nothing comes after the answers, and the process ends well."""
        rest, _ = self._process.communicate(timeout=60)
        assert rest == ""
        assert self._process.returncode == 0


@pytest.mark.parametrize("name", STDIO)
def test_what_a_host_sends_over_stdio_is_answered(home: DemoHome, name: str):
    pipe = Pipe(home)
    for message in RECORDED[name]["messages"]:
        if message == "start":
            pipe.end()
            pipe = Pipe(home)
            continue
        for answer in pipe.send(message):
            # Qwen Code asks for prompts, though none are offered.
            check(message, answer, is_refused=message["method"] == "prompts/list")
    pipe.end()


@pytest.mark.parametrize("name", LATE)
def test_a_host_that_shook_hands_before_its_first_question_was_answered_goes_on(home: DemoHome, name: str):
    """The server began late: both messages were there when it did."""
    first, second = RECORDED[name]["messages"][:2]
    assert (first["method"], second["method"]) == ("server/discover", "initialize")
    pipe = Pipe(home)
    for message, answer in zip((first, second), pipe.send(first, second), strict=True):
        check(message, answer, is_refused=False)
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}
    calling = {
        "jsonrpc": "2.0",
        "id": "call",
        "method": "tools/call",
        "params": {"name": "schema", "arguments": {}},
    }
    assert pipe.send(ready) == []
    for message in (listing, calling):
        (answer,) = pipe.send(message)
        check(message, answer, is_refused=False)
    pipe.end()


def test_every_recorded_host_is_replayed():
    assert {*HTTP, *STDIO, *LATE} == set(RECORDED)
    assert {run["host"] for run in RECORDED.values()} > {"Claude Code", "Codex", "Gemini CLI", "Copilot CLI"}
