"""Files and directories of a disk as a tree."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import InvalidRequest
from headgate.sources.inputs.tree import InputFile, InputTree, export_label
from headgate.sources.reading_note import NOTE

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: The directory of a git repository inside the files that it is about.
_REPOSITORY = ".git"
_BUFFER_BYTES = 128 * 1024


def tree_of(path: Path) -> InputTree:
    """Read the names of a file or directory; hidden files and links are left out, but for the HEAD of a repository.

    Raises:
        InvalidRequest: there is nothing at the path.
    """
    if path.is_dir():
        files = (_file(entry, entry.relative_to(path).as_posix()) for entry in _walk(path))
        return InputTree(export_label(path.resolve().name), sorted(files, key=lambda file: file.name))
    if path.is_file():
        return InputTree(path.stem, (_file(path, path.name),))
    raise InvalidRequest(f"There is no file or directory {path}.", hint="Give the path of an export.")


def _walk(directory: Path) -> Iterator[Path]:
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        # It stands for what is in it, and cannot be read either: the import names it.
        yield directory
        return
    for entry in entries:
        if entry.name == _REPOSITORY:
            yield from _repository_head(entry)
        if _is_hidden(entry) or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _walk(entry)
        elif entry.is_file():
            yield entry


def _repository_head(directory: Path) -> list[Path]:
    """Return the one file by which a repository is recognised; its source finds the others."""
    head = directory / "HEAD"
    is_there = not directory.is_symlink() and not head.is_symlink() and head.is_file()
    return [head] if is_there else []


def _is_hidden(entry: Path) -> bool:
    # The folders of a Maildir have names that begin with a point, and are not meant to be hidden.
    return entry.name.startswith(".") and not (entry / "cur").is_dir()


def _file(path: Path, name: str) -> InputFile:
    status = path.stat()
    return InputFile(
        name=name,
        size_bytes=status.st_size,
        open=partial(opened_file, path),
        on_disk=partial(_itself, path),
        modified_at=status.st_mtime_ns // 1000,
    )


class _SteppingFile(io.FileIO):
    """A file of which every reading is a step of the import."""

    def readinto(self, buffer: Buffer) -> int | None:
        NOTE.step()
        return super().readinto(buffer)


def opened_file(path: Path) -> io.BufferedReader:
    return io.BufferedReader(_SteppingFile(path), _BUFFER_BYTES)


@contextmanager
def _itself(path: Path) -> Generator[Path]:
    yield path


#: How programs call what they have not finished writing.
_UNFINISHED = (".part", ".crdownload", ".download", ".tmp")
#: The names, sizes and times of change of all files of an entry.
_Description = tuple[tuple[str, int, int | None], ...]


def settled_entries(directory: Path, wait: Callable[[], None]) -> Iterator[Path]:
    """Yield each file or directory in a directory once it has not changed since the last wait, and again after a change.

    A directory in it is one entry: an unpacked export, a Maildir. Hidden entries, links and unfinished downloads are
    left out.
    """
    settled: dict[Path, _Description] = {}
    before: dict[Path, _Description] = {}
    while True:
        now = _describe_all(directory)
        settled = {path: description for path, description in settled.items() if path in now}
        for path, description in now.items():
            # What was given before this one may have taken hours.
            if before.get(path) == description != settled.get(path) and _describe(path) == description:
                settled[path] = description
                yield path
        before = now
        wait()


def _describe_all(directory: Path) -> dict[Path, _Description]:
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise InvalidRequest(f"{directory}: {error.strerror}.", hint="Give a directory.") from None
    described = ((path, _describe(path)) for path in entries if _is_watched(path))
    return {path: description for path, description in described if description}


def _is_watched(path: Path) -> bool:
    return not path.name.startswith(".") and path.suffix not in _UNFINISHED and not path.is_symlink()


def _describe(path: Path) -> _Description:
    """Describe an entry; empty if it has no files, or has gone."""
    try:
        return tuple((file.name, file.size_bytes, file.modified_at) for file in tree_of(path).files)
    except (OSError, InvalidRequest):
        return ()
