"""``headgate mcp``: serve an agent on standard input and output."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

from headgate import __version__
from headgate.cli.terminal import State, needs_extra, settings_of
from headgate.errors import ConfigInvalid


def mcp(
    context: typer.Context,
    *,
    provider_url: Annotated[
        str | None, typer.Option(help="Read from this resource server instead of the home.", metavar="URL")
    ] = None,
    cache_root: Annotated[
        Path | None, typer.Option(help="The directory of saved tokens.", metavar="DIR")
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="Read with the token that was saved for this client.", metavar="NAME")
    ] = None,
    server_name: Annotated[
        str | None, typer.Option(help="The server name that the client sees.", metavar="NAME")
    ] = None,
) -> None:
    """Serve one agent over stdio, with its saved token."""
    state: State = context.obj
    environment = state.environment
    with needs_extra("mcp"):
        from headgate.auth import credentials  # noqa: PLC0415 - libraries of an extra, slow to import
    credentials.refuse_owner_environment(environment)
    address = provider_url or environment.get("PDPP_PROVIDER_URL")
    root = cache_root or cache_root_of(environment)
    name = server_name or environment.get("PDPP_MCP_SERVER_NAME")
    if address:
        _serve_remote(address, root, name)
    else:
        _serve_home(context, root, client, name)


def cache_root_of(environment: Mapping[str, str]) -> Path:
    """Return the directory of granted tokens."""
    return Path(environment.get("PDPP_CACHE_ROOT") or platformdirs.user_config_dir("headgate"))


def _serve_remote(address: str, root: Path, name: str | None) -> None:
    provider, token = _credential(address, root)
    with needs_extra("mcp"):
        from headgate.mcp.serve.remote import run_remote  # noqa: PLC0415 - the same as above
        from headgate.mcp.serve.results import SERVER_NAME, ServerIdentity  # noqa: PLC0415 - the same
    run_remote(provider, token, ServerIdentity(__version__, name or SERVER_NAME))


def _serve_home(context: typer.Context, root: Path, client: str | None, name: str | None) -> None:
    from headgate.auth import credentials  # noqa: PLC0415 - the same

    settings = settings_of(context).settings
    path = (
        credentials.only_credential_path(root, settings.home)
        if client is None
        else credentials.home_credential_path(root, settings.home, client)
    )
    hint = f"Run: headgate grants create --client {shlex.quote(client or 'NAME')} --save"
    token = credentials.read_token(path, now_seconds=_now(), hint=hint)
    with needs_extra("serve"):
        from headgate.mcp.serve.results import SERVER_NAME, ServerIdentity  # noqa: PLC0415 - the same
        from headgate.stdio import run_stdio  # noqa: PLC0415 - the same
    run_stdio(settings, token, ServerIdentity(__version__, name or SERVER_NAME))


def _now() -> int:
    # The clock of this process: headgate.wiring would bring the whole server along.
    return int(time.time())  # noqa: TID251 - see above


def _credential(address: str, root: Path) -> tuple[str, str]:
    from headgate.auth import credentials  # noqa: PLC0415 - the same

    try:
        provider = credentials.provider_address(address)
    except ConfigInvalid as error:
        raise typer.BadParameter(error.message) from error
    path = credentials.credential_path(root, provider)
    hint = (
        f'Put {{"credential": {{"access_token": "TOKEN"}}}} into {path}, with a token granted at {provider}.'
    )
    return provider, credentials.read_token(path, now_seconds=_now(), hint=hint)
