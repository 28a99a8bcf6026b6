"""The agent programs that `headgate connect` knows: where each keeps its servers, and how it writes one."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from headgate.errors import ConfigInvalid, NotFound

#: The name under which Headgate stands in a program's configuration.
ENTRY = "headgate"


@dataclass(frozen=True, slots=True)
class StdioServer:
    """A server that the program starts itself: its command with arguments, and what it adds to the environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at an address, and the token to send there."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """One program: its configuration file on each platform, and the form of an entry in it."""

    name: str
    title: str
    #: By ``sys.platform``; "" is for the platforms that are not named. "~" is the person's directory, "$NAME" a variable.
    files: Mapping[str, str]
    #: The member that holds the servers by name.
    servers: str = "mcpServers"
    is_toml: bool = False
    #: The variable by which the person moves the program's directory, and the file in it.
    moved_by: tuple[str, str] | None = None
    #: The member for the address of a server; None if the program only starts servers itself.
    url_member: str | None = "url"
    headers_member: str = "headers"
    #: What an entry for an address or a command says of its kind, if it must.
    http_kind: Mapping[str, str] = field(default_factory=dict[str, str])
    stdio_kind: Mapping[str, str] = field(default_factory=dict[str, str])
    #: What the person does after the file has changed.
    then: str = "Restart it if it is open."

    def file(self, platform: str, home: Path, environment: Mapping[str, str]) -> Path:
        """Find the configuration file of the person who runs this."""
        if self.moved_by is not None:
            variable, name = self.moved_by
            if environment.get(variable):
                return Path(environment[variable]).expanduser() / name
        text = self.files.get(platform, self.files[""])
        first, *rest = text.split("/")
        root = home if first == "~" else Path(environment.get(first.removeprefix("$")) or home)
        return root.joinpath(*rest)

    def entry(self, server: StdioServer | HttpServer) -> dict[str, Any]:
        if isinstance(server, StdioServer):
            command, *arguments = server.command
            environment = {"env": dict(server.environment)} if server.environment else {}
            return {**self.stdio_kind, "command": command, "args": arguments, **environment}
        if self.url_member is None:
            raise NotFound(
                f"{self.title} starts its servers itself, and takes no address in its configuration.",
                hint="Leave out --http.",
            )
        headers = {"Authorization": f"Bearer {server.token}"}
        return {**self.http_kind, self.url_member: server.url, self.headers_member: headers}


def _everywhere(path: str) -> dict[str, str]:
    return {"": path}


PROGRAMS: Mapping[str, AgentProgram] = {
    one.name: one
    for one in (
        AgentProgram(
            "claude-code",
            "Claude Code",
            _everywhere("~/.claude.json"),
            moved_by=("CLAUDE_CONFIG_DIR", ".claude.json"),
            http_kind={"type": "http"},
            stdio_kind={"type": "stdio"},
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "claude-desktop",
            "Claude Desktop",
            {
                "darwin": "~/Library/Application Support/Claude/claude_desktop_config.json",
                "win32": "$APPDATA/Claude/claude_desktop_config.json",
                "": "~/.config/Claude/claude_desktop_config.json",
            },
            url_member=None,
            then="Quit Claude Desktop and open it again.",
        ),
        AgentProgram("cursor", "Cursor", _everywhere("~/.cursor/mcp.json")),
        AgentProgram(
            "vs-code",
            "VS Code",
            {
                "darwin": "~/Library/Application Support/Code/User/mcp.json",
                "win32": "$APPDATA/Code/User/mcp.json",
                "": "~/.config/Code/User/mcp.json",
            },
            servers="servers",
            http_kind={"type": "http"},
            stdio_kind={"type": "stdio"},
            then="Run 'MCP: List Servers' and start headgate.",
        ),
        AgentProgram(
            "codex",
            "Codex",
            _everywhere("~/.codex/config.toml"),
            moved_by=("CODEX_HOME", "config.toml"),
            servers="mcp_servers",
            is_toml=True,
            headers_member="http_headers",
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "gemini-cli",
            "Gemini CLI",
            _everywhere("~/.gemini/settings.json"),
            url_member="httpUrl",
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram("lm-studio", "LM Studio", _everywhere("~/.lmstudio/mcp.json")),
        AgentProgram(
            "windsurf", "Windsurf", _everywhere("~/.codeium/windsurf/mcp_config.json"), url_member="serverUrl"
        ),
        AgentProgram(
            "zed",
            "Zed",
            {"win32": "$APPDATA/Zed/settings.json", "": "~/.config/zed/settings.json"},
            servers="context_servers",
        ),
    )
}


def program_of(name: str) -> AgentProgram:
    """Find a program by the name that a person typed."""
    program = PROGRAMS.get(name.strip().lower().replace(" ", "-").replace("_", "-"))
    if program is None:
        raise NotFound(
            f"'{name}' is no program that Headgate knows.",
            hint=f"It knows {', '.join(PROGRAMS)}; for others see docs/how-to/connect-stdio.md.",
        )
    return program


def shell_line(program: AgentProgram, server: StdioServer | HttpServer) -> str | None:
    """Write the command of the program itself that adds the server for all projects; None if it has none."""
    if program.name == "claude-code":
        add = ["claude", "mcp", "add", "--scope", "user"]
        if isinstance(server, HttpServer):
            bearer = f"Authorization: Bearer {server.token}"
            return shlex.join([*add, "--transport", "http", ENTRY, server.url, "--header", bearer])
        variables = [f"--env={name}={value}" for name, value in server.environment.items()]
        return shlex.join([*add, *variables, ENTRY, "--", *server.command])
    if program.name == "codex" and isinstance(server, StdioServer):
        variables = [
            text for name, value in server.environment.items() for text in ("--env", f"{name}={value}")
        ]
        return shlex.join(["codex", "mcp", "add", ENTRY, *variables, "--", *server.command])
    if program.name == "gemini-cli" and isinstance(server, HttpServer):
        bearer = f"Authorization: Bearer {server.token}"
        return shlex.join(
            [
                *("gemini", "mcp", "add", "--scope", "user", "--transport", "http", "--header", bearer),
                ENTRY,
                server.url,
            ]
        )
    return None


def inspector_line(server: HttpServer) -> str:
    """Write the command by which the MCP Inspector lists the tools; `@latest`, because npx may choose an old one."""
    return shlex.join(
        [
            *("npx", "-y", "@modelcontextprotocol/inspector@latest", "--cli", server.url),
            *("--transport", "http", "--method", "tools/list"),
            *("--header", f"Authorization: Bearer {server.token}"),
        ]
    )


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def with_json_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a JSON file."""
    document = _json_object(text)
    entries = document.setdefault(servers, {})
    if not isinstance(entries, dict):
        raise _not_understood(f"its '{servers}' is no object")
    entries[name] = dict(entry)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def with_toml_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a TOML file; comments and the order of everything else stay."""
    before = _toml_document(text)
    earlier: Any = before.get(servers, {})
    if not isinstance(earlier, dict):
        raise _not_understood(f"its '{servers}' is no table")
    rest = _without_table(text, f"{servers}.{name}").rstrip("\n")
    written = f"{rest}\n\n{toml_table(servers, name, entry)}".lstrip("\n")
    wanted: dict[str, Any] = {**before, servers: {**earlier, name: dict(entry)}}
    try:
        is_right = tomllib.loads(written) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _not_understood(f"it holds '{servers}' in an unusual form")
    return written


def toml_table(servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Write a server as a table of a TOML file."""
    return (
        "\n".join([f"[{servers}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())])
        + "\n"
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(item)}' for key, item in members)} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_toml(item) for item in cast('Sequence[Any]', value))}]"
    # A JSON string is a TOML string, but for one character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml(key)


def _without_table(text: str, table: str) -> str:
    """Take out the lines of a table and of the tables inside it."""
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        if header:
            is_inside = header[1] == table or header[1].startswith(f"{table}.")
        if not is_inside:
            lines.append(line)
    return "".join(lines)


def _json_object(text: str) -> dict[str, Any]:
    try:
        document: Any = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise _not_understood("it is no plain JSON") from error
    if not isinstance(document, dict):
        raise _not_understood("it is no JSON object")
    return cast("dict[str, Any]", document)


def _toml_document(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_understood("it is no TOML") from error


def _not_understood(why: str) -> ConfigInvalid:
    return ConfigInvalid(
        f"The configuration file was left as it is: {why}.",
        hint="Leave out --write, and add the printed entry by hand.",
    )
