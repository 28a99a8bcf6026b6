"""What only the owner may do: declare, connect, bring records in and take them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headgate.errors import InvalidRequest
from headgate.model.ids import ConnectionId, connection_id, connector_key, is_plain, record_id, stream_name
from headgate.model.instants import iso
from headgate.model.record import Connection
from headgate.model.rows import LineError, OnInvalid
from headgate.sources.intake import Push
from headgate.sources.uploads import Upload
from headgate.web.api.calls import Call
from headgate.web.replies import HttpReply, empty_reply, json_reply

_MAX_NAME = 200
_MAX_KEY = 200
_ERRORS_SHOWN = 100


async def declare(call: Call) -> HttpReply:
    """Register a declaration."""
    key = connector_key(call.path["connector_key"])
    declared = await call.services.intake.store.declare(key, await call.document())
    return json_reply(
        {
            "object": "declaration",
            "connector_key": key,
            "version": declared.version,
            "source": {"kind": declared.source_kind, "id": declared.source_id},
            "streams": list(declared.streams),
        }
    )


async def connect(call: Call) -> HttpReply:
    """Add a connection."""
    document = await call.document()
    _only(document, {"connector_key", "display_name"})
    key = connector_key(_text(document, "connector_key"))
    added = await call.services.intake.store.create_connection(key, _name(document.get("display_name", "")))
    return json_reply(_connection(added), 201)


async def connection(call: Call) -> HttpReply:
    return json_reply(_connection(await call.services.intake.connection(_path_connection(call))))


async def rename(call: Call) -> HttpReply:
    """Return a connection another name."""
    document = await call.document()
    _only(document, {"display_name"})
    name = _name(_text(document, "display_name"))
    return json_reply(
        _connection(await call.services.intake.store.rename_connection(_path_connection(call), name))
    )


async def disconnect(call: Call) -> HttpReply:
    """Remove a connection."""
    await call.services.intake.store.delete_connection(_path_connection(call))
    return empty_reply()


async def ingest(call: Call) -> HttpReply:
    """Take records in."""
    stream = stream_name(call.path["stream"])
    key = call.headers.get(b"idempotency-key", b"").decode("latin-1") or None
    if key is not None and (len(key) > _MAX_KEY or not is_plain(key)):
        raise InvalidRequest(f"Idempotency-Key must be plain text of up to {_MAX_KEY} characters.")
    on_invalid = OnInvalid(call.given.get("on_invalid") or OnInvalid.REJECT)
    where = Push(call.needed_connection(), stream, key, on_invalid)
    report = await call.services.intake.push(where, call.pieces())
    body: dict[str, Any] = {
        "stream": stream,
        "records_accepted": report.accepted,
        "records_rejected": report.rejected,
    }
    if on_invalid is OnInvalid.KEEP:
        body["records_invalid"] = len(report.invalid)
    if report.errors:
        body |= _lines("errors", report.errors)
    if report.invalid:
        body |= _lines("invalid", report.invalid)
    return json_reply(body)


def _lines(name: str, errors: Sequence[LineError]) -> dict[str, Any]:
    listed = errors[:_ERRORS_SHOWN]
    rows = [
        {"index": error.index, "code": error.code, "message": error.message, "pointer": error.pointer}
        for error in listed
    ]
    return {name: rows, f"{name}_truncated": len(listed) < len(errors)}


async def invalid_records(call: Call) -> HttpReply:
    """List the records that were stored although they break their stream's schema."""
    stream = stream_name(call.path["stream"])
    after, limit = _number(call, "after"), _number(call, "limit")
    marked = await call.services.intake.store.marked(
        call.needed_connection(), stream, after=after, limit=limit
    )
    rows = [
        {
            "id": record.id,
            "problems": [{"pointer": each.pointer, "message": each.message} for each in record.problems],
        }
        for record in marked.records
    ]
    return json_reply({"object": "list", "stream": stream, "data": rows, "next_after": marked.next_after})


async def remove(call: Call) -> HttpReply:
    """Remove a record."""
    stream, key = stream_name(call.path["stream"]), record_id(call.path["id"])
    await call.services.intake.remove(call.needed_connection(), stream, key)
    return empty_reply()


async def keep_blob(call: Call) -> HttpReply:
    """Keep a file."""
    media = call.headers.get(b"content-type", b"application/octet-stream").decode("latin-1")
    if len(media) > _MAX_NAME or not is_plain(media):
        raise InvalidRequest("Content-Type cannot be read.")
    blob_id, size = await call.services.intake.store.put_blob(call.pieces(), media)
    body = {
        "object": "blob",
        "blob_id": blob_id,
        "sha256": blob_id.removeprefix("blob_"),
        "size_bytes": size,
        "mime_type": media,
    }
    return json_reply(body, 201)


async def import_file(call: Call) -> HttpReply:
    """Import an export file, or show what it would bring."""
    name: str | None = call.given.get("display_name")
    upload = Upload(
        call.given.get("file_name") or "",
        call.given.get("source"),
        None if name is None else _name(name),
        is_dry_run=call.given.get("dry_run") == "true",
        import_id=call.given.get("import_id"),
    )
    return json_reply(await call.services.uploads.import_file(upload, call.pieces()))


async def import_progress(call: Call) -> HttpReply:
    """Show how far an import is."""
    return json_reply(call.services.uploads.progress(call.path["import_id"]))


async def state(call: Call) -> HttpReply:
    """Show what a collector noted."""
    where = _path_connection(call)
    return json_reply(
        {"object": "state", "connection_id": where, "state": await call.services.intake.state(where)}
    )


async def put_state(call: Call) -> HttpReply:
    """Keep what a collector notes."""
    await call.services.intake.put_state(_path_connection(call), await call.whole_body())
    return await state(call)


def _number(call: Call, name: str) -> int:
    """Return a number that lies within the bounds of its definition."""
    param = next(defined for defined in call.endpoint.params if defined.name == name)
    number, least, most = call.given.get(name), param.least or 0, param.most or 0
    if number is None:
        return param.default or 0
    if not least <= number <= most:
        raise InvalidRequest(f"{name} must lie between {least} and {most}.", param=name)
    return number


def _connection(stored: Connection) -> dict[str, Any]:
    return {
        "object": "connection",
        "connection_id": stored.id,
        "connector_key": stored.connector_key,
        "display_name": stored.display_name,
        "created_at": iso(stored.created_at),
    }


def _path_connection(call: Call) -> ConnectionId:
    return connection_id(call.path["connection_id"])


def _only(document: dict[str, Any], names: set[str]) -> None:
    for name in document.keys() - names:
        raise InvalidRequest(f"Unknown field '{name[:80]}'.", param=name[:80])


def _text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a string.", param=name)
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME or not is_plain(value):
        raise InvalidRequest(
            f"display_name must be plain text of up to {_MAX_NAME} characters.", param="display_name"
        )
    return value
