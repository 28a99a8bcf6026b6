"""``headgate export``: what was brought in can leave."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from headgate.cli.sources import find_connection
from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, settings_of
from headgate.sources.exporting import ExportFormat, ExportReport, export_connection
from headgate.wiring import Services


def export(
    context: typer.Context,
    connection: Annotated[str, typer.Argument(help="The connection's id or name.", metavar="CONNECTION")],
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
        found = await find_connection(stores, connection)
        return await export_connection(stores.store, found, directory, ExportFormat(form), stream or ())

    report = with_stores(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(report), indent=2))
        return
    for name, count in report.records.items():
        typer.echo(f"{name}: {count:,} records")
    if report.file_count:
        typer.echo(f"{report.file_count:,} files")
    if report.missing_file_count:
        typer.echo(f"{report.missing_file_count:,} files that records refer to are not there", err=True)
