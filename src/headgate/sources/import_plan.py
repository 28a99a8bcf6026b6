"""What is known of an import before anything is stored: its jobs, and the files that are not read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.sources.importing import ImportJob
from headgate.sources.previewing import ImportPreview


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """Files that a source has recognised, and the job that reads them."""

    source: str
    #: Their names.
    files: Sequence[str]
    job: ImportJob
    #: Reads the beginning of the files.
    preview: Callable[[], ImportPreview]

    def document(self, shown: ImportPreview) -> dict[str, Any]:
        """Write the plan and its preview as JSON."""
        return {
            "source": self.source,
            "connector_key": self.job.connector_key,
            "display_name": self.job.display_name,
            "files": list(self.files),
            "size_bytes": self.job.total_bytes,
            **dataclasses.asdict(shown),
        }


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What will be imported, and the files that will not."""

    imports: Sequence[PlannedImport]
    #: With the reason, where there is one beside that no source recognises the file.
    unknown: Sequence[str]
    #: Whether one of these is damaged, encrypted or otherwise unreadable.
    has_unreadable: bool
