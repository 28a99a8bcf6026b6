"""``headgate sources``: what can be brought in, and what was."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.import_text import import_progress, printable, report_lines
from headgate.cli.imports import EXIT_REJECTED
from headgate.cli.stores import with_stores, with_stores_if_any
from headgate.cli.terminal import AsJson, echo, json_text, many, settings_of, table
from headgate.errors import HeadgateError, NotFound
from headgate.model.plan import Reach
from headgate.model.record import Connection
from headgate.settings import Settings
from headgate.sources.accounts import Accounts, account_job, add_account, state_of
from headgate.sources.importing import ImportReport
from headgate.sources.protocol import LiveSource
from headgate.sources.registry import sources
from headgate.wiring import Services, live_sources, now

app = typer.Typer(help="Manage imported data, and accounts to fetch from.", rich_markup_mode=None)

_PAUSE = re.compile(r"(\d{1,5})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_Which = Annotated[str, typer.Argument(help="The connection's id or name.", metavar="CONNECTION")]


@app.callback()
def _noun() -> None:
    """Manage imported data, and accounts to fetch from."""


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List connections and available sources."""
    files, live = sources(), _live_sources(context)

    async def work(stores: Services) -> list[dict[str, Any]]:
        return [await _row(stores, connection) for connection in await stores.store.connections()]

    rows = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        known = {
            "files": {name: one.title for name, one in files.items()},
            "live": {name: dict(one.settings) for name, one in live.items()},
        }
        typer.echo(json_text({"connections": rows, "sources": known}, indent=2))
        return
    shown = [
        (row["connection_id"], row["connector_key"], printable(row["display_name"], 50), _when(row))
        for row in rows
    ]
    for line in table([("connection", "source", "name", "last import"), *shown]) if shown else ():
        typer.echo(line)
    typer.echo(f"Files that can be imported: {', '.join(sorted(files))}", err=True)
    typer.echo(f"Accounts that can be fetched: {', '.join(sorted(live))}", err=True)


def _when(row: dict[str, Any]) -> str:
    """Write when a connection was filled; of an account also when it is next, or what went wrong."""
    filled = _second(row["finished_at"]) if row["finished_at"] else "-"
    filled = "interrupted" if row["is_interrupted"] else filled
    noted: dict[str, Any] | None = row["freshness"]
    if noted is None:
        return filled
    done = _second(noted["succeeded_at"]) if noted["succeeded_at"] else "-"
    failed = (
        f"failed {_second(noted['attempted_at'])}: {printable(noted['error'], 80)}" if noted["error"] else ""
    )
    following = f"next {_second(noted['next_at'])}" if noted["next_at"] else ""
    return "  ".join(one for one in (done, failed, following) if one)


def _second(time: str) -> str:
    """Write a time without fractions of a second."""
    return f"{time.removesuffix('Z').partition('.')[0]}Z"


@app.command()
def show(context: typer.Context, connection: _Which, *, as_json: AsJson = False) -> None:
    """Show the streams, counts and settings of a connection."""

    async def work(stores: Services) -> dict[str, Any]:
        found = await find_connection(stores, connection)
        declared = (await stores.store.declarations())[found.connector_key]
        reaches = [Reach(name, (found.id,), (), with_hidden=True) for name in declared.streams]
        counts = {summary.stream: summary.record_count for summary in await stores.store.summaries(reaches)}
        streams = {str(name): counts.get(name, 0) for name in declared.streams}
        return {**await _row(stores, found), "streams": streams}

    row = with_stores(settings_of(context).settings, work)
    if as_json:
        typer.echo(json_text(row, indent=2))
        return
    for line in table(list(_facts(row))):
        typer.echo(line)


def _facts(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return what is known of a connection, in words; what it does not have is left out."""
    yield "connection", row["connection_id"]
    yield "name", printable(row["display_name"], 80)
    yield "source", row["connector_key"]
    yield "last import", _when(row)
    for name, count in row["streams"].items():
        yield name, many(count, "record")
    if row["live_source"]:
        yield "account", row["live_source"]
        yield "fetched", _pause(row["every_seconds"])
        for name, value in row["settings"].items():
            yield f"  {name}", printable(value, 80)


def _pause(seconds: int | None) -> str:
    if seconds is None:
        return "as often as the setting sync_minutes says"
    return f"every {many(seconds, 'second')}" if seconds else "only by 'headgate sources sync'"


@app.command()
def add(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(help="The live source; see 'headgate sources list'.", metavar="SOURCE")
    ],
    *,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the account.", metavar="NAME=VALUE")
    ] = None,
    connection: Annotated[
        str | None, typer.Option(help="The name of the connection.", metavar="NAME")
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="How often a server fetches it: 15m, 2h, 1d, or never. The default is the setting sync_minutes.",
            metavar="PAUSE",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add an account, without fetching anything yet.

    A setting names where a secret is; the secret itself is read when it is needed.
    """
    known = _live_sources(context)
    if source not in known:
        raise typer.BadParameter(f"live sources are {', '.join(sorted(known))}", param_hint="'SOURCE'")
    pairs = [one.partition("=") for one in option or ()]
    if any(not equals for _, equals, _ in pairs):
        raise typer.BadParameter("it is written NAME=VALUE", param_hint="'--set'")
    seconds = None if every is None else _seconds(every)

    async def work(stores: Services) -> Connection:
        given = {name: value for name, _, value in pairs}
        job = account_job(known[source], given, connection, every_seconds=seconds)
        return await add_account(stores.store, job)

    made = with_stores(settings_of(context).settings, work)
    document = {"connection_id": made.id, "display_name": made.display_name}
    text = f"Added {printable(made.display_name, 60)} ({made.id}). Fetch it with: headgate sources sync"
    if as_json:
        typer.echo(json_text(document))
    else:
        echo(context, text)


def _seconds(text: str) -> int:
    """Read a pause; 0 is never."""
    found = _PAUSE.fullmatch(text.strip().lower())
    if text.strip().lower() != "never" and (found is None or not int(found[1])):
        raise typer.BadParameter("it is written 15m, 2h, 1d or never", param_hint="'--every'")
    return 0 if found is None else int(found[1]) * _UNITS[found[2]]


@app.command()
def sync(
    context: typer.Context,
    connections: Annotated[
        list[str] | None, typer.Argument(help="Only these, by id or name.", metavar="CONNECTION...")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Fetch what is new in the accounts.

    It ends with 65 if something was left out.
    """
    failures: list[HeadgateError] = []
    settings = settings_of(context).settings

    async def work(stores: Services) -> list[ImportReport]:
        reports: list[ImportReport] = []
        every = await stores.store.connections()
        chosen = (
            [await find_connection(stores, connection) for connection in connections]
            if connections
            else every
        )
        for one in chosen:
            try:
                report = await _fetch(settings, stores, one, is_named=bool(connections))
            except HeadgateError as error:
                failures.append(error)
                typer.echo(f"{printable(one.display_name, 60)}: {error.message}", err=True)
            else:
                reports += [] if report is None else [report]
        return reports

    reports = with_stores(settings, work)
    if as_json:
        typer.echo(json_text([dataclasses.asdict(one) for one in reports], indent=2))
    else:
        _print(context, reports)
    if failures:
        raise failures[0]
    if any(one.failure or one.reject_count for one in reports):
        raise typer.Exit(EXIT_REJECTED)


async def _fetch(
    settings: Settings, stores: Services, connection: Connection, *, is_named: bool
) -> ImportReport | None:
    if not is_named and (await state_of(stores.store, connection)).live_source is None:
        return None
    known = live_sources(stores.home.path, os.environ)
    accounts = Accounts(stores.store, known, now, settings.sync_minutes * _UNITS["m"])
    with import_progress() as show_progress:
        return await accounts.fetch(connection, show_progress)


def _print(context: typer.Context, reports: Sequence[ImportReport]) -> None:
    if not reports:
        echo(context, "There is no account to fetch from. See 'headgate sources add --help'.", err=True)
    for report in reports:
        typer.echo(f"{printable(report.display_name, 60)} ({report.connection_id})")
        for line in report_lines(report):
            typer.echo(line)


@app.command()
def remove(
    context: typer.Context,
    connection: _Which,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a connection with all its records.

    'headgate store erase' also removes every trace of them.
    """

    async def name(stores: Services) -> Connection:
        return await find_connection(stores, connection)

    settings = settings_of(context).settings
    found = with_stores(settings, name)
    if not yes:
        typer.confirm(f"Remove {printable(found.display_name, 60)} ({found.id})?", abort=True, err=True)

    async def work(stores: Services) -> None:
        await stores.store.delete_connection(found.id)

    with_stores(settings, work)
    typer.echo(json.dumps({"removed": found.id}) if as_json else f"Removed {found.id}.")


def _live_sources(context: typer.Context) -> Mapping[str, LiveSource]:
    return live_sources(Path(settings_of(context).settings.home), os.environ)


async def _row(stores: Services, connection: Connection) -> dict[str, Any]:
    state = await state_of(stores.store, connection)
    return {
        "connection_id": connection.id,
        "connector_key": connection.connector_key,
        "display_name": connection.display_name,
        **dataclasses.asdict(state),
        "freshness": None if state.freshness is None else state.freshness.document(),
    }


async def find_connection(stores: Services, text: str) -> Connection:
    """Find a connection by its id or its name."""
    every = await stores.store.connections()
    found = [one for one in every if text in {one.id, one.display_name}]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{len(found)} connections are called '{text[:80]}'.", hint="Give the id of one.")
    raise NotFound(f"There is no connection '{text[:80]}'.", hint="See 'headgate sources list'.")
