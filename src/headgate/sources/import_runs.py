"""Imports that go on beside the page that began them."""

from __future__ import annotations

import asyncio

from headgate.errors import HeadgateError
from headgate.sources.intake import Intake, Upload
from headgate.sources.pending import PendingUploads, TakenUpload
from headgate.tasks import Supervisor

LOOP = "imports"


class ImportRuns:
    """Starts imports of uploaded files; how far each is can be read by its id, which is the upload's."""

    __slots__ = ("_intake", "_supervisor", "_tasks", "_uploads")

    def __init__(self, intake: Intake, uploads: PendingUploads, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._intake = intake
        self._uploads = uploads
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, upload_id: str, display_name: str | None) -> None:
        """Begin to import an upload; when this returns, its progress can be read.

        Raises:
            NotFound: it is gone, or is being imported already.
        """
        taken = self._uploads.take(upload_id)
        upload = Upload(taken.name, is_bundle=taken.is_bundle, display_name=display_name, import_id=upload_id)
        task = asyncio.create_task(self._run(taken, upload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # The import notes its beginning before it waits for anything.
        await asyncio.sleep(0)

    async def _run(self, taken: TakenUpload, upload: Upload) -> None:
        # How it ends is noted with the progress, where the page shows it.
        try:
            await self._intake.import_file(upload, taken.content())
        except HeadgateError:
            pass
        except Exception as error:  # noqa: BLE001 - no caller waits for it: a failure of ours must not be lost
            self._supervisor.failed(LOOP, error)
        else:
            self._supervisor.worked(LOOP)
        finally:
            taken.remove()
