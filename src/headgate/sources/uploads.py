"""Files that arrive over HTTP, imported as files of the disk are."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import time
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from headgate.errors import HeadgateError, InvalidRequest, ServerFault, StorageFull
from headgate.model.ids import is_plain
from headgate.sources.file_parser import FileChoice, FileParser
from headgate.sources.import_files import UploadDirectory, checked_id
from headgate.sources.import_plan import ImportPlan
from headgate.sources.importing import Importer, ImportProgress, ImportReport
from headgate.sources.intake import Upload

if TYPE_CHECKING:
    from headgate.store.relational.store import Store

_MAX_NAME = 200
_SEPARATORS = frozenset("/\\\0")
#: How often progress is noted.
_NOTE_SECONDS = 1.0
#: How much arrives between two looks at the disk.
_LOOK_BYTES = 16 * 1024 * 1024


async def import_upload(
    store: Store,
    uploads: UploadDirectory,
    upload: Upload,
    content: AsyncIterator[bytes],
    *,
    clock: Callable[[], int],
) -> dict[str, Any]:
    """Take a file in and import it, or only show what it holds; gives the answer's JSON.

    The file lies in a private directory until this ends.

    Raises:
        InvalidRequest: its name is no name of a file, or no source reads it.
        ResourceLimit: it is an archive that unpacks to more than is allowed.
        StorageFull: there is no disk space for it.
    """
    name = upload.file_name
    if not name or len(name) > _MAX_NAME or name.startswith(".") or not _SEPARATORS.isdisjoint(name):
        raise InvalidRequest("file_name must be the name of a file, without directories.", param="file_name")
    if not is_plain(name):
        raise InvalidRequest("file_name must be plain text.", param="file_name")
    import_id = checked_id(upload.import_id)
    with uploads.receiving() as directory, _noted(uploads, import_id, upload) as notes:
        path = directory / name
        await _receive(path, content, uploads, notes)
        notes.put(status="reading")
        paths = await asyncio.to_thread(_unpacked, path) if upload.is_bundle else [path]
        choice = FileChoice(paths=paths, source=upload.source, name=upload.display_name)
        with FileParser(choice) as parser:
            plan = await asyncio.to_thread(parser.plan)
            if upload.is_dry_run:
                return {"import_id": import_id, **await asyncio.to_thread(_preview, plan)}
            reports = await _import(Importer(store, clock=clock), plan, notes)
        notes.finish(reports, plan.unknown)
    return {
        "object": "import",
        "import_id": import_id,
        "imports": [dataclasses.asdict(one) for one in reports],
        "unknown_files": list(plan.unknown),
    }


async def _receive(
    path: Path, content: AsyncIterator[bytes], uploads: UploadDirectory, notes: _ImportNotes
) -> None:
    received = looked_at = 0
    with path.open("xb") as file:
        async for piece in content:
            await asyncio.to_thread(file.write, piece)
            received += len(piece)
            if received - looked_at >= _LOOK_BYTES:
                looked_at = received
                uploads.refuse_without_room()
            notes.put_sometimes(received_bytes=received)
    notes.put(received_bytes=received)


def _unpacked(bundle: Path) -> list[Path]:
    """Lay the files of a bundle beside each other, so that each is imported as it would be by itself.

    Raises:
        InvalidRequest: this system cannot have a file of such a name.
    """
    directory = bundle.with_name("files")
    try:
        with ZipFile(bundle) as archive:
            archive.extractall(directory)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull from None
        raise InvalidRequest(
            "The files cannot be stored here under their names.", hint="Rename them."
        ) from None
    bundle.unlink()
    return sorted(directory.iterdir())


async def _import(importer: Importer, plan: ImportPlan, notes: _ImportNotes) -> list[ImportReport]:
    """Run one job after the other; progress is that of all of them."""
    total = sum(one.job.total_bytes for one in plan.imports)
    notes.put(status="importing", total_bytes=total)
    reports: list[ImportReport] = []
    for one in plan.imports:
        before = ImportProgress(
            sum(each.accepted for each in reports),
            sum(each.reject_count for each in reports),
            sum(each.done_bytes for each in reports),
            total,
        )
        reports.append(await importer.run(one.job, lambda now, before=before: notes.show(before, now)))
    return reports


class _ImportNotes:
    """What is known of one import while it runs."""

    def __init__(self, uploads: UploadDirectory, import_id: str, upload: Upload) -> None:
        self._uploads = uploads
        self._noted_at = 0.0
        self._document: dict[str, Any] = {
            "object": "import_progress",
            "import_id": import_id,
            "file_name": upload.file_name,
            "status": "receiving",
            "received_bytes": 0,
            "rows": 0,
            "rejects": 0,
            "done_bytes": 0,
            "total_bytes": 0,
            "error": None,
            "imports": [],
            "unknown_files": [],
        }

    def put(self, **members: Any) -> None:
        """Note something at once."""
        self._document |= members
        self._noted_at = time.monotonic()
        self._uploads.put(self._document["import_id"], self._document)

    def put_sometimes(self, **members: Any) -> None:
        """Note something, unless that was done a moment ago."""
        self._document |= members
        if time.monotonic() - self._noted_at > _NOTE_SECONDS:
            self.put()

    def show(self, before: ImportProgress, now: ImportProgress) -> None:
        """Note how far the import of one job is, after those before it."""
        self.put_sometimes(
            rows=before.rows + now.rows,
            rejects=before.rejects + now.rejects,
            done_bytes=before.done_bytes + now.done_bytes,
        )

    def finish(self, reports: Sequence[ImportReport], unknown: Sequence[str]) -> None:
        """Note what became of it."""
        self.put(
            status="done",
            rows=sum(one.accepted for one in reports),
            rejects=sum(one.reject_count for one in reports),
            done_bytes=self._document["total_bytes"],
            imports=[dataclasses.asdict(one) for one in reports],
            unknown_files=list(unknown),
        )


@contextmanager
def _noted(uploads: UploadDirectory, import_id: str, upload: Upload) -> Generator[_ImportNotes]:
    """Note how an import ends, also if its caller goes away."""
    notes = _ImportNotes(uploads, import_id, upload)
    notes.put()
    try:
        yield notes
    except HeadgateError as error:
        notes.put(status="failed", error={"code": error.code, "message": error.message})
        raise
    except Exception:
        message = "A fault in Headgate ended the import; its log has more."
        notes.put(status="failed", error={"code": ServerFault.code, "message": message})
        raise
    except BaseException:
        notes.put(status="interrupted")
        raise
    if upload.is_dry_run:
        notes.put(status="previewed")


def _preview(plan: ImportPlan) -> dict[str, Any]:
    return {
        "object": "import_preview",
        "imports": [one.document(one.preview()) for one in plan.imports],
        "unknown_files": list(plan.unknown),
    }
