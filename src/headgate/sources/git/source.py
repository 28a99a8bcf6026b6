"""Commits as a source: those that led to what is checked out, named by their hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from dulwich.objects import Commit, ObjectID

from headgate.model.instants import iso
from headgate.sources.declaring import INTEGER, LIST, TEXT, TIME, StreamSpec, declaration
from headgate.sources.git.objects import (
    DAMAGED,
    ChangedFile,
    GitObjects,
    changed_files,
    commits,
    git_objects,
    head_of,
)
from headgate.sources.identity import digest_of
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Certainty, Item, Mark, Recognised, Reject, Row
from headgate.sources.texts import clean, one_line
from headgate.sources.values import decoded, without_empty

_STEP = 500
_MAX_NAME = 300
_MAX_PATH = 1000
_MAX_PARENTS = 100
_MAX_SECONDS = 253_402_300_799  # The year 9999.
_COMMITS = StreamSpec(
    name="commits",
    label="Commits",
    detail="One change to the files of a repository: who made it, when, and why.",
    fields={
        "id": TEXT,
        "title": TEXT,
        "message": TEXT,
        "author": TEXT,
        "author_email": TEXT,
        "authored_at": TIME,
        "committer": TEXT,
        "committer_email": TEXT,
        "committed_at": TIME,
        "files_changed": INTEGER,
        "parent_id": TEXT,
        "parents": LIST,
    },
    time="authored_at",
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
    fields={"id": TEXT, "commit_id": TEXT, "path": TEXT, "kind": TEXT, "author": TEXT, "authored_at": TIME},
    time="authored_at",
    title="path",
    words=("path",),
    groups=("path", "kind", "author", "commit_id"),
    is_append_only=True,
)


class GitSource:
    """The commits of repositories."""

    name = "git"
    title = "Git commits"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Take every directory that is a repository, with all its files."""
        found = {folder: files for folder, files in _repositories(tree).items() if files}
        names = {folder: _name(folder, tree.label) for folder in found}
        count = Counter(names.values())
        return [
            Recognised(
                self.name,
                f"Commits {names[folder] if count[names[folder]] == 1 else folder or tree.label}",
                files,
                Certainty.EXPORT,
            )
            for folder, files in found.items()
        ]

    def declare(self, found: Recognised) -> Mapping[str, Any]:
        """Declare the two streams."""
        del found
        return declaration("git", self.title, [_COMMITS, _CHANGES])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read the commits, newest first; an interrupted reading goes on below the same newest commit."""
        mark, *others = found.files
        begun = resume.get(mark.name, {})
        if begun is not None:
            yield from _read(mark, str(begun.get("head") or ""), int(begun.get("commits", 0)))
        yield from (
            Mark(file.name, file.size_bytes) for file in others if resume.get(file.name, 0) is not None
        )


GIT = GitSource()


def _repositories(tree: InputTree) -> dict[str, list[InputFile]]:
    """Find the directories with a HEAD and with objects; of a hidden one the tree has the HEAD alone."""
    heads = [file for file in tree.files if PurePosixPath(file.name).name == "HEAD"]
    found: dict[str, list[InputFile]] = {}
    for head in heads:
        folder = head.name.removesuffix("HEAD").rstrip("/")
        prefix = f"{folder}/" if folder else ""
        if PurePosixPath(folder).name == ".git":
            found[folder] = [head]
        elif _is_bare(tree, prefix) and not any(prefix.startswith(f"{other}/") for other in found):
            files = (file for file in tree.files if file.name.startswith(prefix) and file is not head)
            found[folder] = [head, *files]
    return found


def _is_bare(tree: InputTree, prefix: str) -> bool:
    is_named = f"{prefix}config" in tree.names
    return is_named and any(name.startswith(f"{prefix}objects/") for name in tree.names)


def _name(folder: str, label: str) -> str:
    """Name a repository by the directory in which a person sees it."""
    path = PurePosixPath(folder)
    if path.name == ".git":
        path = path.parent
    return (path.name or label).removesuffix(".git") or "repository"


def _read(mark: InputFile, begun_at: str, given: int) -> Iterator[Item]:
    try:
        with mark.on_disk() as path:
            yield from _read_repository(path.absolute().parent, mark, begun_at, given)
    except DAMAGED:
        yield Reject(mark.name, "The repository cannot be read further.")
    yield Mark(mark.name, mark.size_bytes)


def _read_repository(directory: Path, mark: InputFile, begun_at: str, given: int) -> Iterator[Item]:
    if not (directory / "objects").is_dir():
        yield Reject(mark.name, "A repository in an archive is not read: unpack it, and import the folder.")
        return
    head = ObjectID(begun_at.encode()) if begun_at else head_of(directory)
    if head is None:
        yield Reject(mark.name, "The repository has no commit that is checked out.")
        return
    with git_objects(directory, head) as objects:
        found = islice(commits(objects, head), given, None)
        for number, (name, commit) in enumerate(found, given + 1):
            yield from _items(f"{mark.name}, commit {name[:64]}", objects, name, commit)
            if number % _STEP == 0:
                yield Mark(mark.name, 0, {"head": head.decode(), "commits": number})


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
