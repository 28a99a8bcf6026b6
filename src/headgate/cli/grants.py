"""``headgate grants``: what the owner lets clients see."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headgate.cli.grant_options import (
    Budget,
    Confirmed,
    Connections,
    Days,
    Fields,
    Since,
    Streams,
    Until,
)
from headgate.cli.grant_preview import ask_for_everything, show_preview
from headgate.cli.mcp import cache_root_of
from headgate.cli.stores import require_home, with_stores, with_stores_if_any
from headgate.cli.terminal import AsJson, State, echo, many, settings_of, table
from headgate.cli.times import typed_instant
from headgate.clients.programs import PROGRAMS, HttpServer, shell_line
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest, NotFound
from headgate.model.ids import (
    ClientId,
    ConnectionId,
    ConnectorKey,
    client_id,
    connection_id,
    field_name,
    grant_id,
    stream_name,
)
from headgate.model.instants import DAY_US, iso

if TYPE_CHECKING:
    from headgate.auth.clients import GrantOverview
    from headgate.auth.grants import Choice, Conditions, Issued
    from headgate.model.declaration import SourceDeclaration
    from headgate.model.ledger import IssuedGrant
    from headgate.policy.allowance import SourceCatalog
    from headgate.wiring import HomeStores

#: How long a grant is valid by default.
DAYS = 30
_MOST_DAYS = 36_500
_MOST_RECORDS = 1_000_000_000
_T = TypeVar("_T")
app = typer.Typer(help="Create, list and revoke grants: what clients may see.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Create, list and revoke grants: what clients may see."""


@app.command()
def create(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    *,
    client: Annotated[str, typer.Option(help="Who the grant is for.", metavar="NAME")],
    connection: Connections = None,
    stream: Streams = None,
    fields: Fields = None,
    since: Since = None,
    until: Until = None,
    days: Days = DAYS,
    budget: Budget = None,
    save: Annotated[
        bool, typer.Option("--save", help="Save the token for 'headgate mcp' instead of printing it.")
    ] = False,
    yes: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    """Show what a client would see, grant it, and print its token once."""
    settings = settings_of(context).settings
    # Parsed before anything is opened, so that a wrong option is reported as a usage error.
    name, choice = (
        read_option("client", client_id, client),
        read_choice(connection, stream, fields, since, until),
    )
    daily, days = read_budget(budget), read_days(days)
    require_home(settings)
    if not as_json:
        show_preview(settings, choice, client, days)
    ask_for_everything(choice, is_confirmed=yes)

    async def work(stores: HomeStores) -> Issued:
        from headgate.auth.grants import Conditions  # noqa: PLC0415 - needs the extra

        return await issue_choice(stores, choice, Conditions(name, days=days, daily_records=daily))

    issued = with_stores(settings, work)
    from headgate.wiring import mcp_url  # noqa: PLC0415 - needs the extra

    if save:
        path = save_token(context, client, issued, mcp_url(settings))
        document = {"saved": str(path), "grant_ids": [grant.id for grant in issued.grants]}
        if as_json:
            typer.echo(json.dumps(document))
        else:
            echo(context, f"Saved for 'headgate mcp' in {path}")
        return
    address = mcp_url(settings)
    if as_json:
        typer.echo(json.dumps(_issued(issued, address)))
    else:
        echo(context, _issued_text(client, issued, address))


async def issue_choice(stores: HomeStores, choice: Choice, conditions: Conditions) -> Issued:
    """Issue what a person chose on the command line.

    Raises:
        InvalidRequest: the choice names something that is not there; the hint lists what is.
    """
    from headgate.auth.grants import issue  # noqa: PLC0415 - needs the extra
    from headgate.wiring import now  # noqa: PLC0415 - needs the extra

    catalog = await stores.catalog()
    if conditions.days is not None:
        stores.latest.refuse_clock_behind(now())
    named = with_ids(choice, catalog)
    try:
        return await issue(stores.ledger, named, conditions, catalog=catalog, now=now())
    except InvalidAuthorizationDetails as refusal:
        raise refused_choice(refusal, catalog, named) from None


def refused_choice(
    refusal: InvalidAuthorizationDetails, catalog: SourceCatalog, choice: Choice
) -> InvalidRequest:
    """Make the refusal of a choice, with the values that are there."""
    return InvalidRequest(refusal.message, hint=offered_values(catalog, choice, refusal.param))


def with_ids(choice: Choice, catalog: SourceCatalog) -> Choice:
    """Replace the names of connections by their ids."""
    ids = tuple(connection_named(catalog, name) for name in choice.connection_ids)
    return dataclasses.replace(choice, connection_ids=ids)


def connection_named(catalog: SourceCatalog, name: ConnectionId) -> ConnectionId:
    """Find a connection by its id or by the name that the owner gave it; a name that is neither stays as it is.

    Raises:
        InvalidRequest: several connections have the name.
    """
    if name in catalog.connections:
        return name
    found = [
        one.id
        for one in catalog.connections.values()
        if (one.display_name or "").casefold() == name.casefold()
    ]
    if len(found) > 1:
        raise InvalidRequest(
            f"{len(found)} connections are called '{name}'.", hint=f"Give an id: {', '.join(sorted(found))}."
        )
    return found[0] if found else name


def save_token(context: typer.Context, client: str, issued: Issued, address: str) -> Path:
    """Save the token in the file of its client, and say so if another one was there."""
    from headgate.auth.credentials import home_credential_path, write_token  # noqa: PLC0415 - needs the extra
    from headgate.wiring import now  # noqa: PLC0415 - needs the extra

    state: State = context.obj
    root = cache_root_of(state.environment)
    path = home_credential_path(root, settings_of(context).settings.home, client)
    if path.exists():
        typer.echo(f"The token that was saved for {client} before is replaced; its grant goes on.", err=True)
    credential = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "pdpp_token_kind": issued.token_kind.value,
    }
    write_token(path, address.removesuffix("/mcp"), credential, created_at=iso(now()))
    return path


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List every grant with dates, last use and budget."""

    async def work(stores: HomeStores) -> list[tuple[dict[str, Any], GrantOverview]]:
        from headgate.auth.documents import issued_document  # noqa: PLC0415 - needs the extra

        overviews = {
            one.issued.grant.id: one for client in await stores.clients().overview() for one in client.grants
        }
        now = stores.judged_at()
        return [(issued_document(one, now), overviews[one.grant.id]) for one in await stores.ledger.grants()]

    found = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps([document | _use(overview) for document, overview in found], indent=2))
        return
    if not found:
        echo(context, "There are no grants yet. See 'headgate grants create --help'.", err=True)
        return
    heads = ("grant", "state", "client", "issued", "last used", "expires", "budget", "streams")
    for line in table([heads, *(_row(document, overview) for document, overview in found)]):
        typer.echo(line)


def _use(overview: GrantOverview) -> dict[str, Any]:
    day = overview.last_day
    return {
        "last_used_on": None if day is None else iso(day * DAY_US)[:10],
        "records_today": overview.today,
    }


def _row(document: dict[str, Any], overview: GrantOverview) -> tuple[str, ...]:
    daily = document["daily_records"]
    return (
        document["grant_id"],
        document["state"],
        document["client"]["client_id"],
        document["issued_at"][:10],
        _use(overview)["last_used_on"] or "-",
        (document["expires_at"] or "never")[:10],
        "-" if daily is None else f"{overview.today:,} of {daily:,} today",
        ", ".join(stream["name"] for stream in document["streams"]),
    )


@app.command()
def show(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id, or a client's name.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Describe in words what a grant allows."""

    async def work(stores: HomeStores) -> str:
        from headgate.auth.documents import in_words, issued_document  # noqa: PLC0415 - needs the extra

        now, found = stores.judged_at(), await _named(stores, grant)
        if as_json:
            documents = [issued_document(one, now) for one in found]
            return json.dumps(documents[0] if found[0].grant.id == grant else documents, indent=2)
        labels: dict[str, str] = {
            one.id: one.display_name or one.id for one in await stores.store.connections()
        }
        words = [in_words(one, labels, now) for one in found]
        if found[0].grant.id == grant:
            return words[0]
        texts = (f"{one.grant.id}: {text}" for one, text in zip(found, words, strict=True))
        return "\n".join([f"'{grant}' is a client with {many(len(found), 'grant')}:", *texts])

    typer.echo(with_stores_if_any(settings_of(context).settings, work))


@app.command()
def revoke(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id, or a client's name.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Revoke a grant, or every grant of a client.

    The client is refused from its next request on.
    """

    async def work(stores: HomeStores) -> list[str]:
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        found = await _named(stores, grant)
        active = [one for one in found if one.grant.id == grant or one.revoked_at is None]
        for one in active:
            await stores.ledger.revoke(one.grant.id, now())
        return [one.grant.id for one in active]

    ended = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps({"revoked": True, "grant_id": grant, "grant_ids": ended}))
    elif ended == [grant]:
        typer.echo(f"{grant} is revoked.")
    elif ended:
        typer.echo(f"{grant} can no longer read anything: {many(len(ended), 'grant')} revoked.")
    else:
        typer.echo(f"{grant} had no active grant.")


async def _named(stores: HomeStores, name: str) -> list[IssuedGrant]:
    """Find a grant by its id, or the grants of a client.

    Raises:
        NotFound: there is neither.
    """
    one = await stores.ledger.grant(grant_id(name))
    if one is not None:
        return [one]
    found = [each for each in await stores.ledger.grants() if each.grant.client_id == ClientId(name)]
    if not found:
        raise NotFound(f"There is no grant or client '{name}'.", hint="See 'headgate grants list'.")
    return found


def offered_values(catalog: SourceCatalog, choice: Choice, param: str | None) -> str:
    """Build a hint that lists the valid values of the option at fault."""
    if not catalog.connections:
        return "Import something first: headgate import PATH"
    match param:
        case "connection":
            names = [
                f"{one.display_name or one.connector_key} ({one.id})" for one in catalog.connections.values()
            ]
            return f"Connections are {', '.join(sorted(names))}."
        case "stream":
            streams = {name for _, source in _chosen_sources(catalog, choice) for name in source.streams}
            return f"Streams are {', '.join(sorted(streams))}."
        case "fields":
            return f"{'; '.join(_offered_fields(catalog, choice))}."
        case _:
            return "See 'headgate grants create --help'."


def _chosen_sources(catalog: SourceCatalog, choice: Choice) -> list[tuple[str, SourceDeclaration]]:
    """Return the sources of the connections that were chosen, each after the names of these connections."""
    chosen = [catalog.connections[one] for one in choice.connection_ids or catalog.connections]
    labels: dict[ConnectorKey, list[str]] = {}
    for one in chosen:
        labels.setdefault(one.connector_key, []).append(one.display_name or one.id)
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
    from headgate.auth.grants import Choice  # noqa: PLC0415 - needs the extra

    return Choice(
        connection_ids=tuple(read_option("connection", connection_id, one) for one in connections or ()),
        streams=tuple(read_option("stream", stream_name, one) for one in streams or ()),
        fields=_merged(_fields(one) for one in fields or ()),
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


def _fields(text: str) -> tuple[Any, tuple[Any, ...]]:
    stream, _, names = text.partition("=")
    if not stream or not names:
        raise _slip("fields", "it is written STREAM=A,B")
    chosen = tuple(read_option("fields", field_name, one) for one in names.split(","))
    return read_option("fields", stream_name, stream), chosen


def _merged(chosen: Iterable[tuple[Any, tuple[Any, ...]]]) -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Merge the fields of options that name the same stream."""
    found: dict[Any, tuple[Any, ...]] = {}
    for stream, names in chosen:
        found[stream] = (*found.get(stream, ()), *names)
    return tuple(found.items())


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    from headgate.wiring import now  # noqa: PLC0415 - needs the extra

    at = typed_instant(text, now())
    if at is None:
        raise _slip(option, "it must be a time such as 2026-01-01, 30d, today or yesterday")
    return at


def read_days(days: int) -> int:
    """Check the option for how long a grant is valid."""
    if days < 1:
        raise _slip("days", "it must be at least 1")
    if days > _MOST_DAYS:
        raise _slip("days", f"it must be at most {_MOST_DAYS}")
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


def _issued(issued: Issued, url: str) -> dict[str, Any]:
    return {
        "access_token": issued.access_token,
        "token_kind": issued.token_kind.value,
        "grant_ids": [grant.id for grant in issued.grants],
        "package_id": issued.package_id,
        "mcp_url": url,
    }


def _issued_text(client: str, issued: Issued, url: str) -> str:
    lines = [f"grant  {grant.id}" for grant in issued.grants]
    if issued.package_id is not None:
        lines.append(f"package  {issued.package_id}")
    return "\n".join(
        [
            *lines,
            f"connect to  {url}",
            f"token (shown only now)  {issued.access_token}",
            *_client_lines(client, HttpServer(url, issued.access_token)),
            f"end it with  headgate grants revoke {client}",
        ]
    )


def _client_lines(client: str, server: HttpServer) -> list[str]:
    """Write what the client needs, if it is a program that is known."""
    program = PROGRAMS.get(client)
    if program is None:
        return [f"the client sends  Authorization: Bearer {server.token}"]
    line = shell_line(program, server)
    return [
        f"run once  {line}" if line else f"or write its file with  headgate connect {client} --again --write"
    ]
