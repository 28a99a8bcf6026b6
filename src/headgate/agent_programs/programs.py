"""The agent programs that `headgate connect` knows: where each keeps its servers, and how it writes one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.agent_programs.merging import Format
from headgate.errors import NotFound

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
    #: The member that holds the servers.
    servers: str = "mcpServers"
    format: Format = Format.JSON
    #: The variables by which the person moves the program's directory, and the file in it; "" if it names the file.
    moved_by: Sequence[tuple[str, str]] = ()
    #: The member for the address of a server; None if the program only starts servers itself.
    url_member: str | None = "url"
    headers_member: str = "headers"
    #: The member around the headers, and the one around all of an entry, where there is one.
    headers_in: str = ""
    entry_in: str = ""
    #: Whether the command is one list with its arguments.
    joins_command: bool = False
    environment_member: str = "env"
    #: What an entry for an address or a command says of its kind, or else has to say.
    http_kind: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stdio_kind: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: What a file that is not there yet begins with.
    new_file: str = ""
    #: What the person does after the file has changed.
    then: str = "Restart it if it is open."

    def file(self, platform: str, home: Path, environment: Mapping[str, str]) -> Path:
        """Find the configuration file of the person who runs this."""
        for variable, name in self.moved_by:
            if environment.get(variable):
                return Path(environment[variable]).expanduser() / name
        text = self.files.get(platform, self.files[""])
        first, *rest = text.split("/")
        root = home if first == "~" else Path(environment.get(first.removeprefix("$")) or home)
        return root.joinpath(*rest)

    def entry(self, server: StdioServer | HttpServer) -> dict[str, Any]:
        """Write the entry of a server."""
        entry = self._stdio_entry(server) if isinstance(server, StdioServer) else self._http_entry(server)
        return {self.entry_in: entry} if self.entry_in else entry

    def _stdio_entry(self, server: StdioServer) -> dict[str, Any]:
        environment = {self.environment_member: dict(server.environment)} if server.environment else {}
        command, *arguments = server.command
        started = (
            {"command": [*server.command]} if self.joins_command else {"command": command, "args": arguments}
        )
        return {**self.stdio_kind, **started, **environment}

    def _http_entry(self, server: HttpServer) -> dict[str, Any]:
        if self.url_member is None:
            raise NotFound(
                f"{self.title} starts its servers itself, and takes no address in its configuration.",
                hint="Leave out --http.",
            )
        headers: dict[str, Any] = {self.headers_member: {"Authorization": f"Bearer {server.token}"}}
        if self.headers_in:
            headers = {self.headers_in: headers}
        return {**self.http_kind, self.url_member: server.url, **headers}


def _everywhere(path: str) -> dict[str, str]:
    return {"": path}


PROGRAMS: Mapping[str, AgentProgram] = {
    one.name: one
    for one in (
        AgentProgram(
            "claude-code",
            "Claude Code",
            _everywhere("~/.claude.json"),
            moved_by=[("CLAUDE_CONFIG_DIR", ".claude.json")],
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
            moved_by=[("CODEX_HOME", "config.toml")],
            servers="mcp_servers",
            format=Format.TOML,
            headers_member="http_headers",
            # Else it asks its model without our tools if they are not there within a second.
            stdio_kind={"required": True, "startup_timeout_sec": 30},
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "gemini-cli",
            "Gemini CLI",
            _everywhere("~/.gemini/settings.json"),
            url_member="httpUrl",
            then="Start a new session in a folder that you trust; in others it disables all servers. /mcp shows the "
            "connection.",
        ),
        AgentProgram(
            "copilot-cli",
            "Copilot CLI",
            _everywhere("~/.copilot/mcp-config.json"),
            moved_by=[("COPILOT_HOME", "mcp-config.json")],
            http_kind={"type": "http", "tools": ["*"]},
            stdio_kind={"type": "local", "tools": ["*"]},
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "opencode",
            "opencode",
            _everywhere("~/.config/opencode/opencode.json"),
            servers="mcp",
            # Other variables add files to this one.
            moved_by=[("XDG_CONFIG_HOME", "opencode/opencode.json")],
            joins_command=True,
            environment_member="environment",
            http_kind={"type": "remote"},
            stdio_kind={"type": "local"},
            then="Start a new session; 'opencode mcp list' shows the connection.",
        ),
        AgentProgram(
            "qwen-code",
            "Qwen Code",
            _everywhere("~/.qwen/settings.json"),
            moved_by=[("QWEN_HOME", "settings.json")],
            url_member="httpUrl",
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "cline",
            "Cline",
            _everywhere("~/.cline/data/settings/cline_mcp_settings.json"),
            moved_by=[
                ("CLINE_MCP_SETTINGS_PATH", ""),
                ("CLINE_DATA_DIR", "settings/cline_mcp_settings.json"),
                ("CLINE_DIR", "data/settings/cline_mcp_settings.json"),
            ],
            entry_in="transport",
            http_kind={"type": "streamableHttp"},
            stdio_kind={"type": "stdio"},
            then="Start a new session.",
        ),
        AgentProgram(
            "kimi-code",
            "Kimi Code",
            _everywhere("~/.kimi-code/mcp.json"),
            moved_by=[("KIMI_CODE_HOME", "mcp.json")],
            then="Start a new session; /mcp shows the connection.",
        ),
        AgentProgram(
            "continue",
            "Continue",
            _everywhere("~/.continue/config.yaml"),
            format=Format.YAML,
            moved_by=[("CONTINUE_GLOBAL_DIR", "config.yaml")],
            new_file="name: Local\nversion: 1.0.0\nschema: v1\n",
            headers_in="requestOptions",
            http_kind={"type": "streamable-http"},
            then="Start a new session.",
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
