"""The history of a repository: the commits that led to one commit, newest first, with the files that each changed."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from dulwich.diff_tree import tree_changes
from dulwich.objects import Commit, ObjectID

from headgate.sources.git.objects import DAMAGED, GitObjects

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
    """Give a commit and all before it by their hashes, newest first; equally old ones in the order of the hashes.

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
    """Compare a commit with the one before it; a merge changes nothing by itself, as ``git log`` shows it.

    Raises:
        LookupError: an object is missing, as in a shallow clone.
        ValueError: the trees hold more objects than a person's files do.
    """
    if len(commit.parents) > 1:
        return []
    before = objects.commit(commit.parents[0]).tree if commit.parents else None
    # Only objects by their names are needed of the store.
    found = tree_changes(cast("Any", objects), before, commit.tree, change_type_same=True)
    sides = ((change.new or change.old, change.type) for change in islice(found, MAX_FILES))
    return [ChangedFile(side.path, _KINDS.get(kind, "changed")) for side, kind in sides if side is not None]
