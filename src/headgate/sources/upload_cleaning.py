"""Remove what imports left behind: uploads that were not imported or whose process was killed, and old notes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from headgate.sources.import_files import UploadDirectory, changed_at
from headgate.sources.pending import PendingUploads
from headgate.sources.reading_note import READING_NOTES
from headgate.tasks import Supervisor, stop

LOOP = "removal of old uploads"
_HOUR_SECONDS = 3600.0
#: The same files are imported again within this time, or not at all.
_NOTE_SECONDS = 7 * 24 * 3600
_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class UploadCleaning:
    """Removes what is old: when a server starts, and every hour."""

    home: Path
    uploads: UploadDirectory
    pending: PendingUploads
    clock: Callable[[], int]

    @asynccontextmanager
    async def running(self, supervisor: Supervisor) -> AsyncGenerator[None]:
        """Clean until the end of the block."""
        task = supervisor.start(LOOP, self._step)
        try:
            yield
        finally:
            await stop(task)

    async def _step(self) -> float:
        await asyncio.to_thread(self.clean)
        return _HOUR_SECONDS

    def clean(self) -> None:
        """Remove what is old now."""
        now = self.clock()
        self.uploads.clean(now)
        self.pending.clean()
        for note in (self.home / READING_NOTES).glob("*.note"):
            if changed_at(note) < now // _SECOND_US - _NOTE_SECONDS:
                note.unlink(missing_ok=True)
