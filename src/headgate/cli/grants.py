"""``headgate grants``: what the owner lets clients see."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headgate.cli.mcp import cache_root_of
from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, State, settings_of
from headgate.errors import InvalidAuthorizationDetails, InvalidRequest, NotFound
from headgate.model.ids import client_id, connection_id, field_name, grant_id, stream_name
from headgate.model.instants import instant, iso

if TYPE_CHECKING:
    from headgate.auth.grants import Choice, Conditions, Issued
    from headgate.policy.allowance import SourceCatalog
    from headgate.wiring import HomeStores

_MOST_DAYS = 36_500
_MOST_RECORDS = 1_000_000_000
_T = TypeVar("_T")
app = typer.Typer(help="Look after what clients may see.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Look after what clients may see."""


@app.command()
def create(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    *,
    client: Annotated[str, typer.Option(help="Who the grant is for.", metavar="NAME")],
    connection: Annotated[
        list[str] | None, typer.Option(help="Only this connection; may be repeated.", metavar="ID")
    ] = None,
    stream: Annotated[
        list[str] | None, typer.Option(help="Only this stream; may be repeated.", metavar="STREAM")
    ] = None,
    fields: Annotated[
        list[str] | None, typer.Option(help="Only these fields of a stream.", metavar="STREAM=A,B")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only records from this time on.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Only records before this time.", metavar="TIME")] = None,
    days: Annotated[
        int | None, typer.Option(help="End the grant after so many days.", min=1, max=_MOST_DAYS)
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Show at most so many records a day.", metavar="N/day")
    ] = None,
    save: Annotated[
        bool, typer.Option("--save", help="Keep the token for 'headgate mcp' instead of printing it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Grant a client something, and print its token once."""
    settings = settings_of(context).settings
    # Parsed before anything is opened, so that a wrong option is reported as a usage error.
    name, choice = (
        read_option("client", client_id, client),
        read_choice(connection, stream, fields, since, until),
    )
    daily = read_budget(budget)

    async def work(stores: HomeStores) -> Issued:
        from headgate.auth.grants import Conditions  # noqa: PLC0415 - needs the extra

        return await issue_choice(stores, choice, Conditions(name, days=days, daily_records=daily))

    issued = with_stores(settings, work)
    from headgate.wiring import mcp_url  # noqa: PLC0415 - needs the extra

    if save:
        path = save_token(context, client, issued, mcp_url(settings))
        document = {"saved": str(path), "grant_ids": [grant.id for grant in issued.grants]}
        typer.echo(json.dumps(document) if as_json else f"Saved for 'headgate mcp' in {path}")
        return
    typer.echo(
        json.dumps(_issued(issued, mcp_url(settings))) if as_json else _issued_text(issued, mcp_url(settings))
    )


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
    try:
        return await issue(stores.ledger, choice, conditions, catalog=catalog, now=now())
    except InvalidAuthorizationDetails as refusal:
        raise InvalidRequest(refusal.message, hint=offered_values(catalog, choice, refusal.param)) from None


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
    """List every grant, newest first."""

    async def work(stores: HomeStores) -> list[dict[str, Any]]:
        from headgate.auth.documents import issued_document  # noqa: PLC0415 - needs the extra

        return [issued_document(one, stores.judged_at()) for one in stores.ledger.grants()]

    found = with_stores(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("There are no grants yet. See 'headgate grants create --help'.", err=True)
    for one in found:
        streams = ", ".join(stream["name"] for stream in one["streams"])
        typer.echo(f"{one['grant_id']}  {one['state']:<8}  {one['client']['client_id']}  {streams}")


@app.command()
def show(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Say in words what a grant lets its client see."""

    async def work(stores: HomeStores) -> str:
        from headgate.auth.documents import in_words, issued_document  # noqa: PLC0415 - needs the extra

        found = stores.ledger.grant(grant_id(grant))
        if found is None:
            raise NotFound("There is no such grant.", hint="See 'headgate grants list'.")
        if as_json:
            return json.dumps(issued_document(found, stores.judged_at()), indent=2)
        labels: dict[str, str] = {
            one.id: one.display_name or one.id for one in await stores.store.connections()
        }
        return in_words(found, labels, stores.judged_at())

    typer.echo(with_stores(settings_of(context).settings, work))


@app.command()
def revoke(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """End a grant; its client is refused from the next request on."""

    async def work(stores: HomeStores) -> bool:
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        return await stores.ledger.revoke(grant_id(grant), now())

    if not with_stores(settings_of(context).settings, work):
        raise NotFound("There is no such grant.", hint="See 'headgate grants list'.")
    typer.echo(json.dumps({"revoked": True, "grant_id": grant}) if as_json else f"{grant} is revoked.")


def offered_values(catalog: SourceCatalog, choice: Choice, param: str | None) -> str:
    """Build a hint that lists the valid values of the option at fault."""
    if not catalog.connections:
        return "Add a connection and records first; the README shows how."
    declared = {name: one for source in catalog.declarations.values() for name, one in source.streams.items()}
    match param:
        case "connection":
            return f"Connections are {', '.join(sorted(catalog.connections))}."
        case "stream":
            return f"Streams are {', '.join(sorted(declared))}."
        case "fields":
            named = [
                f"{one} has {', '.join(declared[one].fields)}" for one, _ in choice.fields if one in declared
            ]
            return f"{'; '.join(named)}."
        case _:
            return "See 'headgate grants create --help'."


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
    at = instant(text)
    if at is None:
        raise _slip(option, "it must be a time such as 2026-01-01")
    return at


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


def _issued_text(issued: Issued, url: str) -> str:
    lines = [f"grant  {grant.id}" for grant in issued.grants]
    if issued.package_id is not None:
        lines.append(f"package  {issued.package_id}")
    return "\n".join([*lines, f"connect to  {url}", f"token (shown only now)  {issued.access_token}"])
