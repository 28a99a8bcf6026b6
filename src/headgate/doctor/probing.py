"""Looks at the home, the token files and the server, and has what it finds judged."""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from headgate.auth.admission import READABLE
from headgate.auth.clock import FILE as LATEST_TIME, LatestTime
from headgate.auth.credentials import home_credential_path, read_token
from headgate.auth.keys import digest_of
from headgate.doctor import judging
from headgate.doctor.judging import Answer, Finding, Level, good, problem
from headgate.errors import HeadgateError
from headgate.home import Home, open_home
from headgate.mcp.serve.tools import TOOLS
from headgate.settings import Settings
from headgate.wiring import open_stores

#: How a client gets another token.
_SAVE = "Run: headgate grants create --client NAME --save"
_SECONDS = 10.0
_MOST_BYTES = 64 * 1024
_GROUP_AND_OTHERS = 0o077
_SECOND_US = 1_000_000
_MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'


@dataclass(frozen=True, slots=True)
class Examined:
    settings: Settings
    #: Where the server answers; empty if it does not run and no public address is set.
    address: str
    #: The directory of token files.
    tokens: Path
    #: Microseconds since 1970.
    now: int


def examine(examined: Examined) -> Iterator[Finding]:
    """Look at everything, in the order in which faults hide each other."""
    home_findings = list(_examine_home(examined.settings.home))
    yield from home_findings
    is_usable = all(checked.level is not Level.PROBLEM for checked in home_findings)
    yield from _examine_tokens(examined, is_usable=is_usable)
    yield judging.judge_tools(TOOLS)
    yield from judging.judge_address(examined.settings.public_url)
    date = ""
    if examined.address:
        server = list(_examine_server(examined.address))
        yield from (finding for finding, _ in server)
        date = next((date for _, date in server if date), "")
    else:
        yield Finding(
            "server", Level.WARNING, "No server runs on this home.", "Start one with: headgate serve"
        )
    if is_usable:
        home = Home(examined.settings.home)
        latest = LatestTime(home).raise_to(0) // _SECOND_US
        yield judging.judge_clock(date, examined.now // _SECOND_US, latest, home.path / LATEST_TIME)


def _examine_home(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield problem(
            "home", f"{path} does not exist.", "Start a server, or import something: both make a home."
        )
        return
    try:
        home = open_home(path)
    except HeadgateError as error:
        yield problem("files", error.message, error.hint)
        return
    open_files = list(_open_to_others(home.path))
    for file in open_files:
        yield problem("files", f"{file} is open to other users.", f"Run: chmod go-rwx {file}")
    if not open_files:
        yield good("files", f"Only you can read what is in {path}.")


def _open_to_others(directory: Path) -> Iterator[Path]:
    for place, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(place) / name
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if not stat.S_ISLNK(mode) and mode & _GROUP_AND_OTHERS:
                yield path


def _examine_tokens(examined: Examined, *, is_usable: bool) -> Iterator[Finding]:
    files = sorted((examined.tokens / "clients").glob("*.json"))
    of_home = home_credential_path(examined.tokens, examined.settings.home).stem
    tokens: dict[str, str] = {}
    wrong: list[Finding] = []
    for file in files:
        try:
            token = read_token(file, now_seconds=examined.now // _SECOND_US, hint=_SAVE)
        except HeadgateError as error:
            wrong.append(problem("token files", f"{file.name}: {error.message}", error.hint))
        else:
            if file.name.startswith(f"{of_home}."):
                tokens[file.name] = token
    if tokens and is_usable:
        wrong += asyncio.run(_ended_tokens(examined.settings, tokens))
    yield from wrong
    if files and not wrong:
        count = "1 saved token is" if len(files) == 1 else f"{len(files)} saved tokens are"
        yield good("token files", f"{count} readable by you alone, and not ended.")


async def _ended_tokens(settings: Settings, tokens: Mapping[str, str]) -> list[Finding]:
    """Look up the tokens that were saved for this home; those for others are judged where they are."""
    findings: list[Finding] = []
    async with open_stores(settings) as stores:
        for name, token in tokens.items():
            holder = await stores.ledger.holder(digest_of(token))
            if holder is None:
                findings.append(problem("token files", f"{name}: This home does not know the token.", _SAVE))
                continue
            states = {grant.state(stores.judged_at()) for grant in holder.grants}
            if not states & READABLE:
                ended = " and ".join(sorted(states)) or "gone"
                who = holder.token.client_id
                text = f"{name}: The grants of {who} are {ended}: it can read nothing."
                findings.append(problem("token files", text, _SAVE.replace("NAME", shlex.quote(str(who)))))
    return findings


def _examine_server(base: str) -> Iterator[tuple[Finding, str]]:
    with httpx2.Client(trust_env=False, follow_redirects=False, timeout=_SECONDS) as client:
        resource = _asked(client, "GET", f"{base}/.well-known/oauth-protected-resource/mcp")
        server = _asked(client, "GET", f"{base}/.well-known/oauth-authorization-server")
        date = resource.headers.get("date", "")
        yield from ((finding, date) for finding in judging.judge_documents(base, resource, server))
        yield judging.judge_challenge(base, _asked(client, "POST", f"{base}/mcp")), date
        yield judging.judge_slash(_asked(client, "POST", f"{base}/mcp/")), date


def _asked(client: httpx2.Client, method: str, url: str) -> Answer:
    more: Mapping[str, Any] = {"content": _CALL, "headers": _MCP_HEADERS} if method == "POST" else {}
    try:
        with client.stream(method, url, **more) as response:
            body = b""
            for piece in response.iter_raw(_MOST_BYTES):
                body += piece
                if len(body) > _MOST_BYTES:
                    break
            return Answer(url, response.status_code, dict(response.headers), body)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return Answer(url, failure=type(error).__name__)
