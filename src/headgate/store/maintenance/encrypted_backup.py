"""Backups as one file that a passphrase opens: the directory of a backup as a tar archive, encrypted.

What is not encrypted is only ever written inside the home, which holds it anyway.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from headgate.errors import Conflict, IntegrityBroken, NotFound
from headgate.home import Home, make_private_directory, sync_directory
from headgate.store.maintenance.encrypted_file import MAGIC, DecryptingReader, EncryptingWriter, is_encrypted
from headgate.system import lock, open_private


@contextmanager
def workplace(home: Home) -> Generator[Path]:
    """Return a directory in the home that does not exist yet; it is gone afterwards."""
    place = home.path / ".backup.unpacked"
    handle = open_private(home.path / "backup.lock", os.O_RDWR | os.O_CREAT)
    try:
        _lock_alone(handle)
        shutil.rmtree(place, ignore_errors=True)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(handle)


def _lock_alone(handle: int) -> None:
    try:
        lock(handle)
    except BlockingIOError:
        hint = "Wait until that one is done."
        raise Conflict("A backup of this home is being made or opened.", hint=hint) from None


def refuse_existing(target: Path) -> None:
    """Refuse to write over something."""
    if target.exists() or target.is_symlink():
        raise Conflict(f"{target} is there already.", hint="Choose a file that does not exist yet.")


def pack(source: Path, target: Path, passphrase: str) -> int:
    """Write the directory of a backup as one encrypted file; returns how large it is."""
    refuse_existing(target)
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    handle = open_private(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(handle, "wb") as file:
            write_packed(source, file, passphrase)
            file.flush()
            os.fsync(file.fileno())
        # A link, unlike a rename, fails if another process has made the file in the meantime.
        target.hardlink_to(partial)
        sync_directory(target.parent)
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


def write_packed(source: Path, file: IO[bytes], passphrase: str) -> None:
    """Write the directory of a backup, encrypted, to an open file."""
    writer = EncryptingWriter(file, passphrase)
    with tarfile.open(fileobj=writer, mode="w|") as archive:
        archive.add(source, arcname=".")
    writer.finish()


def unpack(source: Path, target: Path, passphrase: str) -> None:
    """Decrypt a backup into a new directory; every byte is checked before it is written."""
    with source.open("rb") as file:
        reader = DecryptingReader(file, passphrase)
        make_private_directory(target)
        try:
            with tarfile.open(fileobj=reader, mode="r|") as archive:
                archive.extractall(target, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise IntegrityBroken("The backup cannot be unpacked.", hint="Use another backup.") from error
        # What follows the archive is checked as well.
        while reader.read(1 << 20):
            pass


def is_encrypted_backup(source: Path) -> bool:
    if not source.is_file():
        return False
    with source.open("rb") as file:
        if not is_encrypted(file.read(len(MAGIC))):
            raise NotFound(f"{source} is no backup.", hint="Name the directory or the file of a backup.")
    return True
