"""Uploads: files that arrive over HTTP, what they would bring, and their import as files of the disk.

An upload has a directory that only the owner can enter, with its files under their names, and is imported from there.
Beside it a file notes how far the import is, for any process of the home. A process has a lock for as long as it
receives or imports, so that what a killed one left is known.
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.errors import HeadgateError, InvalidRequest, NotFound, ServerFault, StorageFull
from headgate.home import NO_SPACE, has_room, make_private_directory, read_private, write_private
from headgate.model.ids import is_plain
from headgate.sources.importing import Importer, ImportProgress, ImportReport
from headgate.sources.parsers import FileChoice, FileParser
from headgate.sources.planning import ImportPlan
from headgate.sources.reading_note import READING_NOTES
from headgate.system import lock, open_private
from headgate.tasks import Supervisor, stop

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

#: How an import is called from its start on.
_BEGUN = frozenset({"reading", "importing", "done", "failed", "interrupted"})
_DIRECTORY = "imports"
#: The loops, as the owner's pages call them.
_LOOP = "imports"
_CLEANING_LOOP = "removal of old uploads"
_WAITING_ID = re.compile(r"[0-9a-f]{32}")
_IMPORT_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
_MAX_NAME = 200
_SEPARATORS = frozenset("/\\\0")
#: How often progress is noted.
_NOTE_SECONDS = 1.0
#: How much arrives between two checks of the disk.
_CHECK_BYTES = 16 * 1024 * 1024
#: An upload waits for its import so long, and what became of an import can be read so long.
_HOUR_SECONDS = 3600
_DAY_SECONDS = 24 * _HOUR_SECONDS
#: The same files are imported again within this time, or not at all.
_READING_NOTE_SECONDS = 7 * _DAY_SECONDS


@dataclasses.dataclass(frozen=True, slots=True)
class Upload:
    file_name: str
    source: str | None = None
    #: The connection's name; the source chooses one if it is None.
    display_name: str | None = None
    is_dry_run: bool = False
    #: By which its progress can be read meanwhile; None: one is made.
    import_id: str | None = None


class Uploads:
    """Receives, previews and imports uploads, and removes what is left of old ones."""

    __slots__ = ("_clock", "_home", "_path", "_store", "_supervisor", "_tasks")

    def __init__(self, home: Path, store: Store, *, clock: Callable[[], int], supervisor: Supervisor) -> None:
        self._home = home
        self._path = home / _DIRECTORY
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._tasks: set[asyncio.Task[None]] = set()

    async def import_file(self, upload: Upload, content: AsyncIterator[bytes]) -> dict[str, Any]:
        """Receive a file and import it, or only show what it holds; return the answer's JSON."""
        name = _checked_name(upload.file_name)
        notes = _ImportNotes(self._path, _checked_id(upload.import_id), name)
        directory = self._path / secrets.token_hex(16)
        with self._owned(directory), notes.until_end():
            await _receive(directory / name, content, lambda size: notes.put_sometimes(received_bytes=size))
            return await self._import_from(directory, upload, notes)

    async def add(self, name: str, files: Sequence[tuple[str, AsyncIterator[bytes]]]) -> str:
        """Store one file, or several with their paths, for an hour; return the id by which they are found again."""
        upload_id, taken = secrets.token_hex(16), set[str]()
        directory = self._path / f"{upload_id}.new"
        with self._owned(directory):
            for path, content in files:
                member = _checked_name(path) if len(files) == 1 else _member(path, taken)
                await _receive(directory / member, content)
            _ImportNotes(self._path, upload_id, name).put(status="waiting")
            directory.rename(directory.with_suffix(""))
        return upload_id

    def waiting_name(self, upload_id: str) -> str:
        """Return the name of an upload that waits for its import."""
        return self.progress(self._waiting(upload_id).name)["file_name"]

    async def preview(self, upload_id: str) -> dict[str, Any]:
        """Return what an upload would bring, as JSON."""
        with FileParser(FileChoice(paths=_given(self._waiting(upload_id)), given_at=self._clock())) as parser:
            return await _previewed(await asyncio.to_thread(parser.plan))

    async def start(self, upload_id: str, display_name: str | None) -> None:
        """Begin to import an upload, once; when this returns, its progress can be read."""
        waiting, name = self._waiting(upload_id), self.waiting_name(upload_id)
        directory = waiting.with_suffix(".taken")
        try:
            waiting.rename(directory)
        except FileNotFoundError:
            raise _gone() from None
        notes = _ImportNotes(self._path, upload_id, name)
        notes.put(status="reading")
        task = asyncio.create_task(self._run(directory, Upload(name, display_name=display_name), notes))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def remove(self, upload_id: str) -> None:
        shutil.rmtree(self._waiting(upload_id), ignore_errors=True)

    def progress(self, import_id: str) -> Any:
        """Return how far an import is, or what became of it."""
        note = read_private(self._note(_checked_id(import_id)))
        if note is None:
            raise NotFound("There is no such import.", param="import_id")
        return msgspec.json.decode(note)

    def latest(self) -> list[Any]:
        """Return how far the imports of the last day are, or what became of them; the newest first."""
        notes = sorted(self._path.glob("*.json"), key=lambda path: -_changed_at(path, if_gone=0))
        documents = (msgspec.json.decode(note) for path in notes if (note := read_private(path)) is not None)
        return [document for document in documents if document["status"] in _BEGUN]

    @asynccontextmanager
    async def cleaning(self) -> AsyncGenerator[None]:
        """Remove what is old now, and every hour until the end of the block."""
        task = self._supervisor.start(_CLEANING_LOOP, self._clean_step)
        try:
            yield
        finally:
            await stop(task)

    async def _clean_step(self) -> float:
        await asyncio.to_thread(self.clean)
        return float(_HOUR_SECONDS)

    def clean(self) -> None:
        """Remove uploads that were not imported or whose process was killed, and old notes."""
        now = self._clock() / 1_000_000
        for directory in self._path.glob("*/"):
            # What was received or taken a moment ago is not locked yet, or no longer.
            is_recent = _changed_at(self._note(directory.stem), if_gone=0) > now - _HOUR_SECONDS
            if not is_recent and not _is_locked(_lock_of(directory)):
                shutil.rmtree(directory, ignore_errors=True)
                _lock_of(directory).unlink(missing_ok=True)
        # Also what a killed process had not put in its place.
        for path in self._path.glob("*.json*"):
            if _changed_at(path, if_gone=math.inf) < now - _DAY_SECONDS:
                path.unlink(missing_ok=True)
        # Where earlier versions had uploads until their import.
        shutil.rmtree(self._home / "uploads", ignore_errors=True)
        for path in (self._home / READING_NOTES).glob("*.note"):
            if _changed_at(path, if_gone=math.inf) < now - _READING_NOTE_SECONDS:
                path.unlink(missing_ok=True)

    async def _run(self, directory: Path, upload: Upload, notes: _ImportNotes) -> None:
        # How it ends is noted with the progress, where the page shows it.
        try:
            with self._owned(directory), notes.until_end():
                await self._import_from(directory, upload, notes)
        except HeadgateError:
            pass
        except Exception as error:  # noqa: BLE001 - no caller waits for it: a failure of ours must not be lost
            self._supervisor.failed(_LOOP, error)
        else:
            self._supervisor.worked(_LOOP)

    async def _import_from(self, directory: Path, upload: Upload, notes: _ImportNotes) -> dict[str, Any]:
        notes.put(status="reading")
        choice = FileChoice(
            paths=_given(directory), given_at=self._clock(), source=upload.source, name=upload.display_name
        )
        with FileParser(choice) as parser:
            plan = await asyncio.to_thread(parser.plan)
            if upload.is_dry_run:
                previewed = await _previewed(plan)
                notes.put(status="previewed")
                return {"import_id": notes.import_id, **previewed}
            reports = await _import(Importer(self._store, clock=self._clock), plan, notes)
        notes.finish(reports, plan.unknown)
        return {
            "object": "import",
            "import_id": notes.import_id,
            "imports": [dataclasses.asdict(report) for report in reports],
            "unknown_files": list(plan.unknown),
        }

    @contextmanager
    def _owned(self, directory: Path) -> Generator[None]:
        """Make a directory if it is not there, locked until the end of the block, and remove what it then is."""
        make_private_directory(self._path)
        handle = open_private(_lock_of(directory), os.O_RDWR | os.O_CREAT)
        try:
            lock(handle)
            make_private_directory(directory)
            yield
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            os.close(handle)
            _lock_of(directory).unlink(missing_ok=True)

    def _waiting(self, upload_id: str) -> Path:
        directory = self._path / upload_id
        if not _WAITING_ID.fullmatch(upload_id) or not directory.is_dir():
            raise _gone()
        return directory

    def _note(self, import_id: str) -> Path:
        return self._path / f"{import_id}.json"


class _ImportNotes:
    """What is known of one import while it runs."""

    def __init__(self, directory: Path, import_id: str, file_name: str) -> None:
        self.import_id = import_id
        self._path = directory / f"{import_id}.json"
        self._noted_at = 0.0
        self._document: dict[str, Any] = {
            "object": "import_progress",
            "import_id": import_id,
            "file_name": file_name,
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
        self._document |= members
        self._noted_at = time.monotonic()
        write_private(self._path, msgspec.json.encode(self._document))

    def put_sometimes(self, **members: Any) -> None:
        """Note something, unless that was done a moment ago."""
        self._document |= members
        if time.monotonic() - self._noted_at > _NOTE_SECONDS:
            self.put()

    def finish(self, reports: Sequence[ImportReport], unknown: Sequence[str]) -> None:
        self.put(
            status="done",
            rows=sum(report.accepted for report in reports),
            rejects=sum(report.reject_count for report in reports),
            done_bytes=self._document["total_bytes"],
            imports=[dataclasses.asdict(report) for report in reports],
            unknown_files=list(unknown),
        )

    @contextmanager
    def until_end(self) -> Generator[None]:
        """Note how an import ends, also if its caller goes away."""
        self.put()
        try:
            yield
        except HeadgateError as error:
            self.put(status="failed", error={"code": error.code, "message": error.message})
            raise
        except Exception:
            message = "A fault in Headgate ended the import; its log has more."
            self.put(status="failed", error={"code": ServerFault.code, "message": message})
            raise
        except BaseException:
            self.put(status="interrupted")
            raise


async def _import(importer: Importer, plan: ImportPlan, notes: _ImportNotes) -> list[ImportReport]:
    """Run one job after the other; progress is that of all of them."""
    notes.put(status="importing", total_bytes=sum(planned.job.total_bytes for planned in plan.imports))
    reports: list[ImportReport] = []

    def show(now: ImportProgress) -> None:
        notes.put_sometimes(
            rows=now.rows + sum(report.accepted for report in reports),
            rejects=now.rejects + sum(report.reject_count for report in reports),
            done_bytes=now.done_bytes + sum(report.done_bytes for report in reports),
        )

    for planned in plan.imports:
        reports.append(await importer.run(planned.job, show))  # noqa: PERF401 - what is done counts meanwhile
    return reports


def _given(directory: Path) -> list[Path]:
    """List the files and folders that the owner gave: each is imported as it would be by itself."""
    return sorted(directory.iterdir())


async def _previewed(plan: ImportPlan) -> dict[str, Any]:
    imports = [planned.document(await asyncio.to_thread(planned.preview)) for planned in plan.imports]
    return {"object": "import_preview", "imports": imports, "unknown_files": list(plan.unknown)}


async def _receive(
    path: Path, content: AsyncIterator[bytes], show: Callable[[int], None] = lambda _: None
) -> None:
    """Store a file as it arrives."""
    try:
        make_private_directory(path.parent)
        file = os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise StorageFull from None
        message = "The files cannot be stored here under their names."
        raise InvalidRequest(message, hint="Rename them.") from None
    received = checked_at = 0
    with file:
        async for piece in content:
            await asyncio.to_thread(file.write, piece)
            received += len(piece)
            if received - checked_at >= _CHECK_BYTES:
                checked_at = received
                if not has_room(path.parent):
                    raise StorageFull
            show(received)


def _checked_name(name: str) -> str:
    if not name or len(name) > _MAX_NAME or name.startswith(".") or not _SEPARATORS.isdisjoint(name):
        raise InvalidRequest("file_name must be the name of a file, without directories.", param="file_name")
    if not is_plain(name):
        raise InvalidRequest("file_name must be plain text.", param="file_name")
    return name


def _checked_id(text: str | None) -> str:
    if text is None:
        return f"imp_{secrets.token_hex(8)}"
    if not _IMPORT_ID.fullmatch(text):
        raise InvalidRequest("import_id must have 8 to 64 letters, digits, - or _.", param="import_id")
    return text


def _member(path: str, taken: set[str]) -> str:
    """Make a path of one that a browser sent: inside of the upload, and not there yet."""
    steps = [step for step in path.replace("\\", "/").split("/") if step not in {"", ".", ".."}]
    plain = "/".join(steps) or "file"
    number, member = 1, plain
    while member in taken:
        number, member = number + 1, f"{number}-{plain}"
    taken.add(member)
    return member


def _changed_at(path: Path, *, if_gone: float) -> float:
    """Return when a file was last changed, in seconds; another process may have removed it meanwhile."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return if_gone


def _lock_of(directory: Path) -> Path:
    """Name the file that a process has locked for as long as it works on an upload."""
    return directory.with_suffix(".lock")


def _is_locked(path: Path) -> bool:
    try:
        handle = open_private(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        lock(handle)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _gone() -> NotFound:
    return NotFound("This upload is gone.", hint="Choose the file again.")
