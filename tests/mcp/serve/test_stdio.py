from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from headgate.auth.credentials import credential_path, home_credential_path, read_token, write_token
from headgate.mcp.serve.tools import TOOLS
from tests.mcp.serve.provider import Provider, provider
from tests.mcp.serve.test_hosted import ALL_SIX
from tests.on_socket import owner_of

PROGRAM = [sys.executable, "-m", "headgate", "mcp"]


INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "agent", "version": "1"},
        },
    }
)


def run(*arguments: str, sent: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        input=sent,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def save(root: Path, address: str, **credential: Any) -> Path:
    path = credential_path(root, address)
    write_token(path, address, {"access_token": "tok", **credential}, created_at="2026-01-01T00:00:00Z")
    return path


@pytest.mark.requirement("S2-06", "S2-14", "S2-15")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_on_stdio_gets_the_same_surface(tmp_path: Path, mode: str):
    async def go(made: Provider) -> None:
        parameters = StdioServerParameters(
            command=PROGRAM[0],
            args=[*PROGRAM[1:], "--provider-url", made.address, "--cache-root", str(tmp_path)],
        )
        async with Client(parameters, mode=mode) as client:
            listed = await client.list_tools()
            sent = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
            assert sent == json.loads(json.dumps(TOOLS))
            for name, arguments in ALL_SIX.items():
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
            refused = await client.call_tool("query_records", {"stream": "other"})
            error = refused.structured_content
            assert (error["error"]["code"], error["http_status"]) == ("grant_stream_not_allowed", 403)
            assert error["request_id"] == "req_7"

    with provider() as made:
        save(tmp_path, made.address)
        asyncio.run(go(made))
        assert made.tokens == {"Bearer tok"}
        assert "/v1/streams/messages/records/m1?connection_id=cin_a" in made.asked
        assert made.asked[-1] == "/v1/streams/other/records"


@pytest.mark.requirement("S3-27", "S3-29")
def test_a_server_without_windows_is_not_offered_as_if_it_had_them(tmp_path: Path):
    async def go(made: Provider) -> None:
        parameters = StdioServerParameters(
            command=PROGRAM[0],
            args=[*PROGRAM[1:], "--provider-url", made.address, "--cache-root", str(tmp_path)],
        )
        async with Client(parameters) as client:
            # This was requested before any tool was listed.
            assert made.asked == [
                "/v1/schema?view=compact",
                "/v1/streams/-/records/-/field-window",
                "/.well-known/oauth-protected-resource",
                "/v1/connectors",
            ]
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [tool["name"] for tool in TOOLS if tool["name"] != "read_record_field"]
            templates = (await client.list_resource_templates()).resource_templates
            assert "pdpp-field-window" not in [template.name for template in templates]
            assert "read_record_field" not in (client.instructions or "")
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("read_record_field", ALL_SIX["read_record_field"])
            for name in names:
                answer = (await client.call_tool(name, ALL_SIX[name])).model_dump_json()
                assert "read_record_field" not in answer
                assert "field-window" not in answer

    with provider(has_windows=False) as made:
        save(tmp_path, made.address)
        asyncio.run(go(made))


_METADATA = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("metadata", "modes"),
    [
        (
            {
                "capabilities": {
                    "lexical_retrieval": {"supported": True},
                    "semantic_retrieval": {"supported": True, "endpoint": "/v1/search/semantic"},
                    "hybrid_retrieval": {"supported": True},
                }
            },
            ["lexical", "semantic", "hybrid"],
        ),
        ({"capabilities": {"semantic_retrieval": {"supported": True}}}, ["lexical", "semantic"]),
        (
            {"capabilities": {"hybrid_retrieval": {"supported": True}, "semantic_retrieval": {}}},
            ["lexical", "hybrid"],
        ),
        ({"capabilities": {"hybrid_retrieval": {"supported": False}}}, ["lexical"]),
        ({"capabilities": {"hybrid_retrieval": "yes"}}, ["lexical"]),
        ({"resource": "https://a.example"}, ["lexical"]),
    ],
)
def test_the_modes_of_search_are_those_that_the_remote_server_names(
    tmp_path: Path, metadata: dict[str, Any], modes: list[str]
):
    listing = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    with provider(faults={_METADATA: metadata}) as made:
        save(tmp_path, made.address)
        sent = f"{INITIALIZE}\n{ready}\n{listing}\n"
        outcome = run("--provider-url", made.address, "--cache-root", str(tmp_path), sent=sent)
    tools = json.loads(outcome.stdout.splitlines()[-1])["result"]["tools"]
    (search,) = (tool for tool in tools if tool["name"] == "search")
    assert search["inputSchema"]["properties"]["mode"]["enum"] == modes


CLAUDE_CODE = {
    "name": "claude-code",
    "title": "Claude Code",
    "version": "2.1.326",
    "websiteUrl": "https://claude.com/claude-code",
}
COPILOT = {"name": "copilot-cli", "version": "1.0.102"}
PROBED: Any = {
    "Claude Code": (CLAUDE_CODE, {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}),
    "Copilot CLI": (COPILOT, {"sampling": {}, "elicitation": {"form": {}, "url": {}}}),
    "one that the SDK has to judge": (COPILOT, {"experimental": {"a": {}}}),
}


def converse(place: Path, calls: list[tuple[Any, str, Any]]) -> dict[Any, Any]:
    """Send requests, and notifications, which have no id; wait for each answer."""
    found: dict[Any, Any] = {}
    with provider() as made:
        save(place, made.address)
        command = [*PROGRAM, "--provider-url", made.address, "--cache-root", str(place)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdin
            assert program.stdout
            for key, method, params in calls:
                named = {} if key is None else {"id": key}
                line = {"jsonrpc": "2.0", "method": method, "params": params, **named}
                program.stdin.write(f"{json.dumps(line)}\n")
                program.stdin.flush()
                if named:
                    answer = json.loads(program.stdout.readline())
                    found[answer["id"]] = answer
            program.stdin.close()
            assert program.stdout.read() == ""
    return found


def in_the_later_way(client: Any) -> Any:
    meta = {"protocolVersion": "2026-07-28", "clientInfo": client, "clientCapabilities": {}}
    return {"_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}}


@pytest.mark.parametrize("host", PROBED)
@pytest.mark.parametrize("cancelled", [[], [(None, "notifications/cancelled", {"requestId": "probe"})]])
def test_a_client_that_gives_up_its_first_question_and_shakes_hands_is_served(
    tmp_path: Path, host: str, cancelled: list[Any]
):
    """The first question of these programs has a time limit, which a slow start exceeds."""
    client, capabilities = PROBED[host]
    handshake = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
    calls = [
        ("probe", "server/discover", in_the_later_way(client)),
        *cancelled,
        (0, "initialize", handshake),
        (None, "notifications/initialized", {}),
        (1, "tools/list", {}),
        (2, "tools/call", {"name": "schema", "arguments": {}}),
        (3, "ping", {}),
        (4, "tools/list", {}),
    ]
    answers = converse(tmp_path, calls)
    assert set(answers) == {"probe", 0, 1, 2, 3, 4}
    assert all("error" not in answer for answer in answers.values()), answers
    assert answers[0]["result"]["protocolVersion"] == "2025-11-25"
    assert len(answers[4]["result"]["tools"]) == len(TOOLS)


def test_a_handshake_after_a_call_without_one_is_refused(tmp_path: Path):
    asked = in_the_later_way(COPILOT)
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": COPILOT}
    calls = [(0, "server/discover", asked), (1, "tools/list", asked), (2, "initialize", handshake)]
    answers = converse(tmp_path, [*calls, (3, "tools/list", asked)])
    assert answers[2]["error"]["code"] == -32022
    assert all("result" in answers[key] for key in (0, 1, 3))


@pytest.mark.requirement("S2-05")
def test_the_help_mentions_no_profile():
    shown = run("--help").stdout
    assert "--provider-url" in shown
    assert "profile" not in shown.casefold()


def test_a_wrong_address_ends_it_with_64():
    assert run("--provider-url", "ftp://x").returncode == 64
    assert run("--profile", "core").returncode == 64


def test_a_home_without_a_token_ends_it_with_78_and_says_what_to_run(tmp_path: Path):
    outcome = run("--cache-root", str(tmp_path))
    assert outcome.returncode == 78
    assert "headgate grants create" in outcome.stderr


@pytest.mark.requirement("S2-17")
@pytest.mark.parametrize("name", ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"])
def test_an_owners_credential_in_the_environment_ends_it_with_77(name: str):
    outcome = run("--provider-url", "https://a.example", **{name: "secret"})
    assert outcome.returncode == 77
    assert "secret" not in outcome.stderr
    assert outcome.stdout == ""


@pytest.mark.requirement("S2-16", "S2-17")
@pytest.mark.parametrize(
    ("member", "kind"),
    [
        ("pdpp_token_kind", "owner"),
        ("pdpp_token_kind", "control_plane"),
        ("pdpp_token_kind", "owner_agent"),
        ("token_kind", "owner"),
        ("kind", "owner"),
        ("role", "owner"),
    ],
)
def test_an_owners_token_in_the_cache_ends_it_with_77(tmp_path: Path, member: str, kind: str):
    save(tmp_path, "https://a.example", **{member: kind})
    outcome = run(PDPP_PROVIDER_URL="https://a.example", PDPP_CACHE_ROOT=str(tmp_path))
    assert outcome.returncode == 77


@pytest.mark.requirement("S2-16", "S2-17", "S2-18")
@pytest.mark.parametrize(
    ("bearer", "label"),
    [
        ({"token_kind": "owner", "scope": "owner"}, {}),
        ({"token_kind": "owner", "scope": "owner"}, {"pdpp_token_kind": "client"}),
        ({"kind": "owner"}, {}),
        ({"role": "owner"}, {}),
        ({"token_kind": "control_plane"}, {}),
    ],
)
def test_a_token_that_the_server_calls_an_owners_ends_it_with_77_whatever_its_file_says(
    tmp_path: Path, bearer: dict[str, Any], label: dict[str, Any]
):
    with provider(bearer=bearer) as made:
        save(tmp_path, made.address, **label)
        outcome = run("--provider-url", made.address, "--cache-root", str(tmp_path), sent=INITIALIZE + "\n")
    assert (outcome.returncode, outcome.stdout) == (77, "")
    assert made.asked == ["/v1/schema?view=compact"]
    assert "tok" not in outcome.stderr.split()


@pytest.mark.requirement("S2-16", "S2-17", "S2-18")
def test_an_owners_token_of_a_home_ends_it_with_77_whatever_its_file_says(tmp_path: Path):
    token = owner_of(tmp_path)
    home = tmp_path / "home"
    for label in ({}, {"pdpp_token_kind": "client"}):
        write_token(
            home_credential_path(tmp_path, home),
            "http://127.0.0.1",
            {"access_token": token, **label},
            created_at="2026-01-01T00:00:00Z",
        )
        outcome = run("--cache-root", str(tmp_path), sent=INITIALIZE + "\n", HEADGATE_HOME=str(home))
        assert (outcome.returncode, outcome.stdout) == (77, "")
        assert token not in outcome.stderr


def test_a_server_that_does_not_answer_ends_it_before_a_tool_is_offered(tmp_path: Path):
    save(tmp_path, "http://127.0.0.1:9")
    outcome = run(
        "--provider-url", "http://127.0.0.1:9", "--cache-root", str(tmp_path), sent=INITIALIZE + "\n"
    )
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert "did not answer" in outcome.stderr


@pytest.mark.parametrize(
    "credential",
    [
        None,
        {"expires_at": 1},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "soon"},
        {"access_token": ""},
    ],
)
def test_without_a_valid_token_it_ends_with_78_and_names_the_place_for_one(
    tmp_path: Path, credential: dict[str, Any] | None
):
    if credential is not None:
        save(tmp_path, "https://a.example", **credential)
    outcome = run("--provider-url", "https://a.example", "--cache-root", str(tmp_path))
    assert outcome.returncode == 78
    assert str(tmp_path / "clients" / "a.example.json") in outcome.stderr
    assert "a token granted at https://a.example" in outcome.stderr


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"credential": 3}'])
def test_a_file_that_is_no_credential_ends_it_with_78(tmp_path: Path, content: str):
    path = save(tmp_path, "https://a.example")
    path.write_text(content, encoding="utf-8")
    assert run("--provider-url", "https://a.example", "--cache-root", str(tmp_path)).returncode == 78


def test_a_token_file_can_be_read_by_its_owner_only(tmp_path: Path):
    path = save(tmp_path, "https://a.example:8443")
    assert path.name == "a.example_8443.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert read_token(path, now_seconds=0, hint="x") == "tok"
