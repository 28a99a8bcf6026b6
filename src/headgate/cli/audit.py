"""``headgate audit``: what was sent to which client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from headgate.audit import chain, report
from headgate.audit.report import all_entries, entry_document, newest_entries
from headgate.cli.stores import with_stores_if_any
from headgate.cli.terminal import AsJson, many, require_home, settings_of
from headgate.cli.times import typed_instant
from headgate.errors import IntegrityBroken, InvalidRequest, LogUnverifiable
from headgate.model.disclosure import Disclosure
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US, iso
from headgate.wiring import HomeStores, now

app = typer.Typer(help="Show and check the audit log: what was read and refused.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Show and check the audit log: what was read and refused."""


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

    async def find(stores: HomeStores) -> list[dict[str, Any]]:

        found: list[dict[str, Any]] = []
        async for entry in newest_entries(stores.ledger):
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

    async def find(stores: HomeStores) -> list[dict[str, Any]]:
        return [
            {
                "client_id": one.client_id,
                "day": iso(one.day * DAY_US)[:10],
                "records": one.records,
                "usual": one.usual,
            }
            for one in await stores.clients().alarms(factor)
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
    """Check that no entry was changed and none is missing.

    It ends with 69 if that cannot be checked here.
    """

    async def check(stores: HomeStores) -> dict[str, Any]:

        verdict = await chain.verify(stores.ledger, chain.read_notes(stores.home))
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

    async def find(stores: HomeStores) -> list[dict[str, Any]]:

        def times(event: Disclosure) -> dict[str, int]:
            # Of the reads that were folded together some may have shown other records.
            found = report.folded_times(report.parts_of(event, *looked_for))
            return {} if found is None else {"times": found}

        entries = report.who_read(stores.ledger, *looked_for)
        return [
            {**report.entry_document(entry), **times(report.read_event(entry))} async for entry in entries
        ]

    _print(_run(context, find), "No client has read such a record.", as_json=as_json)


@app.command()
def export(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Print the whole log, one JSON object a line; with --json as one array."""

    async def write(stores: HomeStores) -> None:

        documents = (entry_document(entry) async for entry in all_entries(stores.ledger))
        if as_json:
            typer.echo(json.dumps([document async for document in documents]))
            return
        async for document in documents:
            typer.echo(json.dumps(document))

    _run(context, write)


@app.command()
def fold(
    context: typer.Context,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(
            help="Summarise reads older than this: 400d, or a date. The default is the setting log_details_days.",
            metavar="TIME",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the result, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Summarise old reads by day and record.

    The summaries still show who has read a record. Only whole days are summarised.
    """
    settings = settings_of(context).settings

    async def work(stores: HomeStores) -> dict[str, int]:

        before = _older_than(older_than, settings.log_details_days, now())
        done = await (stores.would_fold_log(before) if dry_run else stores.fold_log(before))
        return {"reads": done.reads, "bytes_before": done.bytes_before, "bytes_after": done.bytes_after}

    require_home(settings)
    found = _run(context, work)
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, **found}))
    elif not found["reads"]:
        typer.echo("Nothing in the log is that old.")
    else:
        verb = "would be" if dry_run else "were"
        sizes = f"{many(found['bytes_before'], 'byte')} become {many(found['bytes_after'], 'byte')}"
        typer.echo(f"{many(found['reads'], 'read')} {verb} folded: {sizes}.")


def _older_than(text: str | None, days: int, now: int) -> int:
    if text is None:
        # With 0 days everything is kept.
        return now - days * DAY_US if days else 0
    at = typed_instant(text, now)
    if at is None:
        raise InvalidRequest(
            f"'{text}' is no time.", param="older-than", hint="Write 400d, 52w, or a date such as 2026-01-31."
        )
    return at


def _run(context: typer.Context, work: Callable[[HomeStores], Awaitable[Any]]) -> Any:
    return with_stores_if_any(settings_of(context).settings, work)


def _print(documents: list[dict[str, Any]], if_none: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(documents, indent=2))
        return
    if not documents:
        typer.echo(if_none, err=True)
    for one in documents:
        who = one["client_id"] or one["token_kind"]
        shown = f"{many(one['record_count'], 'record')}, {many(one['size_bytes'], 'byte')}"
        times = one.get("times", one.get("reads"))
        when = one["at"] if times is None else f"{one['at'][:10]}, {many(times, 'time')}"
        words = f"  {json.dumps(one['words'])}" if "words" in one else ""
        typer.echo(f"{one['seq']:>6}  {when}  {who}  {one['via']}  {one['outcome']}  {shown}{words}")
