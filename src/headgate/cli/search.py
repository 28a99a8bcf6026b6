"""``headgate search``: find one's own records on a terminal, in lines for a person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

import typer

from headgate.cli.terminal import AsJson, connection_named, many, printable, put, require_home, settings_of
from headgate.errors import InvalidRequest
from headgate.model.ids import ConnectionId, StreamName
from headgate.model.query import MAX_PAGE, SearchQuery
from headgate.text.line import written_line
from headgate.text.search import unmarked
from headgate.wiring import build_services, prepare

_LINE_CHARS = 160
_EXCERPT_CHARS = 200
_NOTHING_FOUND = 1


def search(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(help="The words. A phrase stands in quotes inside quotes.", metavar="WORD..."),
    ],
    *,
    source: Annotated[
        str | None, typer.Option(help="Only in this source: its name or its id.", metavar="SOURCE")
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="Only this kind of record, such as messages.", metavar="STREAM")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most this number of records.", min=1, max=MAX_PAGE)] = 10,
    as_json: AsJson = False,
) -> None:
    """Search your own records.

    Days and senders that you name ("invoice in March", "from Rosa") count as such. It ends with 1 if nothing is found.
    """
    settings = settings_of(context)
    require_home(settings)

    async def work() -> tuple[list[dict[str, Any]], bool]:
        # By words: a command that ends at once has no time to load a model.
        services = build_services(replace(settings, semantic_model="off"), prepare(settings))
        async with services.running():
            catalog = await services.reads.catalog()
            labels = {str(key): known.display_name or key for key, known in catalog.connections.items()}
            streams = {name for known in catalog.declarations.values() for name in known.streams}
            if stream is not None and stream not in streams:
                raise InvalidRequest(
                    f"There is no stream '{stream[:80]}'.", hint=f"Streams are {', '.join(sorted(streams))}."
                )
            query = SearchQuery(
                " ".join(words),
                None if stream is None else (StreamName(stream),),
                None if source is None else ConnectionId(connection_named(labels, source)),
                limit=limit,
                collapse=True,
                understand=True,
            )
            server = await services.own_records()
            body = (await server.search(query, line_chars=_LINE_CHARS)).body()
            return body["data"], bool(body.get("has_more"))

    rows, has_more = asyncio.run(work())
    put([_document(row) for row in rows], [line for row in rows for line in _lines(row)], as_json=as_json)
    if not rows:
        typer.echo("Nothing found. Try fewer or other words.", err=True)
        raise typer.Exit(_NOTHING_FOUND)
    if has_more and not as_json:
        typer.echo(
            f"There are more than these {many(len(rows), 'record')}: --limit {min(limit * 5, MAX_PAGE)}",
            err=True,
        )


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row["line"],
        "source": _source(row),
        "stream": row["stream"],
        "connection_id": row["connection_id"],
        "id": row["record_key"],
        "text": unmarked(_excerpt(row)),
    }


def _lines(row: Mapping[str, Any]) -> list[str]:
    text = unmarked(_excerpt(row))
    title = str(row["line"].get("title", ""))
    excerpt = "" if text == title else f": {printable(text, _EXCERPT_CHARS)}"
    first = written_line(row["line"]) or row["record_key"]
    return [printable(first, _LINE_CHARS), f"    {printable(_source(row))}, {row['stream']}{excerpt}"]


def _source(row: Mapping[str, Any]) -> str:
    return str(row.get("display_name") or row["connector_key"])


def _excerpt(row: Mapping[str, Any]) -> str:
    return str(cast("Mapping[str, Any]", row.get("snippet") or {}).get("text", ""))
