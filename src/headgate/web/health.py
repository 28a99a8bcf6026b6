"""The handlers for operators: is the server up, is it ready, and its numbers."""

from __future__ import annotations

from typing import Any

from headgate.errors import StorageFull, StorageReadOnly
from headgate.web.addresses import WebRequest
from headgate.web.replies import NO_STORE, PLAIN_JSON, HttpReply, json_reply

_HEADERS = (PLAIN_JSON, NO_STORE)
#: What the store says by itself, and takes back at once: a loop notices later.
_OF_THE_STORE = frozenset({StorageFull.code, StorageReadOnly.code})
_TEXT = (b"content-type", b"text/plain; charset=utf-8")


async def healthz(request: WebRequest) -> HttpReply:
    """Answer that the process serves requests."""
    return json_reply({"status": "ok", "version": request.services.version}, headers=_HEADERS)


async def readyz(request: WebRequest) -> HttpReply:
    """Answer whether the store can be read and written, and which background loops of this process fail."""
    reads = request.services.reads
    await reads.catalog()
    answer: dict[str, Any] = {"status": "ready" if reads.store.is_writable else "degraded"}
    troubles = request.services.supervisor.troubles()
    failing = {(trouble.loop, trouble.code) for trouble in troubles if trouble.code not in _OF_THE_STORE}
    if failing:
        shown = [{"loop": loop, "code": code} for loop, code in sorted(failing)]
        answer = {"status": "degraded", "troubles": shown}
    return json_reply(answer, headers=_HEADERS)


async def metrics(request: WebRequest) -> HttpReply:
    """Write the counters in the format of Prometheus."""
    return HttpReply(request.services.metrics.text().encode(), headers=(_TEXT, NO_STORE))
