"""``headgate watch``: import what arrives in a directory."""

from __future__ import annotations

import dataclasses
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.import_text import printable, report_lines
from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, json_text, settings_of
from headgate.errors import InvalidRequest, ResourceLimit
from headgate.settings import Settings
from headgate.sources.importing import Importer, ImportReport
from headgate.sources.inputs.disk import settled_entries
from headgate.sources.parsers import FileChoice, FileParser
from headgate.sources.planning import ImportPlan
from headgate.sources.reading_note import READING_NOTES
from headgate.wiring import Services, now


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
        name = printable(self.path.name, 60)
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
    settings = settings_of(context).settings
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
    with FileParser(FileChoice(paths=[path], notes=settings.home / READING_NOTES)) as parser:
        try:
            plan = parser.plan()
        except (InvalidRequest, ResourceLimit) as error:
            return WatchEvent(path, error.message)
        except OSError as error:
            return WatchEvent(path, error.strerror or str(error))
        return WatchEvent(path, "", with_stores(settings, partial(_run, plan)), plan.unknown)


async def _run(plan: ImportPlan, stores: Services) -> Sequence[ImportReport]:
    importer = Importer(stores.store, clock=now)
    jobs = [one.job for one in plan.imports]
    return [await importer.run(job) for job in jobs if not await importer.has_run(job)]
