"""What a tool works with: the port it reads through, how things are named, and where the server is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from headgate.mcp.serve.handles import HandleMaker, record_url
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.reference import RecordRef
from headgate.reading.port import ReadAnswer, ResourceServer
from headgate.text.ladder import Handles, Lengths, Windows


class Reader(msgspec.Struct, frozen=True):
    """One access at work; made for a call, or for a process on stdio."""

    port: ResourceServer
    handles: HandleMaker
    #: The resource server's address as clients know it, without a slash at its end.
    provider_url: str
    #: What the request is known by, where it has a name before it is answered.
    request_id: str | None = None
    #: What the resource server reads in windows; nothing else is ever offered.
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
        """Give a record's address."""
        return record_url(self.provider_url, ref)

    def structured(self, data: Mapping[str, Any] | msgspec.Raw, answer: ReadAnswer) -> dict[str, Any]:
        """Put a body into the structure that most answers share."""
        return {"data": data, "provider_url": self.provider_url, "request_id": answer.request_id}


def ref_of(row: Mapping[str, Any], *, key: str = "id") -> RecordRef:
    """Read which record a row or a hit is."""
    connection = row.get("connection_id")
    return RecordRef(
        ConnectionId(connection) if isinstance(connection, str) else None,
        StreamName(str(row.get("stream", ""))),
        RecordId(str(row.get(key, ""))),
    )


def take_lengths(row: dict[str, Any]) -> Lengths:
    """Take the true lengths of cut texts out of a row, where the port put them."""
    previews = cast("Mapping[str, Mapping[str, Any]]", row.pop("previews", None) or {})
    return {path: (known["size_chars"], known.get("digest")) for path, known in previews.items()}
