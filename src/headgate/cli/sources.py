"""``headgate sources``: what can be imported, and what was; ``headgate export``: what was imported can leave."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headgate.auth.clock import now
from headgate.cli.homes import find_connection, read_stores, use_stores
from headgate.cli.import_text import import_progress, report_lines
from headgate.cli.imports import EXIT_REJECTED
from headgate.cli.terminal import AsJson, Yes, echo, group, many, printable, put, settings_of, state_of, table
from headgate.errors import HeadgateError
from headgate.model.plan import Reach
from headgate.model.record import Connection
from headgate.sources.accounts import Accounts, account_job, add_account, state_of as state_of_account
from headgate.sources.exporting import ExportFormat, ExportReport, export_connection
from headgate.sources.importing import ImportReport
from headgate.sources.protocol import LiveSource
from headgate.sources.registry import sources
from headgate.wiring import Services, live_sources

app = group()

_PAUSE = re.compile(r"(\d{1,5})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_Which = Annotated[str, typer.Argument(help="The connection's id or name.", metavar="CONNECTION")]


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List connections and available sources."""
    files, live = sources(), _live_sources(context)

    async def work(stores: Services) -> list[dict[str, Any]]:
        return [await _row(stores, connection) for connection in await stores.store.connections()]

    rows = read_stores(context, work)
    known = {
        "files": {name: source.title for name, source in files.items()},
        "live": {name: dict(source.settings) for name, source in live.items()},
    }
    cells = [
        (row["connection_id"], row["connector_key"], printable(row["display_name"], 50), _when(row))
        for row in rows
    ]
    lines = table([("connection", "source", "name", "last import"), *cells]) if cells else []
    put({"connections": rows, "sources": known}, lines, as_json=as_json)
    if not as_json:
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
    return "  ".join(text for text in (done, failed, following) if text)


def _second(time: str) -> str:
    """Write a time without fractions of a second."""
    return f"{time.removesuffix('Z').partition('.')[0]}Z"


@app.command()
def show(context: typer.Context, connection: _Which, *, as_json: AsJson = False) -> None:
    """Show the streams, counts and settings of a connection."""

    async def work(stores: Services) -> dict[str, Any]:
        chosen = await find_connection(stores, connection)
        declared = (await stores.store.declarations())[chosen.connector_key]
        reaches = [Reach(name, (chosen.id,), (), with_hidden=True) for name in declared.streams]
        counts = {summary.stream: summary.record_count for summary in await stores.store.summaries(reaches)}
        streams = {str(name): counts.get(name, 0) for name in declared.streams}
        return {**await _row(stores, chosen), "streams": streams}

    row = use_stores(context, work)
    put(row, table(list(_facts(row))), as_json=as_json)


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
    pairs = [text.partition("=") for text in option or ()]
    if any(not equals for _, equals, _ in pairs):
        raise typer.BadParameter("it is written NAME=VALUE", param_hint="'--set'")
    seconds = None if every is None else _seconds(every)

    async def work(stores: Services) -> Connection:
        settings = {name: value for name, _, value in pairs}
        job = account_job(known[source], settings, connection, every_seconds=seconds)
        return await add_account(stores.store, job)

    added = use_stores(context, work)
    document = {"connection_id": added.id, "display_name": added.display_name}
    text = f"Added {printable(added.display_name)} ({added.id}). Fetch it with: headgate sources sync"
    put(document, [text], as_json=as_json, indent=None, context=context)


def _seconds(text: str) -> int:
    """Read a pause; 0 is never."""
    pause = _PAUSE.fullmatch(text.strip().lower())
    if text.strip().lower() != "never" and (pause is None or not int(pause[1])):
        raise typer.BadParameter("it is written 15m, 2h, 1d or never", param_hint="'--every'")
    return 0 if pause is None else int(pause[1]) * _UNITS[pause[2]]


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
    settings = settings_of(context)

    async def work(stores: Services) -> list[ImportReport]:
        reports: list[ImportReport] = []
        chosen = (
            [await find_connection(stores, connection) for connection in connections]
            if connections
            else await stores.store.connections()
        )
        for connection in chosen:
            if not connections and (await state_of_account(stores.store, connection)).live_source is None:
                continue
            accounts = Accounts(stores.store, live, now, settings.sync_minutes * _UNITS["m"])
            try:
                with import_progress() as show_progress:
                    reports.append(await accounts.fetch(connection, show_progress))
            except HeadgateError as error:
                failures.append(error)
                typer.echo(f"{printable(connection.display_name)}: {error.message}", err=True)
        return reports

    live = _live_sources(context)
    reports = use_stores(settings, work)
    lines = [
        line
        for report in reports
        for line in (f"{printable(report.display_name)} ({report.connection_id})", *report_lines(report))
    ]
    put([dataclasses.asdict(report) for report in reports], lines, as_json=as_json)
    if not (reports or as_json):
        echo(context, "There is no account to fetch from. See 'headgate sources add --help'.", err=True)
    if failures:
        raise failures[0]
    if any(report.failure or report.reject_count for report in reports):
        raise typer.Exit(EXIT_REJECTED)


@app.command()
def remove(context: typer.Context, connection: _Which, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Remove a connection with all its records.

    'headgate store erase' also removes every trace of them.
    """
    chosen = use_stores(context, lambda stores: find_connection(stores, connection))
    if not yes:
        typer.confirm(f"Remove {printable(chosen.display_name)} ({chosen.id})?", abort=True, err=True)
    use_stores(context, lambda stores: stores.store.delete_connection(chosen.id))
    put({"removed": chosen.id}, [f"Removed {chosen.id}."], as_json=as_json, indent=None)


def _live_sources(context: typer.Context) -> Mapping[str, LiveSource]:
    return live_sources(settings_of(context).home, state_of(context).environment)


async def _row(stores: Services, connection: Connection) -> dict[str, Any]:
    state = await state_of_account(stores.store, connection)
    return {
        "connection_id": connection.id,
        "connector_key": connection.connector_key,
        "display_name": connection.display_name,
        **dataclasses.asdict(state),
        "freshness": None if state.freshness is None else state.freshness.document(),
    }


def export(
    context: typer.Context,
    connection: _Which,
    directory: Annotated[Path, typer.Argument(help="The directory to create.", metavar="DIR")],
    *,
    form: Annotated[
        Literal["jsonl", "csv", "sqlite", "mbox", "ics", "vcf"],
        typer.Option(
            "--format", help="The format; mbox, ics and vcf are for mail, calendar and contacts programs."
        ),
    ] = "jsonl",
    stream: Annotated[
        list[str] | None, typer.Option(help="Only this stream; may be repeated.", metavar="STREAM")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export the records and files of a connection to a directory.

    In CSV, text that a spreadsheet would run as a formula gets an apostrophe in front.
    """

    async def work(stores: Services) -> ExportReport:
        chosen = await find_connection(stores, connection)
        return await export_connection(
            stores.store, chosen, directory, ExportFormat(form), stream or (), now=now()
        )

    report = use_stores(context, work)
    lines = [f"{name}: {many(count, 'record')}" for name, count in report.records.items()]
    if report.file_count:
        lines.append(many(report.file_count, "file"))
    put(dataclasses.asdict(report), lines, as_json=as_json)
    if report.missing_file_count and not as_json:
        typer.echo(f"{report.missing_file_count:,} files that records refer to are not there", err=True)
