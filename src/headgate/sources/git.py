"""Commits as a source: those that led to what is checked out, named by their hashes.

A repository may be hostile: its objects are bounded in size and number, and read from its directory only. Neither its
configuration nor its list of other repositories to borrow from is read, so nothing that it names is started, fetched
or opened.
"""

from __future__ import annotations

import heapq
import re
import struct
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from dulwich.diff_tree import tree_changes
from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException, RefFormatError
from dulwich.object_format import SHA1, SHA256, ObjectFormat
from dulwich.objects import Commit, ObjectID, ShaFile
from dulwich.pack import Pack, PackData, UnresolvedDeltas, load_pack_index
from dulwich.refs import DiskRefsContainer, Ref, SymrefLoop

from headgate.model.instants import iso
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.formats.texts import clean, one_line
from headgate.sources.formats.values import decoded, digest_of, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Certainty, Item, Mark, Recognised, Reject, Row, Source
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
        stored = self[name]
        if isinstance(stored, Commit):
            return stored
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
        loose = ShaFile.from_path(str(path), object_format=self._form, max_size=MAX_OBJECT_BYTES)
        if loose.get_id(self._form) != name:
            raise ValueError("an object has another content than its name says")
        return loose


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
        kind, content = super().get_object_at(offset)
        if kind in _DELTAS and isinstance(content, tuple):
            delta = cast("bytes | list[bytes]", content[1])
            _refuse_delta(b"".join(delta) if isinstance(delta, list) else delta)
        return kind, content

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
    changes = tree_changes(cast("Any", objects), before, commit.tree, change_type_same=True)
    sides = ((change.new or change.old, change.type) for change in islice(changes, MAX_FILES))
    return [ChangedFile(side.path, _KINDS.get(kind, "changed")) for side, kind in sides if side is not None]


_STEP = 500
_MAX_NAME = 300
_MAX_PATH = 1000
_MAX_PARENTS = 100
_MAX_SECONDS = 253_402_300_799  # The year 9999.
_COMMITS = StreamSpec(
    name="commits",
    label="Commits",
    detail="One change to the files of a repository: who made it, when, and why.",
    fields=fields(
        "id title message author author_email authored_at:time committer committer_email committed_at:time "
        "files_changed:integer parent_id parents:list"
    ),
    time="authored_at",
    times="UTC",
    title="title",
    words=("title", "message", "author"),
    groups=("author", "author_email", "committer", "committer_email", "parent_id"),
    views=(
        (
            "titles",
            "What was done and when, without messages and addresses",
            ("id", "title", "author", "authored_at"),
        ),
    ),
    children=(("changes", "commit_id"), ("commits", "parent_id")),
    is_append_only=True,
)
_CHANGES = StreamSpec(
    name="changes",
    label="Changed files",
    detail="One file that a commit added, changed or removed.",
    fields=fields("id commit_id path kind author authored_at:time"),
    time="authored_at",
    times="UTC",
    title="path",
    words=("path",),
    groups=("path", "kind", "author", "commit_id"),
    is_append_only=True,
)


class GitSource(Source):
    name = "git"
    title = "Git commits"
    streams = (_COMMITS, _CHANGES)

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        repositories = {folder: files for folder, files in _repositories(tree).items() if files}
        names = {folder: _name(folder, tree.label) for folder in repositories}
        count = Counter(names.values())
        return [
            Recognised(
                self.name,
                f"Commits {names[folder] if count[names[folder]] == 1 else folder or tree.label}",
                files,
                Certainty.EXPORT,
            )
            for folder, files in repositories.items()
        ]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read the commits, newest first; an interrupted reading goes on below the same newest commit."""
        head_file, *others = recognised.files
        begun = resume.get(head_file.name, {})
        if begun is not None:
            yield from _read(head_file, str(begun.get("head") or ""), int(begun.get("commits", 0)))
        yield from (
            Mark(file.name, file.size_bytes) for file in others if resume.get(file.name, 0) is not None
        )


GIT = GitSource()


def _repositories(tree: InputTree) -> dict[str, list[InputFile]]:
    """Find the directories with a HEAD and with objects; of a hidden one the tree has the HEAD alone."""
    heads = [file for file in tree.files if PurePosixPath(file.name).name == "HEAD"]
    repositories: dict[str, list[InputFile]] = {}
    for head in heads:
        folder = head.name.removesuffix("HEAD").rstrip("/")
        prefix = f"{folder}/" if folder else ""
        if PurePosixPath(folder).name == ".git":
            repositories[folder] = [head]
        elif _is_bare(tree, prefix) and not any(prefix.startswith(f"{other}/") for other in repositories):
            files = (file for file in tree.files if file.name.startswith(prefix) and file is not head)
            repositories[folder] = [head, *files]
    return repositories


def _is_bare(tree: InputTree, prefix: str) -> bool:
    is_named = f"{prefix}config" in tree.names
    return is_named and any(name.startswith(f"{prefix}objects/") for name in tree.names)


def _name(folder: str, label: str) -> str:
    """Name a repository by the directory in which a person sees it."""
    path = PurePosixPath(folder)
    if path.name == ".git":
        path = path.parent
    return (path.name or label).removesuffix(".git") or "repository"


def _read(head_file: InputFile, begun_at: str, done: int) -> Iterator[Item]:
    try:
        with head_file.on_disk() as path:
            yield from _read_repository(path.absolute().parent, head_file, begun_at, done)
    except DAMAGED:
        yield Reject(head_file.name, "The repository cannot be read further.")
    yield Mark(head_file.name, head_file.size_bytes)


def _read_repository(directory: Path, head_file: InputFile, begun_at: str, done: int) -> Iterator[Item]:
    if not (directory / "objects").is_dir():
        yield Reject(
            head_file.name, "A repository in an archive is not read: unpack it, and import the folder."
        )
        return
    head = ObjectID(begun_at.encode()) if begun_at else head_of(directory)
    if head is None:
        yield Reject(head_file.name, "The repository has no commit that is checked out.")
        return
    with git_objects(directory, head) as objects:
        remaining = islice(commits(objects, head), done, None)
        for number, (name, commit) in enumerate(remaining, done + 1):
            yield from _items(f"{head_file.name}, commit {name[:64]}", objects, name, commit)
            if number % _STEP == 0:
                yield Mark(head_file.name, 0, {"head": head.decode(), "commits": number})


def _items(place: str, objects: GitObjects, name: str, commit: Commit | None) -> Iterator[Row | Reject]:
    if commit is None:
        yield Reject(place, "It is missing or damaged.")
        return
    files: list[ChangedFile] | None = None
    try:
        files = changed_files(objects, commit)
    except DAMAGED:
        yield Reject(place, "The files that it changed are missing or damaged.")
    data = _commit(name, commit, files)
    yield Row("commits", data, place=place)
    yield from (_change(data, file) for file in files or ())


def _commit(name: str, commit: Commit, files: Sequence[ChangedFile] | None) -> dict[str, Any]:
    charset = commit.encoding.decode("ascii", "replace") if commit.encoding else "utf-8"
    message = decoded(commit.message, charset)
    author, author_email = _person(commit.author, charset)
    committer, committer_email = _person(commit.committer, charset)
    parents = [parent.decode() for parent in commit.parents]
    data = {
        "id": name,
        "title": one_line(message.strip().partition("\n")[0], _MAX_NAME) or name,
        "message": clean(message),
        "author": author,
        "author_email": author_email,
        "authored_at": _time(commit.author_time),
        "committer": committer,
        "committer_email": committer_email,
        "committed_at": _time(commit.commit_time),
        "files_changed": None if files is None else len(files),
        "parent_id": parents[0] if parents else None,
        "parents": parents[:_MAX_PARENTS],
    }
    return without_empty(data)


def _change(commit: Mapping[str, Any], changed: ChangedFile) -> Row:
    path = one_line(decoded(changed.path), _MAX_PATH) or "-"
    data = {
        "id": digest_of(commit["id"], changed.path.hex()),
        "commit_id": commit["id"],
        "path": path,
        "kind": changed.kind,
        "author": commit.get("author"),
        "authored_at": commit["authored_at"],
    }
    return Row("changes", without_empty(data), place=f"commit {commit['id']}, {path}")


def _person(identity: bytes, charset: str) -> tuple[str | None, str | None]:
    name, _, rest = decoded(identity, charset).partition("<")
    return one_line(name, _MAX_NAME), one_line(rest.partition(">")[0], _MAX_NAME)


def _time(seconds: int) -> str:
    """Write a time; one that no calendar has becomes the nearest that it has."""
    return iso(max(0, min(seconds, _MAX_SECONDS)) * 1_000_000)
