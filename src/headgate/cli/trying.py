"""``headgate try``: run a tool as an agent would be answered."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from headgate.cli.terminal import AsJson, json_text, settings_of
from headgate.errors import NotFound
from headgate.mcp.serve.looking import look, read_arguments
from headgate.mcp.serve.results import Outcome
from headgate.model.ids import client_id, grant_id
from headgate.wiring import build_services, mcp_url, prepare


def try_tool(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="One of the six tools, such as search.", metavar="TOOL")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="The arguments: a JSON object, or NAME=VALUE.", metavar="[ARGUMENT]..."),
    ] = None,
    *,
    client: Annotated[str, typer.Option("--as", help="The client.", metavar="CLIENT")],
    grant: Annotated[
        str | None, typer.Option(help="Use this grant; by default the newest.", metavar="GRANT")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a tool as a client, and print exactly what it would see.

    The log lists it as your own read, and it does not count against the client's budget. --json prints the whole
    result, with its structure.
    """
    settings = settings_of(context).settings

    given = read_arguments(tool, arguments or [])

    async def work() -> Outcome:
        services = build_services(settings, prepare(settings))
        async with services.running():
            try:
                named = await services.clients.client(client_id(client))
                granted = named.readable(grant_id(grant) if grant else None)
            except NotFound as error:
                raise NotFound(error.message, hint="See 'headgate grants list'.") from None
            access = await services.admission.access_as(granted)
            address = mcp_url(settings).removesuffix("/mcp")
            return await look(services.reads, access, tool, given, address)

    done = asyncio.run(work())
    typer.echo(json_text(done.whole(), indent=2) if as_json else done.text)
