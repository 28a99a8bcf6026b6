"""A port that answers with prepared bodies and records its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from headgate.auth.keys import KeyRing, RingSealer, SealKey
from headgate.errors import HeadgateError
from headgate.mcp.serve.call import call
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import Outcome
from headgate.model.ids import BlobId, ConnectionId, RequestId, digest_of_key
from headgate.reading.port import BlobAnswer, ReadAnswer

PROVIDER = "https://rs.example"
HANDLES = HandleMaker(RingSealer(KeyRing(SealKey(b"k" * 64))))

Body = Mapping[str, Any]


class CountingPort:
    """Answers every read with what was prepared for it, or fails as prepared."""

    def __init__(self, **answers: Body | HeadgateError | Exception) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Any]] = []
        self.preview_chars: list[int | None] = []

    def _answer(self, name: str, query: Any) -> ReadAnswer:
        self.calls.append((name, query))
        prepared = self.answers[name]
        if isinstance(prepared, Exception):
            raise prepared
        return ReadAnswer(msgspec.json.encode(prepared), RequestId("req_1"))

    async def schema(self, query: Any) -> ReadAnswer:
        return self._answer("schema", query)

    async def streams(self, connection_id: Any = None) -> ReadAnswer:
        return self._answer("streams", connection_id)

    async def stream(self, name: Any, connection_id: Any = None) -> ReadAnswer:
        return self._answer("stream", (name, connection_id))

    async def records(
        self, query: Any, *, preview_chars: int | None = None, page_bytes: int | None = None
    ) -> ReadAnswer:
        assert page_bytes is not None
        self.preview_chars.append(preview_chars)
        return self._answer("records", query)

    async def record(self, query: Any, *, preview_chars: int | None = None, show: Any = None) -> ReadAnswer:
        self.preview_chars.append(preview_chars)
        answer = self._answer("record", query)
        if show is not None:
            show(answer)
        return answer

    async def window(self, query: Any) -> ReadAnswer:
        return self._answer("window", query)

    async def aggregate(self, query: Any, **_form: Any) -> ReadAnswer:
        return self._answer("aggregate", query)

    async def search(
        self, query: Any, *, line_chars: int | None = None, page_bytes: int | None = None
    ) -> ReadAnswer:
        assert page_bytes is not None
        self.preview_chars.append(line_chars)
        return self._answer("search", query)

    async def blob(self, query: Any, *, start: int = 0, end: int | None = None) -> BlobAnswer:
        self.calls.append(("blob", query))
        content: bytes = self.answers["blob"]["content"]  # type: ignore[assignment, index] - prepared as such

        async def pieces() -> AsyncIterator[bytes]:
            asked = content[start:end]
            yield asked[:3]
            yield asked[3:]

        return BlobAnswer(
            BlobId(query.blob_id),
            ConnectionId("cin_a"),
            "image/png",
            len(content),
            pieces(),
            lambda _start, _end: pieces(),
            RequestId("req_1"),
        )


def reader(port: CountingPort) -> Reader:
    return Reader(port, HANDLES, PROVIDER)


def names_the_key(place: Any, key: str) -> bool:
    """Tell whether a reference or a query has a key, or its beginning and its digest."""
    if place.key_digest is None:
        return place.record_id == key
    return key.startswith(place.record_id) and place.key_digest == digest_of_key(key)


def run(port: CountingPort, tool: str, **arguments: Any) -> Outcome:
    outcome = asyncio.run(call(tool, arguments, reader(port)))
    # As a client sees it: parts that are encoded already are plain values there.
    seen = msgspec.json.decode(msgspec.json.encode(outcome.structured))
    return msgspec.structs.replace(outcome, structured=seen)


def record(key: str = "m1", *, connection: str = "cin_a", **data: Any) -> dict[str, Any]:
    return {
        "object": "record",
        "id": key,
        "stream": "messages",
        "connection_id": connection,
        "connector_key": "slack",
        "display_name": "Work Slack",
        "data": {"id": key, "text": "hello", **data},
        "emitted_at": "2026-03-01T10:00:05Z",
    }


def page(*rows: Body, **more: Any) -> dict[str, Any]:
    return {
        "object": "list",
        "data": list(rows),
        "has_more": False,
        "url": "/v1/streams/messages/records",
        "links": {"self": "/v1/streams/messages/records", "next": None},
        "meta": {"count": {"kind": "none"}, "warnings": []},
        **more,
    }


def hit(key: str = "m1", *, connection: str = "cin_a", text: str = "a <mark>bridge</mark> plan", **more: Any):
    return {
        "object": "search_result",
        "stream": "messages",
        "record_key": key,
        "connector_id": "slack",
        "connector_key": "slack",
        "connection_id": connection,
        "display_name": "Work Slack",
        "emitted_at": "2027-01-01T00:00:00Z",
        "authored_at": "2026-02-03T07:59:50Z",
        "matched_fields": ["text"],
        "snippet": {"field": "text", "text": text},
        "evidence_excerpts": [
            {
                "object": "evidence_excerpt",
                "field_path": "text",
                "preview_text": text,
                "truncated": True,
                "provenance": "lexical_match",
                "read": {
                    "object": "field_window_read",
                    "field": "text",
                    "offset_chars": 37,
                    "limit_chars": 256,
                },
            }
        ],
        "record_url": f"/v1/streams/messages/records/{key}",
        **more,
    }


def found(*hits: Body, **more: Any) -> dict[str, Any]:
    meta = {"count": len(hits), "count_accuracy": "exact", "recall": {"complete": True}, "warnings": []}
    return {
        "object": "list",
        "has_more": False,
        "url": "/v1/search",
        "data": list(hits),
        "meta": meta,
        **more,
    }


def window(text: str, *, start: int = 0, total: int = 12000, **more: Any) -> dict[str, Any]:
    end = start + len(text)
    return {
        "object": "field_window",
        "stream": "messages",
        "record_id": "m1",
        "connection_id": "cin_a",
        "field": {"path": "text", "type": "string", "size_chars": total, "digest": "sha256:ab"},
        "window": {
            "text": text,
            "start_chars": start,
            "end_chars": end,
            "limit_chars": 4096,
            "total_chars": total,
            "complete": start == 0 and end == total,
            "has_more": end < total,
            "next_offset_chars": end if end < total else None,
            "previous_offset_chars": max(0, start - 4096) if start else None,
            "match_start_chars": None,
            "match_end_chars": None,
            "next_cursor": "fw1.next" if end < total else None,
            "previous_cursor": "fw1.back" if start else None,
            **more,
        },
    }
