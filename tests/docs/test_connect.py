from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.http_clients import HttpAnswer, ask_once
from tests.mcp.serve.product import product_app
from tests.on_socket import environment, headgate, serving

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("connect-*.md"))
WORDS = (
    "profile",
    "toolset",
    "event subscription",
    "owner token",
    "owner's token",
    "control-plane",
    "developer tool",
)


@pytest.mark.requirement("S2-03")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_shows_one_recommended_way_first(page: Path):
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Recommended"
    assert headings.count("Recommended") == 1


@pytest.mark.requirement("S2-01", "S2-02", "S2-04")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_recommended_way_has_one_address_and_no_mechanism(page: Path):
    text = page.read_text(encoding="utf-8")
    recommended = text.partition("## Recommended")[2].partition("\n## ")[0]
    assert len(set(re.findall(r"https?://[\w.:]+/mcp", recommended))) <= 1
    assert not [word for word in WORDS if word in text.casefold()]


@pytest.mark.requirement("S2-02", "S2-05")
def test_the_commands_know_no_profiles():
    for command in (["mcp", "--help"], ["serve", "--help"], ["grants", "create", "--help"]):
        shown = subprocess.run(
            [sys.executable, "-m", "headgate", *command], capture_output=True, text=True, check=True
        ).stdout
        assert not [word for word in WORDS if word in shown.casefold()]


def test_the_pages_are_for_the_hosts_people_use():
    assert [page.stem.removeprefix("connect-") for page in PAGES] == [
        *("chatgpt", "claude-ai", "claude-code", "claude-desktop", "cline", "codex", "continue"),
        *("copilot-cli", "cursor", "gemini-cli", "kimi-code", "lm-studio", "opencode", "qwen-code"),
        *("stdio", "vs-code", "windsurf", "zed"),
    ]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.fixture(scope="module")
def filled() -> Iterator[Path]:
    with product_app() as (_, prepared):
        yield prepared["settings"].home


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_piece_of_configuration_leads_to_the_one_server(page: Path):
    for block in blocks(page, "json"):
        config = json.loads(block)
        (server,) = (config.get("mcpServers") or config["servers"]).values()
        if "command" in server:
            assert (server["command"], server["args"]) == ("headgate", ["mcp"])
        else:
            assert server["url"].endswith("/mcp")
            assert server["headers"]["Authorization"].startswith("Bearer ")


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Every flag of the commands that connect an agent."""
    commands = ([], ["mcp"], ["serve"], ["grants", "create"], ["connect"])
    place = tmp_path_factory.mktemp("flags")
    shown = (headgate(place, *command, "--help", COLUMNS="200").out for command in commands)
    return {flag for text in shown for flag in re.findall(r"--[a-z-]+", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_flag_that_is_named_exists(page: Path, flags: set[str]):
    named = set(re.findall(r"--[a-z][a-z-]+", page.read_text(encoding="utf-8")))
    assert named <= flags | {"--transport", "--header"}


def test_chatgpt_finds_the_way_to_the_sign_in_from_the_address_on_its_page(tmp_path: Path):
    page = ROOT / "docs" / "how-to" / "connect-chatgpt.md"
    (command,) = [line for block in blocks(page, "sh") for line in block.splitlines()]
    variable, value = shlex.split(command)[0].split("=")
    (address,) = set(re.findall(r"https://[\w.]+/mcp", page.read_text(encoding="utf-8")))
    assert address == f"{value}/mcp"
    with serving(tmp_path, **{variable: value}) as served:

        def ask(method: str, url: str, **more: Any) -> HttpAnswer:
            # As a proxy passes it on that says nothing of https.
            headers = {"Host": value.removeprefix("https://"), "Content-Type": "application/json"}
            return ask_once(served.address, method, url.removeprefix(value), headers=headers, **more)

        challenge = ask("POST", address).headers["www-authenticate"]
        resource = ask("GET", re.search(r'resource_metadata="(.*?)"', challenge)[1]).body
        assert resource["resource"] == address
        (issuer,) = resource["authorization_servers"]
        server = ask("GET", f"{issuer}/.well-known/oauth-authorization-server").body
        assert server["code_challenge_methods_supported"] == ["S256"]
        wanted = {
            "client_name": "ChatGPT",
            "redirect_uris": ["https://chatgpt.com/connector/oauth/abc"],
            "token_endpoint_auth_method": "none",
        }
        made = ask("POST", server["registration_endpoint"], body=json.dumps(wanted).encode())
        assert made.status == 201, made.content


def test_a_client_that_is_set_up_by_the_stdio_page_reads(filled: Path, tmp_path: Path):
    page = ROOT / "docs" / "how-to" / "connect-stdio.md"
    (command,) = [line for block in blocks(page, "sh") for line in block.splitlines()]
    done = headgate(tmp_path, "--home", str(filled), *shlex.split(command)[1:], "--yes")
    assert done.code == 0, done.err
    (block,) = blocks(page, "json")
    server: dict[str, Any] = json.loads(block)["mcpServers"]["headgate"]

    async def go() -> None:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "headgate", "--home", str(filled), *server["args"]],
            env=environment(tmp_path, {}),
        )
        async with Client(parameters) as client:
            assert "connectors=2" in (await client.call_tool("schema", {})).content[0].text

    asyncio.run(go())
