"""``headgate grants``: what the owner lets clients see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.archive import AsJson, with_archive
from headgate.cli.mcp import default_cache_root
from headgate.cli.terminal import State, settings_of
from headgate.errors import InvalidRequest, NotFound
from headgate.model.ids import client_id, connection_id, field_name, grant_id, stream_name
from headgate.model.instants import instant, iso

if TYPE_CHECKING:
    from headgate.auth.grants import Choice, Conditions, Issued
    from headgate.wiring import Archive

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
    days: Annotated[int | None, typer.Option(help="End the grant after so many days.", min=1)] = None,
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
    asked = (connection or [], stream or [], fields or [], since, until)

    async def work(archive: Archive) -> Issued:
        from headgate.auth.grants import Conditions, issue  # noqa: PLC0415 - needs the extra
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        conditions: Conditions = Conditions(client_id(client), days=days, daily_records=_budget(budget))
        catalog = await archive.catalog()
        return await issue(archive.ledger, _choice(*asked), conditions, catalog=catalog, now=now())

    issued = with_archive(settings, work)
    from headgate.wiring import mcp_url  # noqa: PLC0415 - needs the extra

    if save:
        typer.echo(f"Saved for 'headgate mcp' in {_save(context, issued, mcp_url(settings))}")
        return
    typer.echo(
        json.dumps(_issued(issued, mcp_url(settings))) if as_json else _told(issued, mcp_url(settings))
    )


def _save(context: typer.Context, issued: Issued, address: str) -> Path:
    from headgate.mcp.serve.credentials import home_credential_path, write_token  # noqa: PLC0415 - needs the extra
    from headgate.wiring import now  # noqa: PLC0415 - needs the extra

    state: State = context.obj
    root = Path(state.environment.get("PDPP_CACHE_ROOT") or default_cache_root())
    path = home_credential_path(root, settings_of(context).settings.home)
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

    async def work(archive: Archive) -> list[dict[str, Any]]:
        from headgate.auth.documents import issued_document  # noqa: PLC0415 - needs the extra
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        return [issued_document(one, now()) for one in archive.ledger.grants()]

    found = with_archive(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
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

    async def work(archive: Archive) -> str:
        from headgate.auth.documents import in_words, issued_document  # noqa: PLC0415 - needs the extra
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        found = archive.ledger.grant(grant_id(grant))
        if found is None:
            raise NotFound("There is no such grant.", hint="See 'headgate grants list'.")
        if as_json:
            return json.dumps(issued_document(found, now()), indent=2)
        labels: dict[str, str] = {
            one.id: one.display_name or one.id for one in await archive.store.connections()
        }
        return in_words(found, labels, now())

    typer.echo(with_archive(settings_of(context).settings, work))


@app.command()
def revoke(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """End a grant; its client is refused from the next request on."""

    async def work(archive: Archive) -> bool:
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        return await archive.ledger.revoke(grant_id(grant), now())

    if not with_archive(settings_of(context).settings, work):
        raise NotFound("There is no such grant.", hint="See 'headgate grants list'.")
    typer.echo(json.dumps({"revoked": True, "grant_id": grant}) if as_json else f"{grant} is revoked.")


def _choice(
    connections: list[str], streams: list[str], fields: list[str], since: str | None, until: str | None
) -> Choice:
    from headgate.auth.grants import Choice  # noqa: PLC0415 - needs the extra

    return Choice(
        connection_ids=tuple(connection_id(one) for one in connections),
        streams=tuple(stream_name(one) for one in streams),
        fields=tuple(_fields(one) for one in fields),
        since=_time("since", since),
        until=_time("until", until),
    )


def _fields(text: str) -> tuple[Any, tuple[Any, ...]]:
    stream, equals, names = text.partition("=")
    if not equals or not names:
        raise InvalidRequest("--fields is written STREAM=A,B.", hint="Correct --fields.")
    return stream_name(stream), tuple(field_name(one) for one in names.split(","))


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    at = instant(text)
    if at is None:
        raise InvalidRequest(f"--{option} must be a time such as 2026-01-01.", hint=f"Correct --{option}.")
    return at


def _budget(text: str | None) -> int | None:
    if text is None:
        return None
    number, _, unit = text.partition("/")
    if unit not in {"", "day"} or not (number.isascii() and number.isdecimal()):
        raise InvalidRequest("--budget is written N/day.", hint="Correct --budget.")
    return int(number)


def _issued(issued: Issued, url: str) -> dict[str, Any]:
    return {
        "access_token": issued.access_token,
        "token_kind": issued.token_kind.value,
        "grant_ids": [grant.id for grant in issued.grants],
        "package_id": issued.package_id,
        "mcp_url": url,
    }


def _told(issued: Issued, url: str) -> str:
    lines = [f"grant  {grant.id}" for grant in issued.grants]
    if issued.package_id is not None:
        lines.append(f"package  {issued.package_id}")
    return "\n".join([*lines, f"connect to  {url}", f"token (shown only now)  {issued.access_token}"])
