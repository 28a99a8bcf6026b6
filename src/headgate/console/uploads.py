"""Add data: a file is uploaded, recognised and previewed, and imported when the owner says so."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive

from headgate.auth.sessions import check_form, check_site
from headgate.console.pages import Frame, OwnerRequest, fetch_site, page, see_other
from headgate.console.services import ConsoleServices
from headgate.errors import HeadgateError, InvalidRequest, ResourceLimit
from headgate.sources.intake import Upload
from headgate.web.replies import HttpReply

_PATH = "/console/add"
_MOST_BYTES = 1024 * 1024 * 1024
_PIECE_BYTES = 256 * 1024
_REJECTS_SHOWN = 20
_COLUMNS_SHOWN = 6
_ROWS_SHOWN = 3
_CELL_CHARS = 60


@dataclass(frozen=True, slots=True)
class StreamSample:
    """What a file brings to one stream: how many records, or its first rows."""

    name: str
    records: int | None
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FoundImport:
    """One source that was recognised, or that came in."""

    title: str
    source: str
    streams: tuple[StreamSample, ...]
    rejects: tuple[str, ...]
    failure: str = ""
    connection_id: str = ""


@dataclass(frozen=True, slots=True)
class AddView:
    """A step of adding data."""

    upload_id: str = ""
    file_name: str = ""
    found: tuple[FoundImport, ...] = ()
    unknown: tuple[str, ...] = ()
    is_done: bool = False
    problem: str = ""


async def show(_console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Ask for a file."""
    return _page(asked, AddView())


async def upload(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Take a file in, and go on to its preview."""
    check_site(fetch_site(asked.request))
    request = asked.request
    try:
        form = await Request(request.scope, _limited(request.receive)).form(max_files=1, max_fields=5)
    except MultiPartException:
        raise InvalidRequest("The upload cannot be read.", hint="Choose the file again.") from None
    try:
        check_form(asked.session, str(form.get("form_key", "")), fetch_site(request))
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            return _page(asked, AddView(problem="Choose a file first."), status=400)
        upload_id = await console.uploads.add(file.filename, _pieces(file))
    finally:
        await form.close()
    return see_other(f"{_PATH}/{upload_id}")


async def preview(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show what a file would bring."""
    upload_id = asked.places["upload_id"]
    name = console.uploads.name(upload_id)
    try:
        body = await console.intake.import_file(
            Upload(name, is_dry_run=True), console.uploads.content(upload_id)
        )
    except HeadgateError as error:
        console.uploads.remove(upload_id)
        return _page(asked, AddView(problem=f"{error.message} {error.hint}"), status=error.status)
    found = tuple(_previewed(one) for one in body["imports"])
    return _page(asked, AddView(upload_id, name, found, tuple(body["unknown_files"])))


async def bring_in(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Import a file that was previewed."""
    form = await asked.form()
    upload_id = asked.places["upload_id"]
    name = console.uploads.name(upload_id)
    if form.get("do") == "discard":
        console.uploads.remove(upload_id)
        return see_other(_PATH)
    named = form.get("display_name").strip() or None
    body = await console.intake.import_file(
        Upload(name, display_name=named), console.uploads.content(upload_id)
    )
    console.uploads.remove(upload_id)
    found = tuple(_imported(one) for one in body["imports"])
    return _page(asked, AddView("", name, found, tuple(body["unknown_files"]), is_done=True))


def _page(asked: OwnerRequest, view: AddView, *, status: int = 200) -> HttpReply:
    return page("add.html", Frame("Add data", asked, "add"), view, status=status)


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


def _previewed(one: Mapping[str, Any]) -> FoundImport:
    streams = [
        StreamSample(
            stream["label"] or stream["stream"],
            None,
            tuple(column["name"] for column in stream["columns"][:_COLUMNS_SHOWN]),
            tuple(
                tuple(_cell(row.get(column["name"])) for column in stream["columns"][:_COLUMNS_SHOWN])
                for row in stream["rows"][:_ROWS_SHOWN]
            ),
        )
        for stream in one["streams"]
    ]
    return FoundImport(one["display_name"], one["source"], tuple(streams), _rejects(one))


def _imported(one: Mapping[str, Any]) -> FoundImport:
    streams = tuple(StreamSample(name, count["accepted"]) for name, count in one["streams"].items())
    return FoundImport(
        one["display_name"],
        one["connector_key"],
        streams,
        _rejects(one),
        one["failure"],
        one["connection_id"],
    )


def _rejects(one: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{reject['place']}: {reject['reason']}" for reject in one["rejects"][:_REJECTS_SHOWN])


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _CELL_CHARS else text[: _CELL_CHARS - 1] + "…"
