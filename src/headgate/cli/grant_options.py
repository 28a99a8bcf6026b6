"""The options that say what a grant covers and for how long, for every command that makes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

from headgate.auth.clock import now
from headgate.auth.grants import Choice
from headgate.cli.terminal import connection_named, typed_instant
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest
from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import ConnectionId, ConnectorKey, connection_id, field_name, stream_name
from headgate.policy.allowance import SourceCatalog

#: How long a grant is valid by default.
DAYS = 30
_MOST_DAYS = 36_500
_MOST_RECORDS = 1_000_000_000
_T = TypeVar("_T")

Connections = Annotated[
    list[str] | None,
    typer.Option("--connection", help="Only this connection; may be repeated.", metavar="NAME"),
]
Streams = Annotated[
    list[str] | None, typer.Option("--stream", help="Only this stream; may be repeated.", metavar="STREAM")
]
Fields = Annotated[
    list[str] | None, typer.Option("--fields", help="Only these fields of a stream.", metavar="STREAM=A,B")
]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Only records from this time on: a date, 30d or yesterday.", metavar="TIME"),
]
Until = Annotated[str | None, typer.Option("--until", help="Only records before this time.", metavar="TIME")]
Days = Annotated[int, typer.Option("--days", help="Days until the grant expires.")]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Limit the grant to N records a day.", metavar="N/day")
]
Confirmed = Annotated[bool, typer.Option("--yes", help="Do not ask before granting everything.")]


def refused_choice(
    refusal: InvalidAuthorizationDetails, catalog: SourceCatalog, choice: Choice
) -> InvalidRequest:
    """Make the refusal of a choice, with the values that are there."""
    return InvalidRequest(refusal.message, hint=_offered_values(catalog, choice, refusal.param))


def with_ids(choice: Choice, catalog: SourceCatalog) -> Choice:
    """Replace the names of connections by their ids."""
    if not catalog.connections:
        return choice
    labels = {
        str(key): connection.display_name or connection.connector_key
        for key, connection in catalog.connections.items()
    }
    ids = tuple(ConnectionId(connection_named(labels, name)) for name in choice.connection_ids)
    return dataclasses.replace(choice, connection_ids=ids)


def _offered_values(catalog: SourceCatalog, choice: Choice, param: str | None) -> str:
    """Build a hint that lists the valid values of the option at fault."""
    if not catalog.connections:
        return "Import something first: headgate import PATH"
    match param:
        case "stream":
            streams = {name for _, source in _chosen_sources(catalog, choice) for name in source.streams}
            return f"Streams are {', '.join(sorted(streams))}."
        case "fields":
            return f"{'; '.join(_offered_fields(catalog, choice))}."
        case _:
            return "See 'headgate grants create --help'."


def _chosen_sources(catalog: SourceCatalog, choice: Choice) -> list[tuple[str, SourceDeclaration]]:
    """Return the sources of the connections that were chosen, each after the names of these connections."""
    labels: dict[ConnectorKey, list[str]] = {}
    for key in choice.connection_ids or catalog.connections:
        connection = catalog.connections[key]
        labels.setdefault(connection.connector_key, []).append(connection.display_name or connection.id)
    return [
        (", ".join(sorted(labels[key])), source)
        for key, source in catalog.declarations.items()
        if key in labels
    ]


def _offered_fields(catalog: SourceCatalog, choice: Choice) -> Iterable[str]:
    """Write the fields of each named stream; by source, where several have it with other fields."""
    for name in dict(choice.fields):
        there = [
            (label, ", ".join(source.streams[name].fields))
            for label, source in _chosen_sources(catalog, choice)
            if name in source.streams
        ]
        if len({fields for _, fields in there}) == 1:
            yield f"{name} has {there[0][1]}"
        else:
            yield from (f"{name} of {label} has {fields}" for label, fields in there)


def read_choice(
    connections: list[str] | None,
    streams: list[str] | None,
    fields: list[str] | None,
    since: str | None,
    until: str | None,
) -> Choice:
    """Read the options that say what a grant shows."""
    return Choice(
        connection_ids=tuple(
            read_option("connection", connection_id, connection) for connection in connections or ()
        ),
        streams=tuple(read_option("stream", stream_name, stream) for stream in streams or ()),
        fields=_fields(fields or ()),
        since=_time("since", since),
        until=_time("until", until),
    )


def read_option(option: str, reader: Callable[[str], _T], text: str) -> _T:
    """Parse an option's value; the error names the option."""
    try:
        return reader(text)
    except InvalidRequest:
        raise _slip(option, "must be plain text of 1 to 1024 characters") from None


def _slip(option: str, rule: str) -> typer.BadParameter:
    return typer.BadParameter(rule, param_hint=f"'--{option}'")


def _fields(options: Iterable[str]) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Read the fields of each stream; options that name the same stream are merged."""
    chosen: dict[Any, tuple[Any, ...]] = {}
    for text in options:
        stream, _, names = text.partition("=")
        if not stream or not names:
            raise _slip("fields", "it is written STREAM=A,B")
        key = read_option("fields", stream_name, stream)
        fields = (read_option("fields", field_name, name) for name in names.split(","))
        chosen[key] = (*chosen.get(key, ()), *fields)
    return tuple(chosen.items())


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None

    at = typed_instant(text, now())
    if at is None:
        raise _slip(option, "it must be a time such as 2026-01-01, 30d, today or yesterday")
    return at


def read_days(days: int) -> int:
    """Check the option for how long a grant is valid."""
    if not 1 <= days <= _MOST_DAYS:
        raise _slip("days", "it must be at least 1" if days < 1 else f"it must be at most {_MOST_DAYS}")
    return days


def read_budget(text: str | None) -> int | None:
    """Read the option for the records of a day."""
    if text is None:
        return None
    number, _, unit = text.partition("/")
    if unit not in {"", "day"} or not (number.isascii() and number.isdecimal()):
        raise _slip("budget", "it is written N/day")
    if not 1 <= int(number[:12]) <= _MOST_RECORDS:
        raise _slip("budget", f"it must be from 1 to {_MOST_RECORDS} records a day")
    return int(number)
