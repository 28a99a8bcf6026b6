"""``headgate import``: bring files in."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.import_text import import_progress, preview_text, printable, report_lines, size_text
from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, home_option, json_text, needs_extra, settings_of
from headgate.errors import InvalidRequest, StorageFull
from headgate.home import with_home
from headgate.sources.importing import Importer, ImportReport
from headgate.sources.parsers import FileChoice, FileParser
from headgate.sources.planning import ImportPlan, PlannedImport
from headgate.sources.reading_note import READING_NOTES
from headgate.wiring import Services, now

#: Something was left out: rows were rejected, a file could not be read, or reading ended early.
EXIT_REJECTED = 65
_NAMES_SHOWN = 10


def import_files(
    context: typer.Context,
    paths: Annotated[list[Path], typer.Argument(help="Files, directories or archives.", metavar="PATH...")],
    *,
    source: Annotated[
        str | None,
        typer.Option(help="Read the files as this source; see 'headgate sources list'.", metavar="NAME"),
    ] = None,
    connection: Annotated[
        str | None,
        typer.Option(help="The name of the connection; an existing name adds to it.", metavar="NAME"),
    ] = None,
    declare: Annotated[
        Path | None,
        typer.Option(help="A file that corrects the types, key or times of a table.", metavar="FILE.toml"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported, and store nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import files: mail, calendars, chats, bank, notes, tables.

    Importing a file again adds nothing.

    On a terminal it shows a preview and asks. It ends with 65 if rows were rejected or a file could not be read.
    """
    corrections = _corrections(declare)
    choice = FileChoice(
        paths=paths,
        source=source,
        name=connection,
        corrections=corrections,
        notes=settings_of(context).settings.home / READING_NOTES,
    )
    with FileParser(choice) as parser, needs_extra("sources"):
        plan = _plan(parser)
        if dry_run:
            _print_previews(plan, as_json=as_json)
            return
        if not yes and not as_json and sys.stdin.isatty() and sys.stderr.isatty():
            _print_previews(plan, as_json=False)
            typer.confirm("Import this?", abort=True, default=True, err=True)
        reports = _run(context, plan.imports)
    _print_reports(context, reports, plan.unknown, as_json=as_json)
    if plan.has_unreadable or any(report.reject_count or report.failure for report in reports):
        raise typer.Exit(EXIT_REJECTED)


def _corrections(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.", hint="Give a TOML file.") from None
    except ValueError as error:
        raise InvalidRequest(f"{path} cannot be read: {error}.", hint="It must be a TOML file.") from None


def _plan(parser: FileParser) -> ImportPlan:
    try:
        return parser.plan()
    except InvalidRequest as error:
        if error.param == "source":
            raise typer.BadParameter(error.hint, param_hint="'--source'") from None
        raise


# Running


def _run(context: typer.Context, planned: Sequence[PlannedImport]) -> list[ImportReport]:
    async def work(stores: Services) -> list[ImportReport]:
        importer = Importer(stores.store, clock=now)
        reports: list[ImportReport] = []
        for one in planned:
            with import_progress() as show:
                reports.append(await importer.run(one.job, show))
        return reports

    try:
        return with_stores(settings_of(context).settings, work)
    except StorageFull as error:
        error.hint = "Free some space and run the same command again: it goes on from there."
        raise
    except KeyboardInterrupt:
        typer.echo("Interrupted. What was read is stored; the same command goes on from there.", err=True)
        raise


# Printing


def _print_previews(plan: ImportPlan, *, as_json: bool) -> None:
    previews = [(one, one.preview()) for one in plan.imports]
    if as_json:
        document = {
            "imports": [one.document(shown) for one, shown in previews],
            "unknown_files": list(plan.unknown),
        }
        typer.echo(json_text(document, indent=2, default=str))
        return
    for one, shown in previews:
        files = f"{len(one.files):,} file{'s' if len(one.files) != 1 else ''}"
        size = size_text(one.job.total_bytes)
        typer.echo(f"{printable(one.job.display_name, 60)} ({one.source}; {files}, {size})")
        typer.echo(preview_text(shown))
    _print_unknown(plan.unknown)


def _print_unknown(unknown: Sequence[str]) -> None:
    if unknown:
        names = ", ".join(printable(one, 160) for one in unknown[:_NAMES_SHOWN])
        more = f" and {len(unknown) - _NAMES_SHOWN:,} more" if len(unknown) > _NAMES_SHOWN else ""
        typer.echo(f"Not read: {names}{more}", err=True)


def _print_reports(
    context: typer.Context, reports: Sequence[ImportReport], unknown: Sequence[str], *, as_json: bool
) -> None:
    grant = next_command(context, reports)
    if as_json:
        document = {
            "imports": [dataclasses.asdict(report) for report in reports],
            "unknown_files": list(unknown),
            "next": grant,
        }
        typer.echo(json_text(document, indent=2))
        return
    for report in reports:
        resumed = ", from where it was interrupted" if report.is_resumed else ""
        typer.echo(f"{printable(report.display_name, 60)} ({report.connection_id}){resumed}")
        for line in report_lines(report):
            typer.echo(line)
    _print_unknown(unknown)
    typer.echo(f"Let an agent read it:\n  {grant}")


def next_command(context: typer.Context, reports: Sequence[ImportReport]) -> str:
    """Write the command that grants what came in."""
    command = shlex.join(["headgate", "grants", "create", "--client", "agent", *_of(reports)])
    return with_home(command, home_option(context))


def _of(reports: Sequence[ImportReport]) -> Iterator[str]:
    for connection in dict.fromkeys(report.connection_id for report in reports):
        yield from ("--connection", connection)
