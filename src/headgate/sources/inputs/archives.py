"""Zip, tar and gzip archives as trees of files.

Members of a zip are read where they are. A compressed tar has no directory, so it is decompressed once, into a
temporary file without a name. No path is ever made from a member's name; absolute names and ``..`` are refused all the
same. What unpacks to many times its size is refused before it is read, or where reading shows it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from headgate.errors import InvalidRequest, ResourceLimit
from headgate.sources.inputs.disk import opened_file, tree_of
from headgate.sources.inputs.tree import InputFile, InputTree, export_label
from headgate.sources.reading_note import NOTE

#: What may be unpacked: so many times the packed size, and what is small in any case. Deflate's own most is 1032.
MAX_RATIO = 200
FREE_BYTES = 32 * 1024**2
#: What a whole archive may hold unpacked, and how many members.
MAX_TOTAL_BYTES = 500 * 1024**3
MAX_MEMBERS = 2_000_000
#: What is copied to the disk: for a parser that needs a file there, an archive in an archive, a compressed tar.
MAX_COPY_BYTES = 8 * 1024**3
_PIECE = 1024 * 1024
#: What a tar may say about one member: the standard library needs time with the square of it.
_MAX_HEADER_BYTES = 64 * 1024
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_INNER = (".zip", *_TARS)
_ENCRYPTED = 1
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)


def is_archive(name: str) -> bool:
    """Return whether a file is an archive by its ending; office documents are zips as well, and are not meant."""
    return name.lower().endswith((*_INNER, ".gz"))


@contextmanager
def archive_tree(path: Path) -> Generator[InputTree]:
    """Open an archive; its files can be read until it is closed."""
    with ExitStack() as stack, opened_file(path) as content:
        size = path.stat().st_size
        files = list(_members(path.name, content, size, stack, is_inside=False))
        seen = {file.name: file for file in reversed(files)}
        yield InputTree(_label(path.name), sorted(seen.values(), key=lambda file: file.name), size)


def _label(name: str) -> str:
    ending = next((tar for tar in (*_TARS, ".zip") if name.lower().endswith(tar)), "")
    # A compressed file is the file: mail.mbox.gz has the name of mail.mbox.
    bare = name[: len(name) - len(ending)] if ending else PurePosixPath(name[: -len(".gz")]).stem
    return export_label(bare)


def _members(
    name: str, content: IO[bytes], size: int, stack: ExitStack, *, is_inside: bool
) -> Iterator[InputFile]:
    """List the files of an archive, and of archives in it, one level deep."""
    lower = name.lower()
    try:
        NOTE.read_file(name)
        if lower.endswith(".zip"):
            members = _zip_members(content, stack)
        elif lower.endswith(_TARS):
            members = _tar_members(name, content, size, stack)
        else:
            members = iter([_gzip_member(name, lambda: cast("IO[bytes]", _Shared(content)), size)])
        for file in members:
            yield from [file] if is_inside else _inner(file, stack)
    except (*_BROKEN, OSError) as error:
        raise InvalidRequest(
            f"{PurePosixPath(name).name} is an archive that cannot be read: {str(error).rstrip('.')}.",
            hint="Download it again, or unpack it and import the directory.",
        ) from None


def _inner(file: InputFile, stack: ExitStack) -> Iterator[InputFile]:
    if file.name.lower().endswith(_INNER):
        copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        with file.open() as content:
            _copy(content, copy, file.name)
        copy.seek(0)
        for member in _members(file.name, copy, file.size_bytes, stack, is_inside=True):
            yield InputFile(
                f"{file.name}/{member.name}",
                member.size_bytes,
                member.open,
                member.on_disk,
                member.modified_at,
            )
    elif file.suffix == ".gz":
        yield _gzip_member(file.name, file.open, file.size_bytes)
    else:
        yield file


class _Shared(io.RawIOBase):
    """A view of a file that has a place for itself, so that members can be read in turn."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] - any buffer
        self._content.seek(self._at)
        piece = self._content.read(len(buffer))
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


# Zip


def _zip_members(content: IO[bytes], stack: ExitStack) -> Iterator[InputFile]:
    archive = stack.enter_context(zipfile.ZipFile(content))
    members = [entry for entry in archive.infolist() if not entry.is_dir()]
    _refuse_size(len(members), sum(entry.file_size for entry in members))
    for member in members:
        if not _is_wanted(member.filename):
            continue
        if member.file_size > FREE_BYTES + member.compress_size * MAX_RATIO:
            raise ResourceLimit(f"{member.filename[:100]} unpacks to more than {MAX_RATIO} times its size.")
        is_locked = member.flag_bits & _ENCRYPTED
        opened = partial(_locked, member.filename) if is_locked else partial(archive.open, member)
        yield _file(member.filename, member.file_size, opened)


def _locked(name: str) -> IO[bytes]:
    """Refuse a member that needs a password."""
    raise OSError(f"{name} is encrypted: unpack the archive with its password, and import the files")


# Tar


def _tar_members(name: str, content: IO[bytes], size: int, stack: ExitStack) -> Iterator[InputFile]:
    plain = content
    if not name.lower().endswith(".tar"):
        plain = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        _copy(_decompressed(name, content), plain, name, FREE_BYTES + size * MAX_RATIO)
        plain.seek(0)
    headers: Any = _TarHeaders(plain)
    archive = stack.enter_context(tarfile.open(fileobj=headers, mode="r:"))  # noqa: SIM115 - the same
    total = 0
    for count, member in enumerate(headers.listed(archive), 1):
        total += member.size
        _refuse_size(count, total)
        if member.isreg() and not member.issparse() and _is_wanted(member.name):
            opened = partial(archive.extractfile, member)
            yield _file(member.name, member.size, cast("Callable[[], IO[bytes]]", opened))


class _TarHeaders:
    """The content of a tar; while its members are listed, only headers of bounded size are read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self._is_listing = True
        self.seek, self.tell = content.seek, content.tell

    def read(self, size: int = -1) -> bytes:
        if self._is_listing and not 0 <= size <= _MAX_HEADER_BYTES:
            raise OSError(f"a member has a header of more than {_MAX_HEADER_BYTES:,} bytes")
        return self._content.read(size)

    def listed(self, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        """Return the members; others may read what they hold meanwhile."""
        members = iter(archive)
        while True:
            self._is_listing = True
            try:
                member = next(members, None)
            finally:
                self._is_listing = False
            if member is None:
                return
            yield member


def _decompressed(name: str, content: IO[bytes]) -> IO[bytes]:
    lower = name.lower()
    if lower.endswith("gz"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=content))
    if lower.endswith("xz"):
        return cast("IO[bytes]", lzma.LZMAFile(content))
    return cast("IO[bytes]", bz2.BZ2File(content))


# Gzip


def _gzip_member(name: str, opened: Callable[[], IO[bytes]], packed: int) -> InputFile:
    def unpacked() -> IO[bytes]:
        return cast("IO[bytes]", gzip.GzipFile(fileobj=opened()))

    plain = name[: -len(".gz")] if name.lower().endswith(".gz") else name
    return _file(plain, packed, unpacked, limit=FREE_BYTES + packed * MAX_RATIO)


# All of them


def _is_wanted(name: str) -> bool:
    """Return whether a member is read; hidden files are not, as on a disk."""
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "" or ".." in parts or ":" in parts[0]:
        raise InvalidRequest(f"The archive has a name that leads out of it: {name[:100]!r}.")
    return not any(part.startswith(".") or part == "__MACOSX" for part in parts) and bool(parts[-1])


def _refuse_size(members: int, size: int) -> None:
    if members > MAX_MEMBERS or size > MAX_TOTAL_BYTES:
        raise ResourceLimit("The archive holds more than is allowed.")


def _file(name: str, size: int, opened: Callable[[], IO[bytes]], *, limit: int | None = None) -> InputFile:
    def guarded() -> IO[bytes]:
        raw: Any = _Guarded(name, opened, size if limit is None else limit)
        return io.BufferedReader(raw, _PIECE // 4)

    return InputFile(name, size, guarded, partial(_copied, name, guarded))


class _Guarded(io.RawIOBase):
    """The content of a member: damage and growth beyond the limit are errors of reading."""

    def __init__(self, name: str, opened: Callable[[], IO[bytes]], limit: int) -> None:
        self._name = name
        self._left = limit
        try:
            self._content = opened()
        except _BROKEN as error:
            raise OSError(f"{name} is damaged: {error}") from None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] - any buffer
        try:
            piece = self._content.read(len(buffer))
        except _BROKEN as error:
            raise OSError(f"{self._name} is damaged: {error}") from None
        NOTE.step()
        self._left -= len(piece)
        if self._left < 0:
            raise OSError(f"{self._name} unpacks to more than is allowed")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._content.close()
        super().close()


@contextmanager
def _copied(name: str, opened: Callable[[], IO[bytes]]) -> Generator[Path]:
    """Copy a member to a private directory, for parsers that need a file on the disk."""
    with tempfile.TemporaryDirectory(prefix="headgate-") as directory:
        path = Path(directory) / f"member{PurePosixPath(name).suffix[:10]}"
        with opened() as content, path.open("wb") as copy:
            _copy(content, copy, name)
        yield path


def _copy(content: IO[bytes], copy: IO[bytes], name: str, limit: int = MAX_COPY_BYTES) -> None:
    left = min(limit, MAX_COPY_BYTES)
    while piece := content.read(_PIECE):
        NOTE.step()
        left -= len(piece)
        if left < 0:
            raise ResourceLimit(f"{name[:100]} unpacks to more than is allowed.")
        copy.write(piece)


@contextmanager
def opened_tree(path: Path) -> Generator[InputTree]:
    """Yield the files of a path; those of an archive can be read until it is closed here."""
    if path.is_file() and is_archive(path.name):
        with archive_tree(path) as tree:
            yield tree
    else:
        yield tree_of(path)
