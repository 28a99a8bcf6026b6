"""Backups: a directory with the store at one commit, its files, and a manifest of digests.

A backup is renamed into place when it is complete. Restoring checks it first, and never changes an existing store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import apsw
import msgspec

from headgate.errors import Conflict, IntegrityBroken, NotFound
from headgate.home import Home, make_private_directory, write_private
from headgate.model.ids import BlobId
from headgate.model.maintenance import Copied, EndedCredentials, Progress
from headgate.store.format.records import shelf_rows
from headgate.store.maintenance.copying import StoreSide
from headgate.store.maintenance.fsck import check_store
from headgate.store.maintenance.sqlite_side import SqliteSide
from headgate.store.sqlite import BLOBS, FILE
from headgate.store.sqlite.blobs import BlobFiles
from headgate.store.sqlite.database import SQL, SqliteDatabase, connect, open_reader, translate_errors
from headgate.store.sqlite.migrate import all_migrations, backup, version_of
from headgate.system import open_private, sync_directory

MANIFEST = "manifest.json"
FORMAT = 1
_PIECE_BYTES = 1024 * 1024


class _FileSum(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """The document beside a backup: what the backup must hold."""

    format: int
    store_schema: int
    change_number: int
    record_count: int
    #: One digest for each stream of each connection, over its records in the order of arrival.
    shelves: dict[str, str]
    files: dict[str, _FileSum]


class StoreCopy(Protocol):
    """What makes a copy of a store of any engine."""

    def write(self, directory: Path) -> None:
        """Write the records as a SQLite file into a directory, as of one commit, and the files they refer to."""


class FileCopy:
    """Copies a SQLite store, page by page."""

    def __init__(self, database: SqliteDatabase, files: BlobFiles, progress: Progress) -> None:
        self._database = database
        self._files = files
        self._progress = progress

    def write(self, directory: Path) -> None:
        """Write the file, then the files that its records refer to."""
        backup(self._database, directory / FILE, self._progress)
        copy = open_reader(directory / FILE)
        try:
            with translate_errors(), copy.reading(float("inf")):
                _copy_blobs(copy, self._files, BlobFiles(directory / BLOBS))
        finally:
            copy.db.close()


def back_up(store: StoreCopy, home: Home, target: Path, *, names: Sequence[str]) -> Copied:
    """Copy the store as of one commit, its files, and the named files beside it into a new directory."""
    if target.exists():
        raise Conflict(f"{target} is there already.", hint="Choose a directory that does not exist yet.")
    partial = target.with_name(f".{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    make_private_directory(partial / BLOBS)
    try:
        # Before the store: the noted end of the log must not be later than the log that is copied.
        for name in names:
            make_private_directory((partial / name).parent)
            _copy_file(home.path / name, partial / name)
        store.write(partial)
        manifest = _manifest(partial, names)
        write_private(partial / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        for directory in (partial, *(path for path in partial.rglob("*") if path.is_dir())):
            sync_directory(directory)
        partial.rename(target)
        sync_directory(target.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _copied(manifest)


def verify(source: Path, progress: Progress) -> Copied:
    """Check a backup: every digest of its manifest, and every record as fsck does."""
    manifest = _read_manifest(source)
    files = {str(path.relative_to(source)): path for path in source.rglob("*") if path.is_file()}
    del files[MANIFEST]
    _refuse_unless(files.keys() == manifest.files.keys(), "Files are missing, or there are too many.")
    for name, path in files.items():
        _refuse_unless(_sum(path) == manifest.files[name], f"{name} is not what was backed up.")
    copy = open_reader(source / FILE)
    try:
        with translate_errors():
            _check_copy(copy, manifest, BlobFiles(source / BLOBS), progress)
    finally:
        copy.db.close()
    return _copied(manifest)


def restore(source: Path, home: Home, progress: Progress, *, end_at: int | None) -> Copied:
    """Check a backup, then put it into a home that has no store.

    The copy's grants and other credentials are ended before it is put in place: the backup does not know which
    were ended after it. With None for the time they stay as they were.

    A home that holds exactly this backup is left as it is: a command that was stopped can be given again.
    """
    manifest = _read_manifest(source)
    partial = _partial(home)
    if _is_done(source, manifest, home, ended=end_at is not None):
        shutil.rmtree(partial, ignore_errors=True)
        return verify(source, progress)
    _refuse_live(home)
    _refuse_other_files(manifest, home)
    copied = verify(source, progress)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        for name in manifest.files:
            copy = partial / name
            make_private_directory(copy.parent)
            _refuse_unless(_copy_file(source / name, copy) == manifest.files[name], f"{name} has changed.")
        ended = EndedCredentials() if end_at is None else _end_credentials(partial / FILE, end_at)
        _put_in_place(partial, home)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return replace(copied, ended=ended)


@contextmanager
def restoring(source: Path, home: Home, progress: Progress) -> Generator[tuple[SqliteSide, Copied]]:
    """Check a backup, put the files beside the store into a home, and give the store for a copy of its rows."""
    manifest = _read_manifest(source)
    _refuse_other_files(manifest, home)
    copied = verify(source, progress)
    copy = open_reader(source / FILE)
    try:
        _refuse_unless(
            version_of(copy) == all_migrations()[-1].number,
            "It is of an older version: restore it into a file first, then copy that.",
        )
        for name in manifest.files:
            if name != FILE and not name.startswith(f"{BLOBS}/") and not (home.path / name).exists():
                make_private_directory((home.path / name).parent)
                write_private(home.path / name, (source / name).read_bytes())
        with translate_errors():
            yield SqliteSide(copy, BlobFiles(source / BLOBS)), copied
    finally:
        copy.db.close()


def shelf_digests(database: SqliteDatabase) -> dict[str, str]:
    """Compute a digest of each shelf's records, tombstones included; inside a read transaction."""
    digests: dict[str, str] = {}
    for sid, connection_id, name in database.all(database.sql["shelf_names"]):
        key = f"{connection_id}/{name}"
        # The second of two holds what rules hide. The column that says so is not in files of older versions.
        digests[f"{key}/hidden" if key in digests else key] = _shelf_digest(database, sid)
    return digests


def _shelf_digest(database: SqliteDatabase, sid: int) -> str:
    hashed = hashlib.sha256()
    rows = database.each(SQL["shelf_records"], shelf_rows(sid))
    for record_id, seq, deleted, digest in rows:
        hashed.update(b"%b\0%d\0%d\0%b" % (record_id.encode(), seq, deleted, digest))
    return hashed.hexdigest()


def _manifest(partial: Path, names: Sequence[str]) -> Manifest:
    copy = open_reader(partial / FILE)
    try:
        with translate_errors(), copy.reading(float("inf")):
            if copy.all("PRAGMA integrity_check") != [("ok",)]:
                raise IntegrityBroken("The store is damaged; no backup was made.")
            files = {name: partial / name for name in (FILE, *names)}
            files |= dict(_held_blobs(copy, BlobFiles(partial / BLOBS)))
            return Manifest(
                FORMAT,
                version_of(copy),
                copy.value(copy.sql["change_number"]),
                copy.value(copy.sql["live_total"]),
                shelf_digests(copy),
                {name: _sum(path) for name, path in files.items()},
            )
    finally:
        copy.db.close()


def _copy_blobs(copy: SqliteDatabase, files: BlobFiles, target: BlobFiles) -> None:
    for (blob_id,) in copy.all(copy.sql["blob_ids"]):
        copied = target.path(BlobId(blob_id))
        make_private_directory(copied.parent)
        # A missing file is damage that fsck reports; the rest is backed up all the same.
        if files.path(BlobId(blob_id)).exists():
            _copy_file(files.path(BlobId(blob_id)), copied)


def _held_blobs(copy: SqliteDatabase, files: BlobFiles) -> Iterator[tuple[str, Path]]:
    for (blob_id,) in copy.all(copy.sql["blob_ids"]):
        path = files.path(BlobId(blob_id))
        if path.exists():
            yield f"{BLOBS}/{path.parent.name}/{path.name}", path


def _check_copy(copy: SqliteDatabase, manifest: Manifest, files: BlobFiles, progress: Progress) -> None:
    newest = all_migrations()[-1].number
    _refuse_unless(version_of(copy) <= newest, "The backup was made by a newer version.")
    with copy.reading(float("inf")):
        _refuse_unless(shelf_digests(copy) == manifest.shelves, "The records are not those backed up.")
    damages = check_store(copy, files, progress).damages if version_of(copy) == newest else ()
    _refuse_unless(not damages, damages[0].detail if damages else "")


def _put_in_place(partial: Path, home: Home) -> None:
    """Move the files, then the store: they do no harm without the store."""
    for path in sorted(partial.rglob("*")):
        if path.is_file() and path != partial / FILE:
            target = home.path / path.relative_to(partial)
            make_private_directory(target.parent)
            path.replace(target)
            sync_directory(target.parent)
    _refuse_live(home)
    # A link, unlike a rename, fails if another process has made a store in the meantime.
    (home.path / FILE).hardlink_to(partial / FILE)
    sync_directory(home.path)


def _end_credentials(path: Path, at: int) -> EndedCredentials:
    """End the credentials of a copy that is not in use yet."""
    with closing(connect(str(path))) as copy, copy:
        return end_credentials(SqliteSide(SqliteDatabase(path, copy), BlobFiles(path.parent / BLOBS)), at)


def _is_done(source: Path, manifest: Manifest, home: Home, *, ended: bool) -> bool:
    """Return whether a home holds exactly this backup, unused since it was restored."""
    store = home.path / FILE
    if list(home.path.glob(f"{FILE}*")) != [store]:
        return False
    others = (name for name in manifest.files if name != FILE)
    if not all(_holds(home.path / name, manifest.files[name]) for name in others):
        return False
    expected = _ended_sum(source / FILE, home) if ended else manifest.files[FILE]
    return expected is not None and _holds(store, expected)


def _holds(path: Path, content: _FileSum) -> bool:
    return path.is_file() and path.stat().st_size == content.bytes and _sum(path) == content


def _ended_sum(backed_up: Path, home: Home) -> _FileSum | None:
    """End the credentials of a copy as of the time at which they were ended in a home: the same bytes come out."""
    copy = _partial(home) / FILE
    try:
        with closing(connect(str(home.path / FILE), flags=apsw.SQLITE_OPEN_READONLY)) as store:
            ((at,),) = store.execute(SQL["last_revocation"]).fetchall()
        shutil.rmtree(copy.parent, ignore_errors=True)
        make_private_directory(copy.parent)
        _copy_file(backed_up, copy)
        _end_credentials(copy, at or 0)
        return _sum(copy)
    except apsw.Error:
        return None
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)


def _partial(home: Home) -> Path:
    return home.path / f".{FILE}.restored"


def _refuse_live(home: Home) -> None:
    if any(home.path.glob(f"{FILE}*")):
        raise Conflict(
            f"{home.path} has a store.", hint="Restore into another home (--home DIR), then swap the two."
        )


def _refuse_other_files(manifest: Manifest, home: Home) -> None:
    for name, content in manifest.files.items():
        path = home.path / name
        if not name.startswith(f"{BLOBS}/") and path.exists() and not _holds(path, content):
            raise Conflict(
                f"{path} is not the one of the backup.",
                hint="Restore into another home (--home DIR), then swap the two.",
            )


def _read_manifest(source: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except OSError:
        raise NotFound(f"There is no backup in {source}.", hint="Name the directory of a backup.") from None
    except msgspec.MsgspecError as error:
        raise IntegrityBroken("The backup's manifest is damaged.", hint="Use another backup.") from error
    _refuse_unless(manifest.format == FORMAT, "The backup has a format that this version does not know.")
    return manifest


def _refuse_unless(condition: bool, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not condition:
        raise IntegrityBroken(f"The backup cannot be used. {what}", hint="Use another backup.")


def _sum(path: Path) -> _FileSum:
    hashed, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            hashed.update(piece)
            size += len(piece)
    return _FileSum(size, hashed.hexdigest())


def _copy_file(source: Path, target: Path) -> _FileSum:
    hashed, size = hashlib.sha256(), 0
    handle = open_private(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    target.chmod(0o600)
    with source.open("rb") as read, os.fdopen(handle, "wb") as written:
        while piece := read.read(_PIECE_BYTES):
            hashed.update(piece)
            size += len(piece)
            written.write(piece)
        written.flush()
        os.fsync(written.fileno())
    return _FileSum(size, hashed.hexdigest())


def _copied(manifest: Manifest) -> Copied:
    total = sum(file.bytes for file in manifest.files.values())
    has_keys = any(name.startswith("keys/") for name in manifest.files)
    return Copied(
        manifest.record_count, manifest.change_number, len(manifest.files), total, has_keys=has_keys
    )


_CALLER = "gateway_caller"


def end_credentials(side: StoreSide, at: int) -> EndedCredentials:
    """End grants, owner tokens, everything that the owner signs in with, and the callers of the gateway.

    A store of an older version has no tables for some of them.
    """

    def ended(table: str, statement: str, *values: object) -> list[str]:
        if not side.columns(table):
            return []
        return [row[0] for row in side.database.all(side.database.sql[statement], values)]

    return EndedCredentials(
        grants=len(ended("grant_issued", "revoke_all_grants", at)),
        owner_tokens=len(ended("token", "revoke_owner_tokens", at)),
        sign_ins=sum(
            len(ended(table, statement))
            for table, statement in (
                ("owner", "end_password"),
                ("owner_passkey", "end_passkeys"),
                ("owner_browser", "end_browser_secrets"),
            )
        ),
        gateway_callers=ended("oauth_entry", "end_gateway_callers").count(_CALLER),
    )
