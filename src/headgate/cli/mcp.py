"""``headgate mcp``: serve an agent on standard input and output."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import platformdirs
import typer

from headgate import __version__
from headgate.cli.extras import needs_extra
from headgate.cli.terminal import State, settings_of
from headgate.errors import ConfigInvalid


def mcp(
    context: typer.Context,
    *,
    provider_url: Annotated[
        str | None, typer.Option(help="Read from this resource server instead of the home.", metavar="URL")
    ] = None,
    cache_root: Annotated[
        Path | None, typer.Option(help="Where granted tokens are kept.", metavar="DIR")
    ] = None,
    server_name: Annotated[
        str | None, typer.Option(help="The name this server tells the client.", metavar="NAME")
    ] = None,
) -> None:
    """Serve granted records to one agent over stdio, with a token from the credential cache."""
    state: State = context.obj
    environment = state.environment
    with needs_extra("mcp"):
        from headgate.auth import credentials  # noqa: PLC0415 - libraries of an extra, slow to import
    credentials.refuse_owner_environment(environment)
    address = provider_url or environment.get("PDPP_PROVIDER_URL")
    root = cache_root or Path(environment.get("PDPP_CACHE_ROOT") or default_cache_root())
    name = server_name or environment.get("PDPP_MCP_SERVER_NAME")
    if address:
        _serve_remote(address, root, name)
    else:
        _serve_home(context, root, name)


def default_cache_root() -> str:
    """Return the default directory of granted tokens."""
    return platformdirs.user_config_dir("headgate")


def _serve_remote(address: str, root: Path, name: str | None) -> None:
    provider, token = _credential(address, root)
    with needs_extra("mcp"):
        from headgate.mcp.serve.results import SERVER_NAME, ServerIdentity  # noqa: PLC0415 - the same as above
        from headgate.mcp.serve.stdio import run_remote  # noqa: PLC0415 - the same
    run_remote(provider, token, ServerIdentity(__version__, name or SERVER_NAME))


def _serve_home(context: typer.Context, root: Path, name: str | None) -> None:
    from headgate.auth import credentials  # noqa: PLC0415 - the same

    settings = settings_of(context).settings
    path = credentials.home_credential_path(root, settings.home)
    token = credentials.read_token(
        path, now_seconds=_now(), hint="Run: headgate grants create --client NAME --save"
    )
    with needs_extra("serve"):
        from headgate.mcp.serve.results import SERVER_NAME, ServerIdentity  # noqa: PLC0415 - the same
        from headgate.wiring import run_stdio  # noqa: PLC0415 - the same
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
