"""The importer: stores what a source reads, and remembers how far it came.

Reading is waited for in a thread and is one part ahead of storing, so that memory is bounded and the event loop stays
free. A mark is stored after everything before it is, so an interrupted import goes on where it was; what is read again is
stored already and changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName, connector_key
from headgate.model.instants import iso
from headgate.model.plan import Reach
from headgate.model.record import Connection
from headgate.model.rows import Batch, ShelfSummary
from headgate.sources.coverage import ImportedStream, noted
from headgate.sources.formats.values import digest_of
from headgate.sources.parts import ImportPart, ReadLine, most_stored_bytes, parts, renamed, within
from headgate.sources.protocol import Covered, Item, Mark, Recognised, Reject, Source

if TYPE_CHECKING:
    from headgate.store.engines.store import Store

#: How many rejects a report lists; the others are counted.
MAX_REJECTS = 1000
_STATE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What is read and where it goes; can be sent to another process."""

    connector_key: ConnectorKey
    #: With the connector's key it names the connection: the same names twice are the same connection.
    display_name: str
    document: Mapping[str, Any]
    #: The connector's key of files like these in an older form, if it was another, and their older names.
    older_key: ConnectorKey | None = field(default=None, kw_only=True)
    older_names: Sequence[str] = field(default=(), kw_only=True)
    #: The form of a new connection.
    form: int = field(default=1, kw_only=True)
    total_bytes: int = field(default=0, kw_only=True)
    #: Of the files; marks of other files are not used. None: an account, whose marks hold for ever.
    fingerprint: str | None = field(default=None, kw_only=True)
    #: How much may be stored of it; None: an account, of which each part is bounded.
    most_bytes: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ImportJob(JobFacts):
    """An import that can be run."""

    #: Reads from the marks of the last run on, in the connection's form of names.
    read: Callable[[Mapping[str, Any], int], Iterator[Item | ImportPart]]
    #: What else is stored with the connection, such as the settings of an account.
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    #: Ends reading that is under way in another thread.
    end: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class StreamCount:
    accepted: int
    #: Records that were not there before.
    added: int
    #: Records that an account no longer has.
    removed: int = 0
    #: Records that were there before, of those that were read; several rows may be of one.
    known: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str
    streams: Mapping[str, StreamCount]
    rejects: Sequence[Reject]
    reject_count: int
    done_bytes: int
    attachment_count: int
    is_resumed: bool
    #: Why reading ended before the end of the files; empty if it did not.
    failure: str = ""

    @property
    def accepted(self) -> int:
        return sum(stream.accepted for stream in self.streams.values())


@dataclass(frozen=True, slots=True)
class ImportProgress:
    rows: int
    rejects: int
    done_bytes: int
    total_bytes: int


def job_of(
    source: Source,
    recognised: Recognised,
    *,
    document: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> ImportJob:
    """Plan the import of what a source has recognised; it may read the files to know what they hold."""
    recognised = source.prepared(recognised)
    key = "-".join(part for part in (source.name, recognised.variant) if part)
    older = recognised.older_variant
    files = [[file.name, file.size_bytes, file.modified_at] for file in recognised.files]
    total_bytes = sum(file.size_bytes for file in recognised.files)

    def read(resume: Mapping[str, Any], form: int) -> Iterator[Item | ImportPart]:
        items = source.read(replace(recognised, form=form), resume)
        return renamed(items, source.plain) if 0 < source.plain_form <= form else items

    return ImportJob(
        connector_key(key),
        name or recognised.title,
        source.declare(recognised) if document is None else document,
        read,
        older_key=connector_key(f"{source.name}-{older}") if older else None,
        older_names=() if name else recognised.older_titles,
        form=recognised.form,
        total_bytes=total_bytes,
        fingerprint=digest_of(files),
        most_bytes=most_stored_bytes(total_bytes),
    )


async def connection_of(store: Store, job: ImportJob) -> Connection | None:
    """Find the connection that a job would fill, if there is one already."""
    every = {
        (known.display_name, known.connector_key): known for known in reversed(await store.connections())
    }
    names = (job.display_name, *job.older_names)
    keys = [key for key in (job.connector_key, job.older_key) if key is not None]
    return next((every[name, key] for name in names for key in keys if (name, key) in every), None)


async def raw_state(store: Store, connection: Connection) -> dict[str, Any]:
    """Read the document that is stored with a connection; empty if it has none, or a collector stored something else."""
    stored = await store.state(connection.id)
    document: Any = None if stored is None else msgspec.json.decode(stored)
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


class Importer:
    __slots__ = ("_clock", "_store")

    def __init__(self, store: Store, *, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock

    async def connection(self, job: ImportJob) -> Connection | None:
        return await connection_of(self._store, job)

    async def has_run(self, job: ImportJob) -> bool:
        """Return whether the last import into the job's connection read these very files to their end."""
        connection = await self.connection(job)
        state = {} if connection is None else await raw_state(self._store, connection)
        earlier: dict[str, Any] = state.get("import") or {}
        return earlier.get("of") == job.fingerprint and "finished_at" in earlier

    async def run(self, job: ImportJob, show: Callable[[ImportProgress], None] | None = None) -> ImportReport:
        """Read everything and store it; declares the source and adds the connection where they are missing."""
        connection = await self.connection(job)
        if connection is None or connection.connector_key == job.connector_key:
            await self._store.declare(job.connector_key, job.document)
        if connection is None:
            connection = await self._store.create_connection(job.connector_key, job.display_name)
        work = _Import(self._store, self._clock, job, connection)
        await work.prepare()
        async with _reading(job, work.resume, work.form) as read_part:
            try:
                await work.store_all(read_part, show)
            finally:
                # Also when it is interrupted: the next run begins here.
                await work.put_state(is_finished=False)
        if not work.failure:
            work.note_nothing()
            await work.note_coverage()
            await work.put_state(is_finished=True)
        return await work.report()


_ReadPart = Callable[[], "asyncio.Future[ImportPart | None]"]


@asynccontextmanager
async def _reading(job: ImportJob, resume: Mapping[str, Any], form: int) -> AsyncGenerator[_ReadPart]:
    """Read in one thread, where the source opens its files and closes them again."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1, thread_name_prefix="headgate-import")
    source: list[Iterator[Item | ImportPart]] = []

    def opened() -> Iterator[ImportPart]:
        source.append(job.read(resume, form))
        read_parts = parts(source[0])
        yield from (
            read_parts if job.most_bytes is None else within(job.most_bytes, read_parts, job.display_name)
        )

    read = opened()

    def close() -> None:
        for iterator in (read, *source):
            end = getattr(iterator, "close", None)
            if end is not None:
                end()

    def next_part() -> asyncio.Future[ImportPart | None]:
        return loop.run_in_executor(executor, lambda: next(read, None))

    try:
        yield next_part
    except BaseException:
        # The thread may be waiting for a file that takes long.
        job.end()
        raise
    finally:
        await loop.run_in_executor(executor, close)
        executor.shutdown()


class _Import:
    def __init__(
        self, store: Store, clock: Callable[[], int], job: ImportJob, connection: Connection
    ) -> None:
        self._store = store
        self._clock = clock
        self._job = job
        self._connection = connection
        self._state: dict[str, Any] = {}
        self._counts_before: dict[str, int] = {}
        self._accepted: dict[str, int] = {}
        self._removed: dict[str, int] = {}
        self._rejects: list[Reject] = []
        self._reject_count = 0
        self._attachment_count = 0
        self._covered: list[Covered] = []
        self._began_at = clock()
        self._done_bytes: dict[str, int] = {}
        self._state_at = time.monotonic()
        self._streams = [str(stream["name"]) for stream in job.document["streams"]]
        self._keys = {stream["name"]: stream["primary_key"] for stream in job.document["streams"]}
        self.resume: dict[str, Any] = {}
        self.form = 1
        self.is_resumed = False
        self.failure = ""

    async def prepare(self) -> None:
        """Look up where the last run ended, and what is there already."""
        self._state = await raw_state(self._store, self._connection)
        earlier: dict[str, Any] = self._state.get("import") or {}
        if earlier.get("of") == self._job.fingerprint:
            self.resume = dict(earlier.get("resume") or {})
        self.is_resumed = bool(self.resume) and self._job.fingerprint is not None
        self._counts_before = await self._counts()
        is_new = not self._state and not any(self._counts_before.values())
        self.form = int(self._state.get("form", self._job.form if is_new else 1))

    async def store_all(self, read_part: _ReadPart, show: Callable[[ImportProgress], None] | None) -> None:
        """Store part by part, while the next one is read."""
        waiting = read_part()
        while (part := await waiting) is not None:
            waiting = read_part()
            await self._store_part(part)
            if show is not None:
                show(self._progress())

    async def _store_part(self, part: ImportPart) -> None:
        for attachment in part.attachments:
            await self._store.put_blob(once(attachment.content), attachment.mime_type)
        self._attachment_count += len(part.attachments)
        self._add_rejects(part.rejects)
        await asyncio.gather(*(self._store_lines(name, lines) for name, lines in part.lines.items()))
        for name, removals in part.removals.items():
            await self._remove(name, removals)
        self._take_marks(part.marks)
        self._covered.extend(part.covered)
        if part.failure:
            self.failure = part.failure
        if time.monotonic() - self._state_at > _STATE_SECONDS:
            await self.put_state(is_finished=False)

    async def _store_lines(self, stream: str, lines: Sequence[ReadLine]) -> None:
        batch = Batch(self._connection.id, StreamName(stream), [line.line for line in lines], self._clock())
        report = await self._store.ingest(batch)
        self._accepted[stream] = self._accepted.get(stream, 0) + report.accepted
        self._add_rejects(
            [
                Reject(
                    lines[error.index].place or self._name_of(stream, lines[error.index].line), _reason(error)
                )
                for error in report.errors
            ]
        )

    async def _remove(self, stream: str, removals: Sequence[ReadLine]) -> None:
        before = await self._counts()
        lines = [removal.line for removal in removals]
        await self._store.ingest(Batch(self._connection.id, StreamName(stream), lines, self._clock()))
        gone = before[stream] - (await self._counts())[stream]
        self._removed[stream] = self._removed.get(stream, 0) + gone

    def _name_of(self, stream: str, line: bytes) -> str:
        data: dict[str, Any] = msgspec.json.decode(line)["data"]
        key = " ".join(str(data.get(name)) for name in self._keys.get(stream, ()))
        return f"{stream} {key}"

    def _add_rejects(self, rejects: Sequence[Reject]) -> None:
        self._reject_count += len(rejects)
        self._rejects.extend(rejects[: MAX_REJECTS - len(self._rejects)])

    def note_nothing(self) -> None:
        """Report files of which nothing was read; an account may have nothing new."""
        has_read = any(self._accepted.values()) or self._reject_count or self.is_resumed
        if self._job.fingerprint is not None and not has_read:
            self._add_rejects([Reject(self._job.display_name, "Nothing in it could be read.")])

    async def note_coverage(self) -> None:
        """Note the periods that were read whole, of streams in which anything changed: others cannot show it."""
        summaries = {summary.stream: summary for summary in await self._summaries()}
        for name in self._streams:
            summary = summaries.get(StreamName(name))
            if summary is None or (summary.seen_at or 0) < self._began_at:
                continue
            imported = ImportedStream(
                [covered for covered in self._covered if covered.stream == name],
                has_rows=bool(self._accepted.get(name)),
                had_rows=bool(self._counts_before.get(name)),
                has_rejects=bool(self._reject_count),
                began_at=self._began_at,
                complete_at=self._clock(),
            )
            self._state = noted(self._state, name, imported)

    def _take_marks(self, marks: Mapping[str, Mark]) -> None:
        for name, mark in marks.items():
            self.resume[name] = mark.resume
            self._done_bytes[name] = mark.done_bytes

    def _progress(self) -> ImportProgress:
        rows, done = sum(self._accepted.values()), sum(self._done_bytes.values())
        return ImportProgress(rows, self._reject_count, done, self._job.total_bytes)

    async def put_state(self, *, is_finished: bool) -> None:
        """Store the marks; those of files that are read to their end are forgotten."""
        self._state_at = time.monotonic()
        is_done_with = is_finished and self._job.fingerprint is not None
        imported: dict[str, Any] = {"resume": {} if is_done_with else self.resume}
        if self._job.fingerprint is not None:
            imported["of"] = self._job.fingerprint
        if is_finished:
            imported["finished_at"] = iso(self._clock())
        self._state = {**self._state, **self._job.notes, "form": self.form, "import": imported}
        await self._store.put_state(self._connection.id, msgspec.json.encode(self._state))

    async def report(self) -> ImportReport:
        after = await self._counts()
        counts: dict[str, StreamCount] = {}
        for name in self._streams:
            accepted, before = self._accepted.get(name, 0), self._counts_before[name]
            removed = self._removed.get(name, 0)
            added = after[name] - before + removed
            counts[name] = StreamCount(accepted, added, removed, min(accepted - added, before))
        return ImportReport(
            self._connection.id,
            self._connection.connector_key,
            self._connection.display_name,
            counts,
            tuple(self._rejects),
            self._reject_count,
            sum(self._done_bytes.values()),
            self._attachment_count,
            self.is_resumed,
            self.failure,
        )

    async def _summaries(self) -> Sequence[ShelfSummary]:
        reaches = [
            Reach(StreamName(name), (self._connection.id,), (), with_hidden=True) for name in self._streams
        ]
        return await self._store.summaries(reaches)

    async def _counts(self) -> dict[str, int]:
        counts = {summary.stream: summary.record_count for summary in await self._summaries()}
        return {name: counts.get(StreamName(name), 0) for name in self._streams}


def _reason(error: Any) -> str:
    field_name = error.pointer.removeprefix("/data/")
    return f"{field_name}: {error.message}" if field_name else error.message


async def once(content: bytes) -> AsyncGenerator[bytes]:
    yield content
