"""Entries of a directory that have stopped changing: what is there, and what arrives.

The directory is looked at again and again: no system reports changes on every kind of disk, and a file that is being
written changes many times before it can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from headgate.errors import InvalidRequest
from headgate.sources.inputs.disk import tree_of

#: How programs call what they have not finished writing.
_UNFINISHED = (".part", ".crdownload", ".download", ".tmp")
#: The names, sizes and times of change of all files of an entry.
_Looks = tuple[tuple[str, int, int | None], ...]


def settled_entries(directory: Path, wait: Callable[[], None]) -> Iterator[Path]:
    """Give each file or directory in a directory once it looks as it did before the last wait, and again after a change.

    A directory in it is one entry: an unpacked export, a Maildir. Hidden entries, links and unfinished downloads are
    left out.

    Raises:
        InvalidRequest: the directory cannot be read.
    """
    given: dict[Path, _Looks] = {}
    before: dict[Path, _Looks] = {}
    while True:
        now = _looks_of_all(directory)
        given = {path: looks for path, looks in given.items() if path in now}
        for path, looks in now.items():
            # What was given before this one may have taken hours.
            if before.get(path) == looks != given.get(path) and _looks(path) == looks:
                given[path] = looks
                yield path
        before = now
        wait()


def _looks_of_all(directory: Path) -> dict[Path, _Looks]:
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise InvalidRequest(f"{directory}: {error.strerror}.", hint="Give a directory.") from None
    found = ((path, _looks(path)) for path in entries if _is_watched(path))
    return {path: looks for path, looks in found if looks}


def _is_watched(path: Path) -> bool:
    return not path.name.startswith(".") and path.suffix not in _UNFINISHED and not path.is_symlink()


def _looks(path: Path) -> _Looks:
    """Describe an entry; empty if it has no files, or has gone."""
    try:
        return tuple((file.name, file.size_bytes, file.modified_at) for file in tree_of(path).files)
    except (OSError, InvalidRequest):
        return ()
