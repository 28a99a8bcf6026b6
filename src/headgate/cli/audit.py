"""``headgate audit``: what was sent to which client."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.audit import activity, chain
from headgate.audit.activity import all_entries, entry_document, newest_entries
from headgate.auth.clock import now
from headgate.cli.homes import read_stores
from headgate.cli.terminal import AsJson, day_text, group, many, put, require_home, settings_of, typed_instant
from headgate.errors import IntegrityBroken, InvalidRequest, LogUnverifiable
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US
from headgate.wiring import Services

app = group()


@app.command("list")
def list_(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(help="The number of entries, newest first.", min=1)] = 50,
    client: Annotated[str | None, typer.Option(help="Only entries of this client.", metavar="NAME")] = None,
    alarms: Annotated[
        bool, typer.Option("--alarms", help="Show only the days on which a client read far more than usual.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what was read and what was refused, newest first."""
    if alarms:
        _list_alarms(context, client, limit, as_json=as_json)
        return

    async def find(stores: Services) -> list[dict[str, Any]]:
        documents: list[dict[str, Any]] = []
        async for entry in newest_entries(stores.ledger):
            document = entry_document(entry)
            if client in {None, document["client_id"]}:
                documents.append(document)
            if len(documents) == limit:
                break
        return documents

    none = "Nothing was read or refused yet." if client is None else f"No entries for client '{client}'."
    _print(read_stores(context, find), none, as_json=as_json)


def _list_alarms(context: typer.Context, client: str | None, limit: int, *, as_json: bool) -> None:
    factor = settings_of(context).alarm_factor

    async def find(stores: Services) -> list[dict[str, Any]]:
        return [
            {
                "client_id": alarm.client_id,
                "day": day_text(alarm.day * DAY_US),
                "records": alarm.records,
                "usual": alarm.usual,
            }
            for alarm in await stores.clients.alarms(factor)
            if client in {None, alarm.client_id}
        ][:limit]

    alarms = read_stores(context, find)
    lines = [
        f"{alarm['day']}  {alarm['client_id']}  {alarm['records']} records; usual {alarm['usual']} a day"
        for alarm in alarms
    ]
    put(alarms, lines, as_json=as_json)
    if not (alarms or as_json):
        typer.echo(f"No client read more than {factor} times its usual.", err=True)


@app.command()
def verify(
    context: typer.Context,
    *,
    pruned: Annotated[
        Path | None, typer.Option("--pruned", help="Check a file that 'audit prune' wrote.", metavar="FILE")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check that no entry was changed and none is missing.

    It ends with 69 if that cannot be checked here.
    """
    if pruned is not None:
        _verify_pruned(context, pruned, as_json=as_json)
        return

    async def check(stores: Services) -> dict[str, Any]:
        verdict = await chain.verify(stores.ledger, chain.read_notes(stores.home))
        return {
            "whole": verdict.is_whole,
            "count": verdict.count,
            "broken_at": verdict.broken_at,
            "problem": verdict.problem or None,
            "unchecked": verdict.unchecked or None,
        }

    require_home(settings_of(context))
    document = read_stores(context, check)
    lines = [f"The log is whole: {document['count']} entries."] if document["whole"] else []
    put(document, lines, as_json=as_json, indent=None)
    if document["unchecked"]:
        raise LogUnverifiable(f"{document['unchecked']} Of what can be checked nothing was changed.")
    if not document["whole"]:
        raise IntegrityBroken(
            f"The log is broken at entry {document['broken_at']}: {document['problem']}",
            hint="Compare it with a backup.",
        )


def _verify_pruned(context: typer.Context, path: Path, *, as_json: bool) -> None:
    require_home(settings_of(context))
    report = read_stores(context, lambda stores: stores.verify_pruned(path))
    document = {"whole": True, "count": report.entries, "first": report.first, "last": report.last}
    text = f"The file is whole: entries {report.first} to {report.last} of the log."
    put(document, [text], as_json=as_json, indent=None)


@app.command("who-read")
def who_read(
    context: typer.Context,
    record: Annotated[str, typer.Argument(help="The record's id.", metavar="RECORD")],
    *,
    stream: Annotated[str | None, typer.Option(help="Only in this stream.", metavar="STREAM")] = None,
    connection: Annotated[str | None, typer.Option(help="Only in this connection.", metavar="ID")] = None,
    as_json: AsJson = False,
) -> None:
    """Show who has read a record."""
    looked_for = (
        RecordId(record),
        None if stream is None else StreamName(stream),
        None if connection is None else ConnectionId(connection),
    )

    async def find(stores: Services) -> list[dict[str, Any]]:
        return [entry_document(entry) async for entry in activity.who_read(stores.ledger, *looked_for)]

    _print(read_stores(context, find), "No client has read such a record.", as_json=as_json)


@app.command()
def export(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the whole log, one JSON object a line; with --json as one array."""

    async def write(stores: Services) -> None:
        documents = (entry_document(entry) async for entry in all_entries(stores.ledger))
        if as_json:
            typer.echo(json.dumps([document async for document in documents]))
            return
        async for document in documents:
            typer.echo(json.dumps(document))

    read_stores(context, write)


@app.command()
def prune(
    context: typer.Context,
    *,
    before: Annotated[
        str, typer.Option(help="Move entries older than this: 400d, or a date.", metavar="TIME")
    ],
    to: Annotated[Path, typer.Option("--to", help="The new file that gets them.", metavar="FILE")],
    as_json: AsJson = False,
) -> None:
    """Move old entries of the log to a file.

    One sealed line stays in their place, so that the log can be verified without the file and the file by the log.
    Records that were read before that time are then found in the file alone.
    """
    require_home(settings_of(context))
    at = typed_instant(before, now())
    if at is None:
        raise InvalidRequest(
            f"'{before}' is no time.", param="before", hint="Write 400d, 52w, or a date such as 2026-01-31."
        )
    report = read_stores(context, lambda stores: stores.prune_log(at, to.absolute()))
    lines = ["Nothing in the log is that old."]
    if report.entries:
        moved = f"{many(report.entries, 'entry', 'entries')} {'was' if report.entries == 1 else 'were'} moved"
        lines = [
            f"{moved} to {to}. Keep it, and check it with:",
            f"  headgate audit verify --pruned {shlex.quote(str(to))}",
        ]
    document = {"entries": report.entries, "first": report.first, "last": report.last}
    put(document | {"file": str(to) if report.entries else None}, lines, as_json=as_json, indent=None)


def _print(documents: list[dict[str, Any]], if_none: str, *, as_json: bool) -> None:
    put(documents, map(_line, documents), as_json=as_json)
    if not (documents or as_json):
        typer.echo(if_none, err=True)


def _line(document: dict[str, Any]) -> str:
    who = document["client_id"] or document["token_kind"]
    read = f"{many(document['record_count'], 'record')}, {many(document['size_bytes'], 'byte')}"
    words = f"  {json.dumps(document['words'])}" if "words" in document else ""
    return f"{document['seq']:>6}  {document['at']}  {who}  {document['via']}  {document['outcome']}  {read}{words}"
