"""Open what an import names: a file, a directory or an archive."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headgate.sources.inputs.archives import archive_tree, is_archive
from headgate.sources.inputs.disk import tree_of
from headgate.sources.inputs.tree import InputTree


@contextmanager
def opened_tree(path: Path) -> Generator[InputTree]:
    """Give the files of a path; those of an archive can be read until it is closed here.

    Raises:
        InvalidRequest: there is nothing at the path, or it is an archive that cannot be read.
        ResourceLimit: it is an archive that would grow beyond all bounds.
    """
    if path.is_file() and is_archive(path.name):
        with archive_tree(path) as tree:
            yield tree
    else:
        yield tree_of(path)
