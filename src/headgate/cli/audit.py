"""``headgate audit``: what was sent to which client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.stores import require_home, with_stores_if_any
from headgate.cli.terminal import AsJson, many, settings_of
from headgate.errors import IntegrityBroken, LogUnverifiable
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US, iso

if TYPE_CHECKING:
    from headgate.wiring import HomeStores

app = typer.Typer(help="Show and check the audit log: what was read and refused.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Show and check the audit log: what was read and refused."""


@app.command("list")
def list_(
    context: typer.Context,
    *,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 50,
    client: Annotated[str | None, typer.Option(help="Only of this client.", metavar="NAME")] = None,
    alarms: Annotated[
        bool, typer.Option("--alarms", help="Only the days on which a client read far more than usual.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what was read and what was refused, newest first."""
    if alarms:
        _list_alarms(context, client, limit, as_json=as_json)
        return

    def find(stores: HomeStores) -> list[dict[str, Any]]:
        from headgate.audit.report import entry_document, newest_entries  # noqa: PLC0415 - needs the extra

        found: list[dict[str, Any]] = []
        for entry in newest_entries(stores.ledger):
            document = entry_document(entry)
            if client in {None, document["client_id"]}:
                found.append(document)
            if len(found) == limit:
                break
        return found

    none = "Nothing was read or refused yet." if client is None else f"No entries for client '{client}'."
    _print(_run(context, find), none, as_json=as_json)


def _list_alarms(context: typer.Context, client: str | None, limit: int, *, as_json: bool) -> None:
    factor = settings_of(context).settings.alarm_factor

    def find(stores: HomeStores) -> list[dict[str, Any]]:
        return [
            {
                "client_id": one.client_id,
                "day": iso(one.day * DAY_US)[:10],
                "records": one.records,
                "usual": one.usual,
            }
            for one in stores.clients().alarms(factor)
            if client in {None, one.client_id}
        ][:limit]

    found = _run(context, find)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo(f"No client read more than {factor} times its usual.", err=True)
    for one in found:
        typer.echo(f"{one['day']}  {one['client_id']}  {one['records']} records; usual {one['usual']} a day")


@app.command()
def verify(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check that no entry was changed and none is missing. Ends with 69 if that cannot be checked here."""

    def check(stores: HomeStores) -> dict[str, Any]:
        from headgate.audit import chain  # noqa: PLC0415 - needs the extra

        verdict = chain.verify(stores.ledger, chain.read_notes(stores.home))
        return {
            "whole": verdict.is_whole,
            "count": verdict.count,
            "broken_at": verdict.broken_at,
            "problem": verdict.problem or None,
            "unchecked": verdict.unchecked or None,
        }

    require_home(settings_of(context).settings)
    found = _run(context, check)
    if as_json:
        typer.echo(json.dumps(found))
    elif found["whole"]:
        typer.echo(f"The log is whole: {found['count']} entries.")
    if found["unchecked"]:
        raise LogUnverifiable(f"{found['unchecked']} Of what can be checked nothing was changed.")
    if not found["whole"]:
        raise IntegrityBroken(
            f"The log is broken at entry {found['broken_at']}: {found['problem']}",
            hint="Compare it with a backup.",
        )


@app.command("who-read")
def who_read(
    context: typer.Context,
    record: Annotated[str, typer.Argument(help="The record's id.", metavar="RECORD")],
    *,
    stream: Annotated[str | None, typer.Option(help="Of this stream.", metavar="STREAM")] = None,
    connection: Annotated[str | None, typer.Option(help="Of this connection.", metavar="ID")] = None,
    as_json: AsJson = False,
) -> None:
    """Say who has read a record."""

    def find(stores: HomeStores) -> list[dict[str, Any]]:
        from headgate.audit import report  # noqa: PLC0415 - needs the extra

        entries = report.who_read(
            stores.ledger,
            RecordId(record),
            None if stream is None else StreamName(stream),
            None if connection is None else ConnectionId(connection),
        )
        return [report.entry_document(entry) for entry in entries]

    _print(_run(context, find), "Nobody has read such a record.", as_json=as_json)


@app.command()
def export(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the whole log, one JSON object a line; with --json as one array."""

    def write(stores: HomeStores) -> None:
        from headgate.audit.report import all_entries, entry_document  # noqa: PLC0415 - needs the extra

        documents = (entry_document(entry) for entry in all_entries(stores.ledger))
        if as_json:
            typer.echo(json.dumps(list(documents)))
            return
        for document in documents:
            typer.echo(json.dumps(document))

    _run(context, write)


def _run(context: typer.Context, work: Callable[[HomeStores], Any]) -> Any:
    async def run(stores: HomeStores) -> Any:
        return work(stores)

    return with_stores_if_any(settings_of(context).settings, run)


def _print(documents: list[dict[str, Any]], if_none: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(documents, indent=2))
        return
    if not documents:
        typer.echo(if_none, err=True)
    for one in documents:
        who = one["client_id"] or one["token_kind"]
        shown = f"{many(one['record_count'], 'record')}, {many(one['size_bytes'], 'byte')}"
        typer.echo(f"{one['seq']:>6}  {one['at']}  {who}  {one['via']}  {one['outcome']}  {shown}")
