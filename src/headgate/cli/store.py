"""``headgate store``: measure, check, copy, back up and erase the records of a home."""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from headgate.cli import passphrases
from headgate.cli.passphrases import PassphraseFile
from headgate.cli.terminal import AsJson, echo, many, needs_extra, progress_line, require_home, settings_of
from headgate.errors import IntegrityBroken, NotFound
from headgate.home import Home, home_in, open_home, small_files
from headgate.model.ids import connection_id, record_id, stream_name
from headgate.model.instants import iso
from headgate.model.maintenance import ConnectionStats, Copied, Damage, EndedCredentials, Moved, StoreStats
from headgate.store.engines import commands

app = typer.Typer(help="Show, back up, check and erase the store.", rich_markup_mode=None)

_SHOWN_MOST = 50
_KIB = 1024
#: How the ids of connections begin.
_CONNECTION_ID = "cin_"
_ENDED = (
    "Ended {}, because the backup cannot know which were ended after it. {}, "
    "or restore into a new home with --keep-grants."
)


@app.callback()
def _noun() -> None:
    """Show, back up, check and erase the store."""


@app.command()
def stats(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show counts, sizes and dates for each connection and stream."""
    with needs_extra("serve"):
        found = commands.commands_of(_home(context)).stats()
    typer.echo(_json(found) if as_json else _table(found))


@app.command()
def backup(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="The directory to create.")],
    *,
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Write one encrypted file; asks for a passphrase.")
    ] = False,
    passphrase_file: PassphraseFile = None,
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="Leave out the keys and the data needed to verify the log.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Back up the store, its files and its keys; it stays usable."""
    home = _home(context)
    names, target = () if without_keys else small_files(home), directory.absolute()
    if passphrase_file and not encrypt:
        raise typer.BadParameter("--passphrase-file needs --encrypt")
    # Asked for before anything is copied.
    passphrase = passphrases.new_passphrase(passphrase_file) if encrypt else ""
    with needs_extra("serve"), progress_line("copying") as progress:
        if encrypt:
            copied = commands.back_up_encrypted(home, target, progress, passphrase=passphrase, names=names)
        else:
            copied = commands.commands_of(home).back_up(target, progress, names=names)
    how = ", encrypted" if encrypt else ""
    typer.echo(_json(copied) if as_json else f"Backed up {_amount(copied)}{_keys(copied)}{how}.")


@app.command()
def restore(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="The backup directory, or the encrypted file.")],
    *,
    passphrase_file: PassphraseFile = None,
    only_verify: Annotated[
        bool, typer.Option("--verify", help="Check every record of the backup; change nothing.")
    ] = False,
    keep_grants: Annotated[
        bool,
        typer.Option(
            "--keep-grants",
            help="Keep grants, owner tokens, the password, sessions and gateway callers as they were.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a backup and restore it into a home without a store.

    It never touches an existing store.

    It ends the grants, the owner tokens, the password with its passkeys and sessions, and the gateway's callers of the
    restored home, because the backup cannot know which were ended later. 'headgate serve' prints a link to set a new password.
    """
    with (
        needs_extra("serve"),
        _opened(context, directory, passphrase_file) as source,
        progress_line("checking") as progress,
    ):
        if only_verify:
            copied = commands.verify_backup(source, progress)
        else:
            from headgate.wiring import now  # noqa: PLC0415 - needs the extra

            end_at = None if keep_grants else now()
            copied = commands.commands_of(_home(context, is_new=True)).restore(
                source, progress, end_at=end_at
            )
    done = "The backup is good:" if only_verify else "Restored"
    typer.echo(_json(copied) if as_json else f"{done} {_amount(copied)}{_keys(copied)}.")
    if copied.ended != EndedCredentials():
        echo(context, _ended(copied.ended), err=True)


def _ended(ended: EndedCredentials) -> str:
    """Return what a restore ended, and how to get each kind again."""
    kinds = [
        (many(ended.grants, "grant"), ended.grants, "Grant again with 'headgate grants create'"),
        (
            many(ended.owner_tokens, "owner token"),
            ended.owner_tokens,
            "make tokens with 'headgate owner token'",
        ),
        (
            "the password, passkeys and sessions",
            ended.sign_ins,
            "set a password by the link that 'headgate serve' prints",
        ),
        (
            many(ended.gateway_callers, "caller") + " of the gateway",
            ended.gateway_callers,
            "add callers on the console's page of remote servers",
        ),
    ]
    shown = [(what, how) for what, count, how in kinds if count]
    how = "; ".join(how for _, how in shown)
    return _ENDED.format(", ".join(what for what, _ in shown), how[0].upper() + how[1:])


@app.command()
def copy(
    context: typer.Context,
    *,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="The database to copy the records into.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="The database to copy the records from, into a file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy the records of the home into a PostgreSQL database, or from one into a file of the home.

    Nothing is taken from where they are. A copy that was stopped goes on when the command is given again; until it is
    complete it cannot be opened. Keys and journals stay in the home's directory.
    """
    if (to is None) is (source is None):
        raise typer.BadParameter("give --to URL or --from URL")
    settings = settings_of(context, store_url=to or source).settings
    home = open_home(settings.home if source else require_home(settings))
    shared = home_in(home, settings.store_url, settings.store_home)
    ends = (home, shared) if to else (shared, home)
    with needs_extra("postgres"), progress_line("copying") as progress:
        moved = commands.copy_store(*ends, progress)
    typer.echo(_json(moved) if as_json else _moved(moved))


def _moved(moved: Moved) -> str:
    text = (
        f"Copied {many(moved.record_count, 'record')}, change {moved.change_number}, and compared every row."
    )
    missing = f" {many(moved.missing_count, 'file')} that records refer to were missing already."
    return text + missing if moved.missing_count else text


@app.command()
def role(context: typer.Context) -> None:
    """Make a role of the database that sees this home alone, and print its password once.

    Give it with the address of a role that owns the tables. Given again, the role gets another password.
    """
    home = _home(context)
    password = secrets.token_urlsafe(24)
    with needs_extra("postgres"):
        name = commands.make_role(home, password)
    typer.echo(
        f"The role {name} sees this home alone. Put this line into ~/.pgpass, and the role into store_url:"
    )
    typer.echo(f"*:*:*:{name}:{password}")


@contextmanager
def _opened(context: typer.Context, backup: Path, passphrase_file: Path | None) -> Generator[Path]:
    """Return the directory of a backup; one that is encrypted is decrypted for the length of the block."""
    if not commands.is_encrypted_backup(backup):
        yield backup
        return
    passphrase = passphrases.known_passphrase(passphrase_file)
    with commands.decrypted_backup(backup, _home(context, is_new=True), passphrase) as directory:
        yield directory


@app.command()
def fsck(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check every record and everything derived from it.

    It changes nothing, and ends with 1 if it finds damage.
    """
    started = time.monotonic()
    with needs_extra("serve"), progress_line("checking") as progress:
        found = commands.commands_of(_home(context)).check(progress)
    seconds = time.monotonic() - started
    if as_json:
        typer.echo(_json(found))
    else:
        for damage in found.damages[:_SHOWN_MOST]:
            typer.echo(_damage_line(damage))
        rate = f"{seconds:.1f} s ({found.record_count / seconds:,.0f} a second)"
        typer.echo(
            f"Checked {many(found.record_count, 'record')} in {rate}; found {_damage(len(found.damages))}."
        )
    if found.damages:
        raise IntegrityBroken(
            f"The store has {_damage(len(found.damages))}.",
            hint="Restore the damaged records from a backup.",
        )


@app.command()
def erase(
    context: typer.Context,
    connection: Annotated[
        str, typer.Argument(help="The connection's name or id; see 'headgate store stats'.")
    ],
    stream: Annotated[str | None, typer.Argument(help="The stream of one record.")] = None,
    record: Annotated[str | None, typer.Argument(help="The id of one record.")] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase a connection or a record from every file of the home.

    Backups that you made, and copies of the disk, still hold it. In a database the rows are
    deleted and their space is freed; its archived logs and backups keep them until they end.
    """
    if (stream is None) is not (record is None):
        raise typer.BadParameter("give a stream and a record, or neither to erase the whole connection")
    home = _home(context)
    found = _connection(home, connection)
    chosen = connection_id(connection if found is None else found.connection_id)
    if not yes:
        count = many(0 if found is None else sum(one.record_count for one in found.streams), "record")
        what = f"all its {count}" if record is None else f"record '{record}' of stream '{stream}'"
        shown = connection if found is None else found.display_name or chosen
        typer.confirm(f"Erase connection {shown}: {what}?", abort=True, err=True)
    with needs_extra("serve"):
        if stream is None or record is None:
            gone = commands.commands_of(home).erase_connection(chosen)
        else:
            name, key = stream_name(stream), record_id(record)
            gone = commands.commands_of(home).erase_record(chosen, stream=name, record_id=key)
    text = f"Erased {many(gone.record_count, 'record')} and {many(gone.blob_count, 'file')}."
    typer.echo(_json(gone) if as_json else text)


def _connection(home: Home, name: str) -> ConnectionStats | None:
    """Find a connection by its id or name; None for an id that is gone.

    An erasure that was killed has removed the connection before the last of its files: run again, it ends.
    """
    with needs_extra("serve"):
        connections = commands.commands_of(home).stats().connections
    found = [connection for connection in connections if connection.connection_id == name] or [
        connection
        for connection in connections
        if (connection.display_name or "").casefold() == name.casefold()
    ]
    if not found and name.startswith(_CONNECTION_ID):
        return None
    if len(found) != 1:
        names = ", ".join(
            f"{connection.display_name or connection.connector_key} ({connection.connection_id})"
            for connection in connections
        )
        problem = "There is no connection" if not found else f"{len(found)} connections are called"
        raise NotFound(
            f"{problem} '{name}'.", hint=f"Connections are {names}." if names else "There are none yet."
        )
    return found[0]


def _home(context: typer.Context, *, is_new: bool = False) -> Home:
    settings = settings_of(context).settings
    home = open_home(settings.home if is_new else require_home(settings))
    return home_in(home, settings.store_url, settings.store_home)


def _json(value: Any) -> str:
    document = dataclasses.asdict(value)
    if isinstance(value, StoreStats):
        document["record_count"] = value.record_count
    return json.dumps(document, indent=2)


def _amount(copied: Copied) -> str:
    # The files are those of the home, of which a home without attached files has some too.
    return (
        f"{many(copied.record_count, 'record')}, {_size(copied.bytes)} in {many(copied.file_count, 'file')}"
    )


def _keys(copied: Copied) -> str:
    if copied.has_keys:
        return ", with keys"
    return ", without keys: cursors end, and the log of disclosures so far cannot be checked there"


def _damage(count: int) -> str:
    return f"damage in {many(count, 'place')}" if count else "no damage"


def _damage_line(damage: Damage) -> str:
    place = "/".join(part for part in (damage.connection_id, damage.stream) if part)
    name = f":{json.dumps(damage.record_id, ensure_ascii=False)}" if damage.record_id is not None else ""
    return f"{damage.kind:<10}  {place or '-'}{name}  {damage.detail}"


# The table of stats


class _StatsRow(NamedTuple):
    connection: str = ""
    stream: str = "-"
    records: str = "0"
    about: str = "-"
    oldest: str = "-"
    newest: str = "-"
    last_stored: str = "-"

    def line(self, widths: list[int]) -> str:
        """Align texts to the left, and amounts to the right."""
        amounts = {"records", "about"}
        cells = [
            text.rjust(width) if name in amounts else text.ljust(width)
            for name, text, width in zip(self._fields, self, widths, strict=True)
        ]
        return "  ".join(cells).rstrip()


_HEADER = _StatsRow("connection", "stream", "records", "about", "oldest", "newest", "last import")


def _table(found: StoreStats) -> str:
    rows = [_HEADER, *(row for connection in found.connections for row in _rows(connection))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    total = (
        f"{many(found.record_count, 'record')} of {many(len(found.connections), 'connection')}; "
        f"{_size(found.database_bytes + found.log_bytes)} {'in the database of all homes' if found.is_shared else 'on disk'}, and "
        f"{many(found.blob_count, 'file')} of {_size(found.blob_bytes)}"
    )
    return "\n".join([*(row.line(widths) for row in rows), "", total])


def _rows(connection: ConnectionStats) -> Iterator[_StatsRow]:
    """Make a row for each stream; the first one names the connection."""
    name = f"{connection.display_name or connection.connector_key} ({connection.connection_id})"
    for stream in connection.streams:
        yield _StatsRow(
            name,
            stream.stream if stream.is_declared else f"{stream.stream} (no longer declared)",
            f"{stream.record_count:,}",
            _size(stream.about_bytes),
            _day(stream.oldest),
            _day(stream.newest),
            _day(stream.last_updated),
        )
        name = ""
    if not connection.streams:
        yield _StatsRow(name)


def _day(moment: int | None) -> str:
    return "-" if moment is None else iso(moment)[:10]


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < _KIB:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KIB
    return f"{count:.1f} GiB"
