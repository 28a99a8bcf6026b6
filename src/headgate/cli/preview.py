"""Show what a grant would show before it is given, and ask before it covers everything."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

import typer

from headgate.auth.grants import Choice, chosen_terms
from headgate.cli.grant_options import refused_choice, with_ids
from headgate.cli.terminal import day_text, many, printable, table
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest
from headgate.model.ids import RequestId
from headgate.reading.preview import GrantPreview, Sample, preview
from headgate.settings import Settings
from headgate.text.line import written_line
from headgate.text.writing import cut
from headgate.wiring import build_services, prepare

_SAMPLES = 3
_SAMPLE_FIELDS = 5
_LINE_CHARS = 140
_EMPTY = {"", "[]", "{}", "null"}


def show_preview(settings: Settings, choice: Choice, client: str, days: int | None) -> None:
    """Print on standard error what a choice comes to: for each stream how many records of which time, and samples."""
    previews, labels = asyncio.run(_preview(settings, choice))
    end = "without an end" if days is None else f"for {many(days, 'day')}"
    typer.echo(f"{client} will see, {end}:", err=True)
    names = [
        f"{stream_preview.stream.name} of {', '.join(labels[key] for key in stream_preview.stream.connection_ids)}"
        for stream_preview in previews
    ]
    counts = table(list(zip(names, map(_count, previews), strict=True))) if previews else []
    for line in [*counts, *_samples(previews)]:
        typer.echo(f"  {line}", err=True)


def ask_for_everything(choice: Choice, *, is_confirmed: bool) -> None:
    """Ask the person before a grant without limits is given."""
    if is_confirmed or choice.limits:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "This would grant every field of every record.",
            hint="Limit it with --stream, --fields, --since or --connection, or confirm it with --yes.",
        )
    if not typer.confirm("That is every field of every record. Go on?", err=True):
        typer.echo("Limit it with --stream, --fields, --since or --connection.", err=True)
        raise typer.Abort


async def _preview(settings: Settings, choice: Choice) -> tuple[Sequence[GrantPreview], Mapping[str, str]]:
    services = build_services(replace(settings, semantic_model="off"), prepare(settings))
    async with services.running():
        catalog = await services.reads.catalog()
        named = with_ids(choice, catalog)
        try:
            terms = chosen_terms(named, catalog)
        except InvalidAuthorizationDetails as refusal:
            raise refused_choice(refusal, catalog, named) from None
        previews = await preview(services.reads, terms, RequestId("req_preview"), "cli:preview")
        return previews, {
            connection.id: connection.display_name or connection.id
            for connection in catalog.connections.values()
        }


def _count(stream_preview: GrantPreview) -> str:
    count = many(stream_preview.count, "record")
    if stream_preview.earliest is None or stream_preview.latest is None:
        return count
    return f"{count}, {day_text(stream_preview.earliest)} to {day_text(stream_preview.latest)}"


def _samples(previews: Sequence[GrantPreview]) -> list[str]:
    """Take samples in turn from the streams with most records."""
    largest = sorted(previews, key=lambda stream_preview: -stream_preview.count)
    taken = [
        (stream_preview.stream.name, stream_preview.samples[turn])
        for turn in range(_SAMPLES)
        for stream_preview in largest
        if turn < len(stream_preview.samples)
    ]
    lines = [f"{name}: {_sample(sample)}" for name, sample in taken[:_SAMPLES]]
    return ["for example:", *(f"  {cut(line, _LINE_CHARS)}" for line in lines)] if lines else []


def _sample(sample: Sample) -> str:
    """Write the line of a record, or what else the grant shows of it if it has none."""
    others = (
        f"{field.name}={printable(field.value)}"
        for field in sample.fields
        if not field.is_withheld and field.value not in _EMPTY
    )
    return written_line(sample.line) or ", ".join(islice(others, _SAMPLE_FIELDS))
