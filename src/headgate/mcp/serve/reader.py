"""The parts that every tool needs: the port it reads through, the names of things, the server's address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.mcp.serve.handles import HandleMaker, record_url
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.reference import RecordRef
from headgate.model.wire import ChildrenBody, HitBody, RecordBody
from headgate.reading.port import ReadAnswer, ResourceServer
from headgate.text.ladder import Handles, Known, Lengths, Windows
from headgate.text.quote import UNTRUSTED


class Reader(msgspec.Struct, frozen=True):
    """The parts that serve one access; made for a call, or for a process on stdio."""

    port: ResourceServer
    handles: HandleMaker
    #: The resource server's address as clients know it, without a slash at its end.
    provider_url: str
    #: The id of the request, where it has one before it is answered.
    request_id: str | None = None
    #: What the resource server reads in windows. Answers offer no other windows.
    windows: Windows = Windows.JSON

    def naming(self, ref: RecordRef) -> Handles:
        """Name the parts of a record."""
        return Handles(
            self.handles.result_id(ref),
            lambda path: self.handles.window_uri(ref, path, {"offset_chars": 0}),
            lambda blob: self.handles.blob_uri(blob, ref.connection_id),
            self.windows,
        )

    def url(self, ref: RecordRef) -> str:
        """Return a record's address."""
        return record_url(self.provider_url, ref)

    def structured(self, data: Mapping[str, Any] | msgspec.Raw, answer: ReadAnswer) -> dict[str, Any]:
        """Put a body into the structure that most answers share."""
        return {"data": data, "provider_url": self.provider_url, "request_id": answer.request_id}

    def fenced(self, data: Mapping[str, Any] | msgspec.Raw, answer: ReadAnswer) -> dict[str, Any]:
        """Put a body that holds record text into the structure, and say there what it is."""
        return {**UNTRUSTED, **self.structured(data, answer)}


def ref_of(row: RecordBody) -> RecordRef:
    """Read which record a row is."""
    return _ref(row.get("connection_id"), row.get("stream"), row.get("id"))


def ref_of_hit(hit: HitBody) -> RecordRef:
    """Read which record a hit is; its stream is empty if it is none."""
    return _ref(hit.get("connection_id"), hit.get("stream"), hit.get("record_key"))


def _ref(connection: Any, stream: Any, record: Any) -> RecordRef:
    # Another server can leave out any of them.
    return RecordRef(
        ConnectionId(connection) if isinstance(connection, str) else None,
        StreamName("" if stream is None else str(stream)),
        RecordId("" if record is None else str(record)),
    )


def take_lengths(row: RecordBody) -> Lengths:
    """Take the true lengths of cut texts out of a row, where the port put them."""
    previews = row.pop("previews", {})
    return {
        path: Known(known["size_chars"], known.get("digest"), known.get("mime_type"))
        for path, known in previews.items()
    }


def expanded_of(row: RecordBody) -> dict[str, RecordBody | ChildrenBody | None]:
    """Return the related records of a row; a relation that is written in no known way has none."""
    expanded: Any = row.get("expanded")
    if not isinstance(expanded, dict):
        return {}
    relations = cast("dict[str, Any]", expanded)
    return {
        name: cast("RecordBody | ChildrenBody", value) if isinstance(value, dict) else None
        for name, value in relations.items()
    }


def related_rows(related: RecordBody | ChildrenBody | None) -> list[RecordBody]:
    """Return the records of a relation to many, or the one of a relation to one."""
    if related is None:
        return []
    if related.get("object") == "list":
        return cast("ChildrenBody", related).get("data", [])
    return [cast("RecordBody", related)]
