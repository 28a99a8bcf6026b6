"""``headgate store``: measure, check, copy, back up and erase the records of a home."""

from __future__ import annotations

import dataclasses
import json
import secrets
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.terminal import (
    AsJson,
    Yes,
    connection_named,
    day_text,
    echo,
    group,
    many,
    needs_extra,
    progress_line,
    put,
    require_home,
    settings_of,
    size_text,
    table,
)
from headgate.errors import ConfigInvalid, IntegrityBroken
from headgate.home import Home, home_in, open_home, read_private, small_files
from headgate.model.ids import ConnectionId, connection_id, record_id, stream_name
from headgate.model.maintenance import (
    LEAST_PASSPHRASE_CHARS,
    ConnectionStats,
    Copied,
    Damage,
    EndedCredentials,
    StoreStats,
)
from headgate.store.engines import commands

app = group()

_SHOWN_MOST = 50
PassphraseFile = Annotated[
    Path | None,
    typer.Option(help="Read the passphrase from the first line of this private file.", metavar="FILE"),
]
_ENDED = (
    "Ended {}, because the backup cannot know which were ended after it. {}, "
    "or restore into a new home with --keep-grants."
)


@app.command()
def stats(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show counts, sizes and dates for each connection and stream."""
    with needs_extra("serve"):
        statistics = commands.commands_of(_home(context)).stats()
    document = {**dataclasses.asdict(statistics), "record_count": statistics.record_count}
    put(document, _stats_lines(statistics), as_json=as_json)


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
    passphrase = _new_passphrase(passphrase_file) if encrypt else ""
    with needs_extra("serve"), progress_line("copying") as progress:
        if encrypt:
            copied = commands.back_up_encrypted(home, target, progress, passphrase=passphrase, names=names)
        else:
            copied = commands.commands_of(home).back_up(target, progress, names=names)
    how = ", encrypted" if encrypt else ""
    text = f"Backed up {_amount(copied)}{_keys(copied)}{how}."
    put(dataclasses.asdict(copied), [text], as_json=as_json)


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
            from headgate.auth.clock import now  # noqa: PLC0415 - needs the extra

            end_at = None if keep_grants else now()
            copied = commands.commands_of(_home(context, is_new=True)).restore(
                source, progress, end_at=end_at
            )
    done = "Backup verified:" if only_verify else "Restored"
    text = f"{done} {_amount(copied)}{_keys(copied)}."
    put(dataclasses.asdict(copied), [text], as_json=as_json)
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
    ended_kinds = [(what, how) for what, count, how in kinds if count]
    how = "; ".join(how for _, how in ended_kinds)
    return _ENDED.format(", ".join(what for what, _ in ended_kinds), how[0].upper() + how[1:])


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
    settings = settings_of(context, store_url=to or source)
    home = open_home(settings.home if source else require_home(settings))
    shared = home_in(home, settings.store_url, settings.store_home)
    ends = (home, shared) if to else (shared, home)
    with needs_extra("postgres"), progress_line("copying") as progress:
        moved = commands.copy_store(*ends, progress)
    text = (
        f"Copied {many(moved.record_count, 'record')}, change {moved.change_number}, and compared every row."
    )
    if moved.missing_count:
        text += f" {many(moved.missing_count, 'file')} that records refer to were missing already."
    put(dataclasses.asdict(moved), [text], as_json=as_json)


@app.command()
def role(context: typer.Context) -> None:
    """Make a role of the database that sees this home alone, and print its password once.

    Give it with the address of a role that owns the tables. Running it again changes the password.
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
    passphrase = _passphrase(passphrase_file, "Passphrase of the backup", confirm=False)
    with commands.decrypted_backup(backup, _home(context, is_new=True), passphrase) as directory:
        yield directory


@app.command()
def fsck(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check every record and everything derived from it.

    It changes nothing, and ends with 1 if it finds damage.
    """
    started = time.monotonic()
    with needs_extra("serve"), progress_line("checking") as progress:
        report = commands.commands_of(_home(context)).check(progress)
    seconds = time.monotonic() - started
    damage = f"damage in {many(len(report.damages), 'place')}" if report.damages else "no damage"
    rate = f"{seconds:.1f} s ({report.record_count / seconds:,.0f} a second)"
    lines = [_damage_line(damaged) for damaged in report.damages[:_SHOWN_MOST]]
    lines.append(f"Checked {many(report.record_count, 'record')} in {rate}; found {damage}.")
    put(dataclasses.asdict(report), lines, as_json=as_json)
    if report.damages:
        raise IntegrityBroken(f"The store has {damage}.", hint="Restore the damaged records from a backup.")


@app.command()
def erase(
    context: typer.Context,
    connection: Annotated[
        str, typer.Argument(help="The connection's name or id; see 'headgate store stats'.")
    ],
    stream: Annotated[str | None, typer.Argument(help="The stream of one record.")] = None,
    record: Annotated[str | None, typer.Argument(help="The id of one record.")] = None,
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase a connection or a record from every file of the home.

    Backups that you made, and copies of the disk, still hold it. In a database the rows are
    deleted and their space is freed; its archived logs and backups keep them until they end.
    """
    if (stream is None) is not (record is None):
        raise typer.BadParameter("give a stream and a record, or neither to erase the whole connection")
    home = _home(context)
    with needs_extra("serve"):
        store = commands.commands_of(home)
        known = {stats.connection_id: stats for stats in store.stats().connections}
        # An erasure that was killed has removed the connection before the last of its files: run again, it ends.
        # Its id is not looked up among the names: a later connection may be called like it.
        is_gone = connection not in known and store.is_gone(ConnectionId(connection))
        chosen = connection_id(
            connection if is_gone else connection_named(_labels(known.values()), connection)
        )
        if not yes:
            stats = known.get(chosen)
            count = 0 if stats is None else sum(stream.record_count for stream in stats.streams)
            what = (
                f"all its {many(count, 'record')}"
                if record is None
                else f"record '{record}' of stream '{stream}'"
            )
            name = chosen if stats is None else stats.display_name or chosen
            typer.confirm(f"Erase connection {name}: {what}?", abort=True, err=True)
        if stream is None or record is None:
            gone = store.erase_connection(chosen)
        else:
            gone = store.erase_record(chosen, stream=stream_name(stream), record_id=record_id(record))
    text = f"Erased {many(gone.record_count, 'record')} and {many(gone.blob_count, 'file')}."
    put(dataclasses.asdict(gone), [text], as_json=as_json)


def _labels(connections: Iterable[ConnectionStats]) -> dict[str, str]:
    return {
        connection.connection_id: connection.display_name or connection.connector_key
        for connection in connections
    }


def _home(context: typer.Context, *, is_new: bool = False) -> Home:
    settings = settings_of(context)
    home = open_home(settings.home if is_new else require_home(settings))
    return home_in(home, settings.store_url, settings.store_home)


def _amount(copied: Copied) -> str:
    # The files are those of the home, of which a home without attached files has some too.
    return f"{many(copied.record_count, 'record')}, {size_text(copied.bytes)} in {many(copied.file_count, 'file')}"


def _keys(copied: Copied) -> str:
    if copied.has_keys:
        return ", with keys"
    return ", without keys: cursors end, and the log of disclosures so far cannot be checked there"


def _damage_line(damage: Damage) -> str:
    place = "/".join(part for part in (damage.connection_id, damage.stream) if part)
    name = f":{json.dumps(damage.record_id, ensure_ascii=False)}" if damage.record_id is not None else ""
    return f"{damage.kind:<10}  {place or '-'}{name}  {damage.detail}"


# The table of stats

_HEADER = ("connection", "stream", "records", "about", "oldest", "newest", "last import")
_AMOUNTS = (2, 3)


def _stats_lines(statistics: StoreStats) -> list[str]:
    rows = [row for connection in statistics.connections for row in _stats_rows(connection)]
    where = "in the database of all homes" if statistics.is_shared else "on disk"
    total = (
        f"{many(statistics.record_count, 'record')} of {many(len(statistics.connections), 'connection')}; "
        f"{size_text(statistics.database_bytes + statistics.log_bytes)} {where}, and "
        f"{many(statistics.blob_count, 'file')} of {size_text(statistics.blob_bytes)}"
    )
    return [*table([_HEADER, *rows], _AMOUNTS), "", total]


def _stats_rows(connection: ConnectionStats) -> Iterator[tuple[str, ...]]:
    """Make a row for each stream; the first one names the connection."""
    name = f"{connection.display_name or connection.connector_key} ({connection.connection_id})"
    for stream in connection.streams:
        yield (
            name,
            stream.stream if stream.is_declared else f"{stream.stream} (no longer declared)",
            f"{stream.record_count:,}",
            size_text(stream.about_bytes),
            day_text(stream.oldest),
            day_text(stream.newest),
            day_text(stream.last_updated),
        )
        name = ""
    if not connection.streams:
        yield (name, "-", "0", "-", "-", "-", "-")


# The passphrase of a backup


def _new_passphrase(file: Path | None) -> str:
    """Read a passphrase that will be needed again, and refuse one that is easy to guess."""
    passphrase = _passphrase(file, "Passphrase", confirm=True)
    if len(passphrase) < LEAST_PASSPHRASE_CHARS:
        raise ConfigInvalid(
            f"A passphrase has at least {LEAST_PASSPHRASE_CHARS} characters.", hint="Choose several words."
        )
    return passphrase


def _passphrase(file: Path | None, question: str, *, confirm: bool) -> str:
    """Read the passphrase from a private file, or ask for it on a terminal."""
    if file is None:
        if not sys.stdin.isatty():
            raise ConfigInvalid(
                "There is no terminal to ask for the passphrase.", hint="Pass --passphrase-file FILE."
            )
        return typer.prompt(question, hide_input=True, confirmation_prompt=confirm, err=True)
    hint = "Name the file that holds the passphrase."
    content = read_private(file.absolute())
    if content is None:
        raise ConfigInvalid(f"{file} does not exist.", hint=hint)
    try:
        return content.decode().partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        raise ConfigInvalid(f"{file} holds no text.", hint=hint) from None
