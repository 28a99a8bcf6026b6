"""``headgate connect``: a program on this machine gets a grant, a token and an entry in its configuration."""

from __future__ import annotations

import asyncio
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters

from headgate.agent_programs.merging import Format
from headgate.agent_programs.programs import PROGRAMS, HttpServer, StdioServer
from tests.in_process import local_program, record
from tests.on_socket import Outcome, environment, headgate, serving
from tests.schema.declarations import declaration


async def _fill(place: Path) -> None:
    async with local_program(place) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        lines = [record(f"m{n}", sent_at="2026-03-01T00:00:00Z", subject="x") for n in range(3)]
        await program.ingest(connection, "messages", lines)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    asyncio.run(_fill(tmp_path))
    # The program that filled the home had a clock in the future.
    (tmp_path / "home" / "latest-time").unlink()
    return tmp_path


def run(place: Path, *arguments: str, **variables: str) -> Outcome:
    person = str(place / "person")
    return headgate(place, "--home", str(place / "home"), *arguments, HOME=person, **variables)


def connected(place: Path, *arguments: str) -> dict[str, Any]:
    done = run(place, "connect", *arguments, "--yes", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


async def _tools(place: Path, entry: dict[str, Any]) -> list[str]:
    command, *arguments = [entry["command"], *entry["args"]]
    variables = environment(place, {}) | entry.get("env", {})
    async with Client(StdioServerParameters(command=command, args=arguments, env=variables)) as client:
        found = await client.call_tool("schema", {})
        assert not found.is_error
        return [tool.name for tool in (await client.list_tools()).tools]


def written(made: dict[str, Any]) -> Any:
    """Read the entry of a written file, as its program does."""
    program, text = PROGRAMS[made["program"]], Path(made["file"]).read_text(encoding="utf-8")
    read = {Format.JSON: json.loads, Format.TOML: tomllib.loads, Format.YAML: yaml.safe_load}[program.format]
    servers = read(text)[program.servers]
    if isinstance(servers, list):
        (servers,) = ({one.pop("name"): one} for one in servers)
    return servers["headgate"]


@pytest.mark.parametrize("name", ["claude-code", "codex", "opencode", "cline", "continue", "kimi-code"])
def test_the_written_entry_starts_a_server_that_answers(place: Path, name: str):
    made = connected(place, name, "--write")
    entry = written(made)
    assert entry == made["entry"]
    assert made["streams_seen"] == 2
    entry = entry.get("transport", entry)
    if isinstance(entry["command"], list):
        entry = {"command": entry["command"][0], "args": entry["command"][1:]}
    assert "search" in asyncio.run(_tools(place, entry))


@pytest.mark.parametrize("name", [name for name, one in PROGRAMS.items() if one.url_member])
def test_every_program_that_takes_an_address_gets_one_beside_what_was_there(place: Path, name: str):
    file = Path(json.loads(run(place, "connect", "--json").out)[[*PROGRAMS].index(name)]["file"])
    before = {Format.JSON: '{"mine": 1}\n', Format.TOML: "# a\nmine = 1\n", Format.YAML: "# a\nmine: 1\n"}
    file.parent.mkdir(parents=True)
    file.write_text(before[PROGRAMS[name].format], encoding="utf-8")
    with serving(place, log=place / "log") as own:
        made = connected(place, name, "--http", "--write")
        assert written(made) == made["entry"]
        assert f"{own.address}/mcp" in json.dumps(made["entry"])
    text = file.read_text(encoding="utf-8")
    assert "mine" in text
    assert ("# a" in text) == (PROGRAMS[name].format is not Format.JSON)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda one: one.name)
def test_a_command_is_written_as_the_program_documents_it(program: Any):
    entry = program.entry(StdioServer(["headgate", "mcp", "--client", "x"], {"A": "b"}))
    usual = {"command": "headgate", "args": ["mcp", "--client", "x"], "env": {"A": "b"}}
    documented = {
        "claude-code": {"type": "stdio", **usual},
        "vs-code": {"type": "stdio", **usual},
        "codex": {"required": True, "startup_timeout_sec": 30, **usual},
        "copilot-cli": {"type": "local", "tools": ["*"], **usual},
        "opencode": {
            "type": "local",
            "command": ["headgate", "mcp", "--client", "x"],
            "environment": {"A": "b"},
        },
        "cline": {"transport": {"type": "stdio", **usual}},
    }
    assert entry == documented.get(program.name, usual)


def test_a_program_that_starts_servers_only_in_trusted_folders_is_named_so(place: Path):
    done = run(place, "connect", "gemini-cli", "--write", "--yes")
    assert "in a folder that you trust" in done.out
    page = Path(__file__).parents[2] / "docs" / "how-to" / "connect-gemini-cli.md"
    assert "in a folder that you trust" in page.read_text(encoding="utf-8")


def test_a_configuration_is_changed_in_one_place_and_kept_as_it_was_beside(place: Path):
    file = place / "person" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"other": {"url": "u"}}, "x": 1}', encoding="utf-8")
    before = file.read_bytes()
    connected(place, "cursor", "--write")
    document = json.loads(file.read_bytes())
    assert (document["x"], [*document["mcpServers"]]) == (1, ["other", "headgate"])
    assert file.with_name("mcp.json.before-headgate").read_bytes() == before
    assert file.stat().st_mode & 0o077 == 0


def test_nothing_is_granted_when_the_file_cannot_be_changed(place: Path):
    file = place / "person" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}", encoding="utf-8")
    done = run(place, "connect", "cursor", "--write", "--yes")
    assert (done.code, done.err.count("\n")) == (78, 1)
    assert "by hand" in done.err
    assert json.loads(run(place, "grants", "list", "--json").out) == []
    assert file.read_text(encoding="utf-8") == "{ // mine\n}"


def test_without_write_no_file_of_another_program_is_touched(place: Path):
    done = run(place, "connect", "claude-desktop", "--yes")
    assert done.code == 0, done.err
    assert "claude_desktop_config.json" in done.out
    assert '"mcpServers"' in done.out
    assert "it sees 2 streams" in done.out
    assert not (place / "person" / ".config" / "Claude").exists()


def test_a_program_is_connected_once_and_again_replaces_its_grant(place: Path):
    first = connected(place, "cursor", "--stream", "messages")
    refused = run(place, "connect", "cursor", "--yes")
    assert (refused.code, "--again" in refused.err) == (1, True)
    second = connected(place, "cursor", "--again", "--budget", "5/day")
    states = {one["grant_id"]: one["state"] for one in json.loads(run(place, "grants", "list", "--json").out)}
    assert states == {first["grant_ids"][0]: "revoked", second["grant_ids"][0]: "active"}


def test_each_program_reads_with_the_token_of_its_own_grant(place: Path):
    connected(place, "cursor", "--stream", "messages")
    connected(place, "vs-code", "--stream", "attachments")
    ambiguous = run(place, "mcp")
    assert ambiguous.code == 78
    assert "cursor, vs-code" in ambiguous.err
    assert "--client" in ambiguous.err
    missing = run(place, "mcp", "--client", "codex")
    assert missing.code == 78
    assert f"Run: headgate --home {place / 'home'} grants create --client codex --save" in missing.err


def test_a_server_that_does_not_run_yet_is_a_warning(place: Path):
    made = connected(place, "cursor", "--http")
    assert made["entry"]["url"].endswith("/mcp")
    assert made["entry"]["headers"]["Authorization"].startswith("Bearer hg_")
    assert "headgate serve" in made["warning"]


def test_the_address_of_another_homes_server_is_neither_tried_nor_written(place: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    with serving(tmp_path / "elsewhere", log=tmp_path / "log") as other:
        port = other.address.rpartition(":")[2]
        refused = run(place, "connect", "cursor", "--http", "--write", "--yes", HEADGATE_PORT=port)
        assert refused.code == 1
        assert f"No server of {place / 'home'} runs" in refused.err
        assert json.loads(run(place, "grants", "list", "--json").out) == []
        assert not (place / "person" / ".cursor").exists()
        shown = run(place, "connect", "cursor", "--http", "--yes", HEADGATE_PORT=port)
        assert f"No server of {place / 'home'} runs yet: start it with 'headgate --home " in shown.err
    # No token was sent there: a server logs every one that it does not know.
    assert "/v1/streams" not in (tmp_path / "log").read_text(encoding="utf-8")


def test_the_address_of_the_homes_own_server_is_written_whatever_its_port(place: Path):
    with serving(place, log=place / "log") as own:
        made = connected(place, "cursor", "--http", "--write")
        assert made["entry"]["url"] == f"{own.address}/mcp"
        assert (made["streams_seen"], made["warning"]) == (2, None)


def test_a_stream_of_two_accounts_is_counted_once_as_the_agent_reads_it(place: Path):
    async def more() -> None:
        async with local_program(place) as program:
            await program.connect("mail", "Work")

    asyncio.run(more())
    (place / "home" / "latest-time").unlink()
    assert connected(place, "cursor")["streams_seen"] == 2
    shown = run(place, "try", "schema", "--as", "cursor").out
    assert "streams=2" in shown.splitlines()[0]


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("qwen-code", "QWEN_HOME", "settings.json"),
        ("cline", "CLINE_MCP_SETTINGS_PATH", ""),
        ("cline", "CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("kimi-code", "KIMI_CODE_HOME", "mcp.json"),
        ("continue", "CONTINUE_GLOBAL_DIR", "config.yaml"),
    ],
)
def test_a_program_whose_directory_was_moved_is_connected_there(
    place: Path, name: str, variable: str, file: str
):
    moved = place / "moved"
    options = ("connect", name, "--write", "--yes", "--json")
    made = json.loads(run(place, *options, **{variable: str(moved)}).out)
    assert Path(made["file"]) == moved / file
    assert "headgate" in (moved / file).read_text(encoding="utf-8")
    assert not (place / "person").exists()


def test_a_program_that_may_read_already_is_refused_before_a_preview_is_made(place: Path):
    connected(place, "cursor")
    refused = run(place, "connect", "cursor", "--yes")
    assert refused.code == 1
    assert "Cursor may read already" in refused.err
    assert "will see" not in refused.err


def test_a_program_without_addresses_refuses_http_before_a_grant_is_made(place: Path):
    done = run(place, "connect", "claude-desktop", "--http", "--yes")
    assert (done.code, "--http" in done.err) == (1, True)
    assert json.loads(run(place, "grants", "list", "--json").out) == []


def test_programs_are_listed_and_a_wrong_name_names_them(tmp_path: Path):
    listed = [one["name"] for one in json.loads(run(tmp_path, "connect", "--json").out)]
    assert listed == [*PROGRAMS]
    assert [line.split()[0] for line in run(tmp_path, "connect").out.splitlines()] == listed
    wrong = run(tmp_path, "connect", "netscape")
    assert (wrong.code, "claude-code" in wrong.err) == (1, True)


@pytest.mark.parametrize(
    "program", [one for one in PROGRAMS.values() if one.url_member], ids=lambda one: one.name
)
def test_an_address_is_written_as_the_program_documents_it(program: Any):
    entry = program.entry(HttpServer("http://127.0.0.1:8321/mcp", "hg_x"))
    documented = {
        "claude-code": {"type": "http", "url": "U", "headers": "H"},
        "cursor": {"url": "U", "headers": "H"},
        "vs-code": {"type": "http", "url": "U", "headers": "H"},
        "codex": {"url": "U", "http_headers": "H"},
        "gemini-cli": {"httpUrl": "U", "headers": "H"},
        "lm-studio": {"url": "U", "headers": "H"},
        "windsurf": {"serverUrl": "U", "headers": "H"},
        "zed": {"url": "U", "headers": "H"},
        "copilot-cli": {"type": "http", "tools": ["*"], "url": "U", "headers": "H"},
        "opencode": {"type": "remote", "url": "U", "headers": "H"},
        "qwen-code": {"httpUrl": "U", "headers": "H"},
        "cline": {"transport": {"type": "streamableHttp", "url": "U", "headers": "H"}},
        "kimi-code": {"url": "U", "headers": "H"},
        "continue": {"type": "streamable-http", "url": "U", "requestOptions": {"headers": "H"}},
    }[program.name]
    text = json.dumps(documented).replace('"U"', '"http://127.0.0.1:8321/mcp"')
    assert entry == json.loads(text.replace('"H"', '{"Authorization": "Bearer hg_x"}'))
