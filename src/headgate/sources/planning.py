"""Decide what of some trees becomes which import, before anything is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from headgate.errors import InvalidRequest
from headgate.sources.importing import ImportJob, job_of
from headgate.sources.inputs.archives import is_archive
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.parts import most_stored_bytes
from headgate.sources.previewing import ImportPlan, PlannedImport, preview
from headgate.sources.protocol import Recognised, Source
from headgate.sources.registry import detect, sources

_NAMES_SHOWN = 10


def chosen_sources(name: str | None) -> Mapping[str, Source]:
    """Return the sources to choose from: all, or the one that was named."""
    known = sources()
    if name is None:
        return known
    if name not in known:
        raise InvalidRequest(
            f"There is no source '{name[:80]}'.",
            hint=f"Sources are {', '.join(sorted(known))}.",
            param="source",
        )
    return {name: known[name]}


def plan_imports(
    trees: Sequence[InputTree],
    among: Mapping[str, Source],
    *,
    name: str | None = None,
    corrections: Mapping[str, Any] | None = None,
) -> ImportPlan:
    """Let the sources recognise what is theirs; tables are read once to know their columns."""
    planned: list[PlannedImport] = []
    unknown: list[str] = []
    has_unreadable = False
    for tree in trees:
        found = detect(tree, list(among.values()))
        read = {file.name for one in found for file in one.files}
        left = [file for file in tree.files if file.name not in read]
        unknown += [_named(file) for file in left]
        has_unreadable |= any(file.unreadable for file in left)
        for one in found:
            try:
                job = _job(among[one.source], one, tree, name, corrections)
            except (InvalidRequest, OSError) as error:
                if corrections is not None and isinstance(error, InvalidRequest):
                    raise
                unknown += [f"{file.name} ({_reason(error)})" for file in one.files]
                has_unreadable = True
            else:
                files = [file.name for file in one.files]
                planned.append(PlannedImport(one.source, files, job, partial(preview, job)))
    if not planned:
        _refuse(trees, unknown, among)
    return ImportPlan(planned, unknown, has_unreadable)


def _reason(error: InvalidRequest | OSError) -> str:
    return error.message if isinstance(error, InvalidRequest) else error.strerror or str(error)


def _named(file: InputFile) -> str:
    """Name a file that is not read, with the reason where there is a better one than its format."""
    reason = file.unreadable
    if not reason and not file.head:
        reason = "empty"
    if not reason and is_archive(file.name):
        reason = "an archive in a directory; import it by its own path"
    return f"{file.name} ({reason})" if reason else file.name


def _refuse(trees: Sequence[InputTree], unknown: Sequence[str], among: Mapping[str, Source]) -> NoReturn:
    if not unknown:
        labels = ", ".join(tree.label[:200] for tree in trees)
        raise InvalidRequest(f"There is no file in {labels}.", hint="Give the path of an export.")
    raise InvalidRequest(
        f"No source reads {', '.join(one[:200] for one in unknown[:_NAMES_SHOWN])}.",
        hint=f"Sources are {', '.join(sorted(among))}.",
    )


def _job(
    source: Source,
    found: Recognised,
    tree: InputTree,
    name: str | None,
    corrections: Mapping[str, Any] | None,
) -> ImportJob:
    if corrections is not None:
        correct = getattr(source, "corrected", None)
        if correct is None:
            raise InvalidRequest(
                f"The source '{source.name}' declares what it reads itself.",
                hint="Leave out the corrections.",
            )
        found = correct(found, corrections)
    job = job_of(source, found, name=name)
    if tree.packed_bytes is None:
        return job
    # Of an archive the packed size counts: what it unpacks to may be many times that already.
    return dataclasses.replace(job, most_bytes=most_stored_bytes(min(job.total_bytes, tree.packed_bytes)))
