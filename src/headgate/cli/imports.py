"""``headgate import``: import files; ``headgate watch``: import what arrives in a directory."""

from __future__ import annotations

import dataclasses
import shlex
import signal
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.auth.clock import now
from headgate.cli.homes import use_stores
from headgate.cli.import_text import import_progress, preview_text, report_lines
from headgate.cli.terminal import (
    AsJson,
    Yes,
    json_text,
    many,
    needs_extra,
    printable,
    put,
    settings_of,
    size_text,
    state_of,
)
from headgate.errors import InvalidRequest, ResourceLimit, StorageFull
from headgate.home import with_home
from headgate.settings import Settings
from headgate.sources.importing import Importer, ImportReport
from headgate.sources.inputs.disk import settled_entries
from headgate.sources.parsers import FileChoice, FileParser
from headgate.sources.planning import ImportPlan, PlannedImport
from headgate.sources.reading_note import READING_NOTES
from headgate.sources.unknown import summary
from headgate.wiring import Services

#: Something was left out: rows were rejected, a file could not be read, or reading ended early.
EXIT_REJECTED = 65


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
        typer.Option(
            help="A file that corrects the types, key or times of a table, or the signs of a statement.",
            metavar="FILE.toml",
        ),
    ] = None,
    yes: Yes = False,
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
        given_at=now(),
        source=source,
        name=connection,
        corrections=corrections,
        notes=settings_of(context).home / READING_NOTES,
    )
    with FileParser(choice) as parser, needs_extra("sources"):
        plan = _plan(parser)
        if dry_run:
            _print_previews(plan, as_json=as_json)
            return
        if not yes and not as_json and sys.stdin.isatty() and sys.stderr.isatty():
            _print_previews(plan, as_json=False)
            answers = _answers(plan)
            typer.confirm("Import this?", abort=True, default=True, err=True)
            if answers:
                parser.answer(answers)
                plan = _plan(parser)
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


def _answers(plan: ImportPlan) -> dict[str, bool]:
    """Ask what only the person knows of the files."""
    questions = [question for planned in plan.imports for question in planned.questions]
    return {question.file: typer.confirm(printable(question.text, 300), err=True) for question in questions}


# Running


def _run(context: typer.Context, planned: Sequence[PlannedImport]) -> list[ImportReport]:
    async def work(stores: Services) -> list[ImportReport]:
        importer = Importer(stores.store, clock=now)
        reports: list[ImportReport] = []
        for chosen in planned:
            with import_progress() as show:
                reports.append(await importer.run(chosen.job, show))
        return reports

    try:
        return use_stores(context, work)
    except StorageFull as error:
        error.hint = "Free some space and run the same command to resume."
        raise
    except KeyboardInterrupt:
        typer.echo("Interrupted. What was read is stored; run the same command to resume.", err=True)
        raise


# Printing


def _print_previews(plan: ImportPlan, *, as_json: bool) -> None:
    previews = [(planned, planned.preview()) for planned in plan.imports]
    lines: list[str] = []
    for planned, preview in previews:
        about = f"{planned.source}; {many(len(planned.files), 'file')}, {size_text(planned.job.total_bytes)}"
        lines += [f"{printable(planned.job.display_name)} ({about})", preview_text(preview)]
    document = {
        "imports": [planned.document(preview) for planned, preview in previews],
        "unknown_files": list(plan.unknown),
    }
    put(document, lines, as_json=as_json)
    if not as_json:
        _print_unknown(plan.unknown)


def _print_unknown(unknown: Sequence[str]) -> None:
    lines = [printable(line, 600) for line in summary(unknown)]
    if lines:
        typer.echo(
            "\n  ".join(["Not read:", *lines]) if len(lines) > 1 else f"Not read: {lines[0]}", err=True
        )


def _print_reports(
    context: typer.Context, reports: Sequence[ImportReport], unknown: Sequence[str], *, as_json: bool
) -> None:
    connections = dict.fromkeys(report.connection_id for report in reports)
    chosen = [word for connection in connections for word in ("--connection", connection)]
    command = shlex.join(["headgate", "grants", "create", "--client", "agent", *chosen])
    grant = with_home(command, state_of(context).flags.get("home"))
    lines: list[str] = []
    for report in reports:
        resumed = ", from where it was interrupted" if report.is_resumed else ""
        lines.append(f"{printable(report.display_name)} ({report.connection_id}){resumed}")
        lines += report_lines(report)
    document = {
        "imports": [dataclasses.asdict(report) for report in reports],
        "unknown_files": list(unknown),
        "next": grant,
    }
    put(document, lines, as_json=as_json)
    if not as_json:
        _print_unknown(unknown)
        typer.echo(f"Let an agent read it:\n  {grant}")


# Watching


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """What became of one entry of the directory."""

    path: Path
    #: Why nothing of it was read; empty if something was.
    failure: str
    #: Empty if the entry is as it was when it was last imported.
    reports: Sequence[ImportReport] = ()
    unknown: Sequence[str] = ()

    def document(self) -> dict[str, Any]:
        """Write the event as JSON."""
        event: dict[str, Any] = {"event": "imported", "path": str(self.path)}
        if self.failure:
            return {**event, "event": "failed", "message": self.failure}
        if not self.reports:
            return {**event, "event": "unchanged"}
        imports = [dataclasses.asdict(report) for report in self.reports]
        return {**event, "imports": imports, "unknown_files": list(self.unknown)}

    def text(self) -> str:
        """Write the event for people: one line, and one for each stream and reject."""
        name = printable(self.path.name)
        if self.failure:
            return f"{name}: {printable(self.failure, 200)}"
        lines = [line for report in self.reports for line in report_lines(report)]
        return "\n".join([f"{name}:" if lines else f"{name}: nothing new", *lines])


def watch(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="The directory to watch.", metavar="DIR")],
    *,
    every: Annotated[
        float,
        typer.Option(
            help="Seconds between two checks of the directory.", min=0.1, max=3600.0, metavar="SECONDS"
        ),
    ] = 2.0,
    as_json: AsJson = False,
) -> None:
    """Import the files that arrive in a directory, until Ctrl-C.

    A file is imported once it has stopped changing, and again when it changes later. A file that cannot be read is
    reported once. --json prints one line for each event. It ends with 0 when you stop it.
    """
    settings = settings_of(context)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for path in settled_entries(directory, lambda: time.sleep(every)):
            event = _imported(settings, path)
            typer.echo(json_text(event.document()) if as_json else event.text())
    except KeyboardInterrupt:
        if not as_json:
            typer.echo("Stopped.", err=True)


def _imported(settings: Settings, path: Path) -> WatchEvent:
    """Import one entry as `headgate import --yes` does; a bad file is an event, a store that fails is an error."""
    choice = FileChoice(paths=[path], given_at=now(), notes=settings.home / READING_NOTES)
    with FileParser(choice) as parser:
        try:
            plan = parser.plan()
        except (InvalidRequest, ResourceLimit) as error:
            return WatchEvent(path, error.message)
        except OSError as error:
            return WatchEvent(path, error.strerror or str(error))
        return WatchEvent(path, "", use_stores(settings, partial(_run_new, plan)), plan.unknown)


async def _run_new(plan: ImportPlan, stores: Services) -> Sequence[ImportReport]:
    importer = Importer(stores.store, clock=now)
    jobs = [planned.job for planned in plan.imports]
    return [await importer.run(job) for job in jobs if not await importer.has_run(job)]
