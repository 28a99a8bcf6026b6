"""Add data: a file is uploaded, recognised and previewed, and imported when the owner says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, cast

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from headgate.auth.sessions import check_form, check_site
from headgate.console.pages import Frame, OwnerRequest, View, fetch_site, page, part, see_other
from headgate.errors import HeadgateError, InvalidRequest, ResourceLimit
from headgate.model.ids import is_plain
from headgate.sources.formats.values import MADE_KEY
from headgate.sources.unknown import summary
from headgate.sources.uploads import Uploads
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_PATH = "/console/add"
_MOST_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_REJECTS_SHOWN = 20
_MOST_FILES = 2000
#: What is shown of an import that ended; one that is not here goes on.
_ENDED = {
    "done": "",
    "failed": "The import failed.",
    "interrupted": "The import was interrupted. Add the file again: what is in already stays as it is.",
}
#: What a page of adding data shows before there is a file.
_FIRST_STEP = {
    "upload_id": "", "file_name": "", "found": (), "unknown": (), "is_done": False, "problem": "", "running": None, "imports": ()
}  # fmt: skip
_COLUMNS_SHOWN = 6
_ROWS_SHOWN = 3
_CELL_CHARS = 60
_TOP_CHARS = 100


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Ask for a file, and list the imports of the last day."""
    return _page(request, imports=latest_imports(console))


def latest_imports(console: Services) -> tuple[View, ...]:
    """Describe the imports of the last day: how far those that run are, and what came of the others."""
    return tuple(
        View(
            file_name=note["file_name"],
            path=f"{_PATH}/{note['import_id']}/progress",
            status=note["status"],
            is_running=note["status"] not in _ENDED,
            percent=_percent(note),
            records=note["rows"],
            rejects=note["rejects"],
        )
        for note in console.uploads.latest()
    )


def _percent(note: Mapping[str, Any]) -> int:
    return 100 * note["done_bytes"] // max(note["total_bytes"], 1)


async def upload(console: Services, request: OwnerRequest) -> HttpReply:
    """Take files in, and go on to their preview."""
    check_site(fetch_site(request.web))
    try:
        form = await Request(request.web.scope, _limited(request.web.receive)).form(
            max_files=_MOST_FILES, max_fields=5
        )
    except MultiPartException:
        raise InvalidRequest("The upload cannot be read.", hint="Choose the file again.") from None
    try:
        check_form(request.session, str(form.get("form_key", "")), fetch_site(request.web))
        files = [
            file
            for file in form.getlist("file")
            if isinstance(file, UploadFile) and _is_content(file.filename)
        ]
        if not files:
            return _page(request, problem="Choose a file or a folder first.", status=400)
        upload_id = await _store(console.uploads, files)
    except HeadgateError as error:
        return _page(request, problem=f"{error.message} {error.hint}", status=error.status)
    finally:
        await form.close()
    return see_other(f"{_PATH}/{upload_id}")


async def preview(console: Services, request: OwnerRequest) -> HttpReply:
    """Show what a file would bring."""
    upload_id = request.places["upload_id"]
    name = console.uploads.waiting_name(upload_id)
    try:
        body = await console.uploads.preview(upload_id)
    except HeadgateError as error:
        console.uploads.remove(upload_id)
        return _page(request, problem=f"{error.message} {error.hint}", status=error.status)
    imports = tuple(_previewed(recognised) for recognised in body["imports"])
    return _page(
        request,
        upload_id=upload_id,
        file_name=name,
        found=imports,
        unknown=tuple(summary(body["unknown_files"])),
    )


async def bring_in(console: Services, request: OwnerRequest) -> HttpReply:
    """Import a file that was previewed."""
    form = await request.form()
    upload_id = request.places["upload_id"]
    if form.get("do") == "discard":
        console.uploads.remove(upload_id)
        return see_other(_PATH)
    named = form.get("display_name").strip() or None
    await console.uploads.start(upload_id, named)
    return see_other(f"{_PATH}/{upload_id}/progress")


async def progress(console: Services, request: OwnerRequest) -> HttpReply:
    """Show how far an import is, and at its end what came in."""
    upload_id = request.places["upload_id"]
    body = console.uploads.progress(upload_id)
    ended = _ENDED.get(body["status"])
    error = cast("Mapping[str, str]", body["error"] or {})
    view = View(
        upload_id=upload_id,
        file_name=body["file_name"],
        found=tuple(_imported(imported) for imported in body["imports"]),
        unknown=tuple(summary(body["unknown_files"])),
        is_done=body["status"] == "done",
        problem=error.get("message", "") or ended or "",
        running=None if ended is not None else View(percent=_percent(body), records=body["rows"]),
    )
    if request.is_partial:
        return part("progress.html", request, view)
    return page("add.html", Frame("Add data", request, "add"), view)


def _is_content(name: str | None) -> bool:
    """Return whether a name is of a file that a person means; systems put hidden ones into every folder."""
    return bool(name) and not PurePosixPath(name or "").name.startswith(".")


async def _store(uploads: Uploads, files: Sequence[UploadFile]) -> str:
    paths = [(file.filename or "").replace("\\", "/") for file in files]
    if len(files) == 1:
        name = PurePosixPath(paths[0]).name
        return await uploads.add(name, [(name, _pieces(files[0]))])
    tops = list(dict.fromkeys(_top(path) for path in paths))
    name = tops[0] if len(tops) == 1 else f"{tops[0]} and {len(tops) - 1} more"
    pairs = [(path, _pieces(file)) for path, file in zip(paths, files, strict=True)]
    return await uploads.add(name, pairs)


def _top(path: str) -> str:
    """Name the folder of a path, or the file itself; for people."""
    first = path.lstrip("./").partition("/")[0]
    return first[:_TOP_CHARS] if first and is_plain(first) else "files"


def _page(request: OwnerRequest, *, status: int = 200, **values: object) -> HttpReply:
    return page("add.html", Frame("Add data", request, "add"), View(**_FIRST_STEP | values), status=status)


async def _pieces(file: UploadFile) -> AsyncIterator[bytes]:
    while piece := await file.read(_PIECE_BYTES):
        yield piece


def _limited(receive: Receive) -> Receive:
    left = _MOST_BYTES

    async def count() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise ResourceLimit(
                "A file has at most 1 GB here.", hint="Use 'headgate import' for larger ones."
            )
        return message

    return count


def _previewed(recognised: Mapping[str, Any]) -> View:
    streams = tuple(_sampled(stream) for stream in recognised["streams"])
    return View(
        title=recognised["display_name"],
        source=recognised["source"],
        streams=streams,
        rejects=_rejects(recognised),
        reject_count=len(recognised["rejects"]),
        failure="",
        connection_id="",
    )


def _sampled(stream: Mapping[str, Any]) -> View:
    # A key that was made from the values of a row says nothing to a person.
    ordered = sorted((column["name"] for column in stream["columns"]), key=lambda name: name == MADE_KEY)
    columns = tuple(ordered[:_COLUMNS_SHOWN])
    rows = (tuple(_cell(row.get(name)) for name in columns) for row in stream["rows"][:_ROWS_SHOWN])
    return View(
        name=stream["label"] or stream["stream"], records=None, known=0, columns=columns, rows=tuple(rows)
    )


def _imported(imported: Mapping[str, Any]) -> View:
    streams = tuple(
        View(name=name, records=count["added"], known=count["known"], columns=(), rows=())
        for name, count in imported["streams"].items()
    )
    return View(
        title=imported["display_name"],
        # The key of a table has the columns' digest behind the name of its source.
        source=imported["connector_key"].partition("-")[0],
        streams=streams,
        rejects=_rejects(imported),
        reject_count=imported["reject_count"],
        failure=imported["failure"],
        connection_id=imported["connection_id"],
    )


def _rejects(report: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{reject['place']}: {reject['reason']}" for reject in report["rejects"][:_REJECTS_SHOWN])


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CELL_CHARS else text[: _CELL_CHARS - 1] + "…"
