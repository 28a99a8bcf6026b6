"""The objects of a repository that may be hostile: bounded in size and number, and from its directory only.

Neither its configuration nor its list of other repositories to borrow from is read, so nothing that it names is
started, fetched or opened.
"""

from __future__ import annotations

import heapq
import re
import struct
import zlib
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any, cast

from dulwich.diff_tree import tree_changes
from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException, RefFormatError
from dulwich.object_format import SHA1, SHA256, ObjectFormat
from dulwich.objects import Commit, ObjectID, ShaFile
from dulwich.pack import Pack, PackData, UnresolvedDeltas, load_pack_index
from dulwich.refs import DiskRefsContainer, Ref, SymrefLoop

from headgate.system import read_at

#: A commit or directory that is larger is none that a person made.
MAX_OBJECT_BYTES = 32 * 1024 * 1024
#: Objects that are read for one commit: directories of its tree and of its parent's.
MAX_READS = 50_000
_HEADER_BYTES = 32
_DELTAS = (6, 7)
_SIZE_BITS = 7
_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
#: What reading damaged objects raises.
DAMAGED = (
    ApplyDeltaError,
    ArithmeticError,
    AssertionError,
    ChecksumMismatch,
    FileFormatException,
    OSError,
    RefFormatError,
    StopIteration,
    SymrefLoop,
    UnresolvedDeltas,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


class GitObjects:
    """The commits and directories of a repository, by their hashes."""

    def __init__(self, directory: Path, packs: list[Pack], form: ObjectFormat) -> None:
        self._directory = directory
        self._packs = packs
        self._form = form
        self._left = MAX_READS

    def commit(self, name: ObjectID) -> Commit:
        """Read a commit, and allow the objects of one commit to be read from here on."""
        self._left = MAX_READS
        found = self[name]
        if isinstance(found, Commit):
            return found
        raise LookupError(name)

    def __getitem__(self, name: ObjectID) -> ShaFile:
        self._left -= 1
        if self._left < 0 or not _NAME.fullmatch(name):
            raise ValueError("too many objects, or a name that is none")
        for pack in self._packs:
            if name in pack:
                kind, content = pack.get_raw(name)
                return ShaFile.from_raw_string(kind, content, object_format=self._form, verify_sha=name)
        return self._loose(name)

    def _loose(self, name: ObjectID) -> ShaFile:
        text = name.decode("ascii")
        path = self._directory / text[:2] / text[2:]
        if path.is_symlink() or not path.is_file():
            raise LookupError(name)
        found = ShaFile.from_path(str(path), object_format=self._form, max_size=MAX_OBJECT_BYTES)
        if found.get_id(self._form) != name:
            raise ValueError("an object has another content than its name says")
        return found


@contextmanager
def git_objects(repository: Path, head: ObjectID) -> Generator[GitObjects]:
    """Open the objects of a repository: `objects` in its directory, packed and single. A damaged pack is left out."""
    form = SHA256 if len(head) == SHA256.hex_length else SHA1
    objects = repository / "objects"
    with ExitStack() as stack:
        packs: list[Pack] = []
        for path in sorted(objects.glob("pack/*.pack")):
            with suppress(*DAMAGED):
                packs.append(_opened_pack(path, form, stack))
        yield GitObjects(objects, packs, form)


def _opened_pack(path: Path, form: ObjectFormat, stack: ExitStack) -> Pack:
    if path.is_symlink() or path.with_suffix(".idx").is_symlink():
        raise LookupError(path.name)
    with ExitStack() as opened:
        content = opened.enter_context(path.open("rb"))
        index = partial(load_pack_index, str(path.with_suffix(".idx")), form)
        pack = Pack.from_lazy_objects(lambda: BoundedPack(str(path), form, content), index)
        opened.callback(pack.close)
        # Opens both, and compares their lengths and checksums.
        _ = pack.data
        stack.push(opened.pop_all())
    return pack


class BoundedPack(PackData):
    """A pack whose objects are refused before they take more memory than a commit or directory may."""

    def __init__(self, name: str, form: ObjectFormat, content: IO[bytes]) -> None:
        super().__init__(name, form, content)
        self._descriptor = content.fileno()

    def get_object_at(self, offset: int) -> tuple[int, Any]:
        """Read what is at a place; the size is written before the compressed content."""
        self._refuse_size(offset)
        kind, found = super().get_object_at(offset)
        if kind in _DELTAS and isinstance(found, tuple):
            delta = cast("bytes | list[bytes]", found[1])
            _refuse_delta(b"".join(delta) if isinstance(delta, list) else delta)
        return kind, found

    def _refuse_size(self, offset: int) -> None:
        head = read_at(self._descriptor, _HEADER_BYTES, offset)
        size, shift = head[0] & 15, 4
        for before, byte in pairwise(head):
            if not before & 128:
                break
            size |= (byte & 127) << shift
            shift += _SIZE_BITS
        _refuse_large(size)


def _refuse_delta(delta: bytes) -> None:
    """Refuse a difference that makes something large; its second number is the size of what it makes."""
    at = next((place for place, byte in enumerate(delta) if not byte & 128), len(delta)) + 1
    size, shift = 0, 0
    for byte in delta[at:]:
        size |= (byte & 127) << shift
        shift += _SIZE_BITS
        if not byte & 128 or shift > 64:  # noqa: PLR2004 - no size has more bits
            break
    _refuse_large(size)


def _refuse_large(size: int) -> None:
    if size > MAX_OBJECT_BYTES:
        raise ValueError("an object is too large")


def head_of(repository: Path) -> ObjectID | None:
    """Find the commit that is checked out; None if there is none."""
    try:
        return DiskRefsContainer(str(repository))[Ref(b"HEAD")]
    except DAMAGED:
        return None


#: Files of one commit that are listed; all that were found are counted.
MAX_FILES = 5000
_KINDS = {"add": "added", "modify": "changed", "delete": "removed"}


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that a commit changed."""

    path: bytes
    #: ``added``, ``changed`` or ``removed``.
    kind: str


def commits(objects: GitObjects, head: ObjectID) -> Iterator[tuple[str, Commit | None]]:
    """Yield a commit and all before it by their hashes, newest first; equally old ones in the order of the hashes.

    None stands for one that is missing or cannot be read; what led to it is not known.
    """
    waiting: list[tuple[int, ObjectID, Commit | None]] = []
    seen: set[ObjectID] = set()
    _push(waiting, seen, objects, [head])
    while waiting:
        _, name, commit = heapq.heappop(waiting)
        yield name.decode("ascii", "replace"), commit
        if commit is not None:
            _push(waiting, seen, objects, commit.parents)


def _push(
    waiting: list[tuple[int, ObjectID, Commit | None]],
    seen: set[ObjectID],
    objects: GitObjects,
    names: list[ObjectID],
) -> None:
    for name in names:
        if name not in seen:
            seen.add(name)
            commit = _readable(objects, name)
            heapq.heappush(waiting, (-commit.commit_time if commit else 0, name, commit))


def _readable(objects: GitObjects, name: ObjectID) -> Commit | None:
    try:
        commit = objects.commit(name)
        # The content is parsed when it is first used.
        _ = (commit.commit_time, commit.author_time, commit.parents, commit.message, commit.tree)
    except DAMAGED:
        return None
    return commit


def changed_files(objects: GitObjects, commit: Commit) -> list[ChangedFile]:
    """Compare a commit with the one before it; a merge changes nothing by itself, as ``git log`` shows it."""
    if len(commit.parents) > 1:
        return []
    before = objects.commit(commit.parents[0]).tree if commit.parents else None
    # Only objects by their names are needed of the store.
    found = tree_changes(cast("Any", objects), before, commit.tree, change_type_same=True)
    sides = ((change.new or change.old, change.type) for change in islice(found, MAX_FILES))
    return [ChangedFile(side.path, _KINDS.get(kind, "changed")) for side, kind in sides if side is not None]
