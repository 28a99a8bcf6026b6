"""Decide what of some trees becomes which import, before anything is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.errors import InvalidRequest
from headgate.sources.importing import ImportJob, job_of
from headgate.sources.inputs.tree import InputTree
from headgate.sources.previewing import ImportPreview, preview
from headgate.sources.protocol import Recognised, Source
from headgate.sources.registry import detect, sources

_NAMES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """Files that a source has recognised, and the job that reads them."""

    found: Recognised
    job: ImportJob

    def preview(self) -> ImportPreview:
        """Read the beginning of the files."""
        return preview(self.job)

    def document(self, shown: ImportPreview) -> dict[str, Any]:
        """Write the plan and its preview as JSON."""
        return {
            "source": self.found.source,
            "connector_key": self.job.connector_key,
            "display_name": self.job.display_name,
            "files": [file.name for file in self.found.files],
            "size_bytes": self.job.total_bytes,
            **dataclasses.asdict(shown),
        }


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What will be imported, and the files that will not."""

    imports: Sequence[PlannedImport]
    #: With the reason, where a source had recognised the file.
    unknown: Sequence[str]


def chosen_sources(name: str | None) -> Mapping[str, Source]:
    """Return the sources to choose from: all, or the one that was named.

    Raises:
        InvalidRequest: there is no source of that name.
    """
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
    """Let the sources recognise what is theirs; tables are read once to know their columns.

    Raises:
        InvalidRequest: no source reads any of it, or the corrections do not fit.
    """
    planned: list[PlannedImport] = []
    unknown: list[str] = []
    for tree in trees:
        found = detect(tree, list(among.values()))
        read = {file.name for one in found for file in one.files}
        unknown += [file.name for file in tree.files if file.name not in read]
        for one in found:
            try:
                planned.append(_planned(among[one.source], one, name, corrections))
            except InvalidRequest as error:
                if corrections is not None:
                    raise
                unknown += [f"{file.name} ({error.message})" for file in one.files]
    if not planned:
        raise InvalidRequest(
            f"No source reads {', '.join(one[:200] for one in unknown[:_NAMES_SHOWN]) or 'this'}.",
            hint=f"Sources are {', '.join(sorted(among))}.",
        )
    return ImportPlan(planned, unknown)


def _planned(
    source: Source, found: Recognised, name: str | None, corrections: Mapping[str, Any] | None
) -> PlannedImport:
    if corrections is not None:
        correct = getattr(source, "corrected", None)
        if correct is None:
            raise InvalidRequest(
                f"The source '{source.name}' declares what it reads itself.",
                hint="Leave out the corrections.",
            )
        found = correct(found, corrections)
    return PlannedImport(found, job_of(source, found, name=name))
