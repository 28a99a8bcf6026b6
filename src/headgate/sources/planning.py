"""Decide what of some trees becomes which import, and show what it would bring, before anything is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NoReturn

import msgspec

from headgate.errors import InvalidRequest
from headgate.sources.importing import ImportJob, job_of
from headgate.sources.inputs.archives import is_archive
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.parts import ImportPart, line_of, most_stored_bytes
from headgate.sources.protocol import FileQuestion, Item, Recognised, Reject, Row, Source
from headgate.sources.unknown import advice, summary

PREVIEW_ROWS = 5
#: How much is read to find rows of every stream.
_ITEMS_MOST = 2000


@dataclass(frozen=True, slots=True)
class PreviewColumn:
    """One field of a stream, as it is declared."""

    name: str
    type: str
    #: What the field is used for: key, time, title, search, groups.
    roles: Sequence[str]


@dataclass(frozen=True, slots=True)
class StreamPreview:
    """One stream with its columns and its first rows."""

    stream: str
    label: str
    columns: Sequence[PreviewColumn]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """What the beginning of the files holds."""

    streams: Sequence[StreamPreview]
    rejects: Sequence[Reject]


def preview(job: ImportJob) -> ImportPreview:
    streams: Sequence[Mapping[str, Any]] = job.document["streams"]
    rows: dict[str, list[Mapping[str, Any]]] = {stream["name"]: [] for stream in streams}
    rejects: list[Reject] = []
    items = job.read({}, job.form)
    try:
        _collect(items, rows, rejects)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
    return ImportPreview(
        [_stream_preview(declared, rows[declared["name"]]) for declared in streams], rejects[:PREVIEW_ROWS]
    )


def preview_without_rows(document: Mapping[str, Any], reject: Reject) -> ImportPreview:
    """Make the preview of files of which nothing can be read."""
    return ImportPreview([_stream_preview(stream, ()) for stream in document["streams"]], [reject])


def _collect(
    items: Iterator[Item | ImportPart], rows: Mapping[str, list[Mapping[str, Any]]], rejects: list[Reject]
) -> None:
    for item in islice(items, _ITEMS_MOST):
        if isinstance(item, Reject):
            rejects.append(item)
        elif isinstance(item, Row) and len(rows[item.stream]) < PREVIEW_ROWS:
            rows[item.stream].append(msgspec.json.decode(line_of(item))["data"])
            if all(len(some) == PREVIEW_ROWS for some in rows.values()):
                return


def _stream_preview(stream: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> StreamPreview:
    properties: dict[str, dict[str, Any]] = stream["schema"]["properties"]
    columns = [
        PreviewColumn(name, _type(schema), _roles(stream, name, schema))
        for name, schema in properties.items()
    ]
    display: dict[str, str] = stream.get("display") or {}
    return StreamPreview(stream["name"], display.get("label") or stream["name"], columns, rows)


def _type(schema: Mapping[str, Any]) -> str:
    if "format" in schema:
        return str(schema["format"])
    types: Any = schema.get("type", "any")
    names: list[str] = [types] if isinstance(types, str) else list(types)
    return " or ".join(name for name in names if name != "null")


def _roles(stream: Mapping[str, Any], name: str, schema: Mapping[str, Any]) -> list[str]:
    query: dict[str, Any] = stream.get("query") or {}
    aggregations: dict[str, Any] = query.get("aggregations") or {}
    search: dict[str, Any] = query.get("search") or {}
    roles = {
        "key": name in stream["primary_key"],
        "time": name == stream.get("consent_time_field"),
        "title": schema.get("x_pdpp_role") == "primary-title",
        "search": name in search.get("lexical_fields", ()),
        "groups": name in aggregations.get("group_by", ()),
    }
    return [role for role, is_held in roles.items() if is_held]


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """Files that a source has recognised, and the job that reads them."""

    source: str
    #: Their names.
    files: Sequence[str]
    job: ImportJob
    #: Reads the beginning of the files.
    preview: Callable[[], ImportPreview]
    #: What only the person knows of the files.
    questions: Sequence[FileQuestion] = ()

    def document(self, beginning: ImportPreview) -> dict[str, Any]:
        return {
            "source": self.source,
            "connector_key": self.job.connector_key,
            "display_name": self.job.display_name,
            "files": list(self.files),
            "size_bytes": self.job.total_bytes,
            **dataclasses.asdict(beginning),
        }


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """What will be imported, and the files that will not."""

    imports: Sequence[PlannedImport]
    #: With the reason, where there is one beside that no source recognises the file.
    unknown: Sequence[str]
    #: Whether one of these is damaged, encrypted or otherwise unreadable.
    has_unreadable: bool


_NAMES_SHOWN = 10


def detect(tree: InputTree, among: Sequence[Source]) -> tuple[Recognised, ...]:
    """Decide which source reads which file: the surest one, and of equally sure ones the first.

    A file is read once. Several sources may take parts of one tree, such as an archive of many services.
    """
    every = [recognised for source in among for recognised in source.detect(tree)]
    taken: set[str] = set()
    chosen: list[Recognised] = []
    for recognised in sorted(every, key=lambda recognised: -recognised.certainty):
        left = [file for file in recognised.files if file.name not in taken]
        if left:
            taken |= {file.name for file in left}
            chosen.append(dataclasses.replace(recognised, files=left))
    return tuple(chosen)


def plan_imports(
    trees: Sequence[InputTree],
    among: Mapping[str, Source],
    *,
    name: str | None = None,
    corrections: Mapping[str, Any] | None = None,
    answers: Mapping[str, bool] | None = None,
) -> ImportPlan:
    """Let the sources recognise what is theirs; tables are read once to know their columns."""
    planned: list[PlannedImport] = []
    unknown: list[str] = []
    has_unreadable = False
    for tree in trees:
        finds = detect(tree, list(among.values()))
        read = {file.name for recognised in finds for file in recognised.files}
        left = [file for file in tree.files if file.name not in read]
        unknown += [_named(file) for file in left]
        has_unreadable |= any(file.unreadable for file in left)
        for found in finds:
            source = among[found.source]
            recognised = source.answered(found, answers) if answers else found
            try:
                job = _job(source, recognised, tree, name, corrections)
            except (InvalidRequest, OSError) as error:
                if corrections is not None and isinstance(error, InvalidRequest):
                    raise
                reason = error.message if isinstance(error, InvalidRequest) else error.strerror or str(error)
                unknown += [f"{file.name} ({reason})" for file in recognised.files]
                has_unreadable = True
            else:
                files = [file.name for file in recognised.files]
                questions = source.questions(recognised) if corrections is None else ()
                planned.append(PlannedImport(recognised.source, files, job, partial(preview, job), questions))
    if not planned:
        _refuse(trees, unknown, among)
    return ImportPlan(planned, unknown, has_unreadable)


def _named(file: InputFile) -> str:
    """Name a file that is not read, with the reason where there is a better one than its format."""
    reason = file.unreadable
    if not reason and not file.head:
        reason = "empty"
    if not reason and is_archive(file.name):
        reason = "an archive in a directory; import it by its own path"
    reason = reason or advice(file)
    return f"{file.name} ({reason})" if reason else file.name


def _refuse(trees: Sequence[InputTree], unknown: Sequence[str], among: Mapping[str, Source]) -> NoReturn:
    if not unknown:
        labels = ", ".join(tree.label[:200] for tree in trees)
        raise InvalidRequest(f"There is no file in {labels}.", hint="Give the path of an export.")
    raise InvalidRequest(
        f"No source reads {', '.join(line[:300] for line in summary(unknown)[:_NAMES_SHOWN])}.",
        hint=f"Sources are {', '.join(sorted(among))}.",
    )


def _job(
    source: Source,
    recognised: Recognised,
    tree: InputTree,
    name: str | None,
    corrections: Mapping[str, Any] | None,
) -> ImportJob:
    if corrections is not None:
        recognised = source.corrected(recognised, corrections)
    job = job_of(source, recognised, name=name)
    if tree.packed_bytes is None:
        return job
    # Of an archive the packed size counts: what it unpacks to may be many times that already.
    return dataclasses.replace(job, most_bytes=most_stored_bytes(min(job.total_bytes, tree.packed_bytes)))
