"""A store together with what tests put into it, in as few words as possible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.instants import instant
from headgate.model.plan import PagePlan, Reach
from headgate.model.record import Record
from headgate.model.rows import Batch, IngestReport, OnInvalid, Page
from tests.store.declared import DESK, NOTES, declared, document
from tests.store.engines import NOW, Driven

_FIELDS = {name: tuple(stream.fields) for name, stream in declared().streams.items()}


class Ledger:
    """A declared connector with some connections, and short ways to write and read."""

    def __init__(self, store: Driven, *, connections: int) -> None:
        self.store = store
        store.declare(DESK, document())
        self.ids: tuple[ConnectionId, ...] = tuple(
            store.create_connection(DESK, f"Desk {number}").id for number in range(connections)
        )

    def put(
        self,
        *records: dict[str, Any],
        stream: StreamName = NOTES,
        connection: int = 0,
        received_at: int = NOW,
        key: str | None = None,
    ) -> IngestReport:
        """Take records in; what breaks the schema is kept, so that reads meet values of every type."""
        lines = [json.dumps({"data": record}).encode() for record in records]
        where = self.ids[connection]
        report = self.store.ingest(Batch(where, stream, lines, received_at, key, OnInvalid.KEEP))
        assert (report.accepted, report.errors) == (len(records), ())
        return report

    def send(
        self,
        *lines: bytes,
        stream: StreamName = NOTES,
        connection: int = 0,
        received_at: int = NOW,
        key: str | None = None,
        on_invalid: OnInvalid = OnInvalid.REJECT,
    ) -> IngestReport:
        """Take lines in as they are."""
        return self.store.ingest(Batch(self.ids[connection], stream, lines, received_at, key, on_invalid))

    def remove(self, *keys: str, stream: StreamName = NOTES, connection: int = 0, at: int = NOW) -> None:
        """Take deletions in."""
        lines = [json.dumps({"key": key, "op": "delete"}).encode() for key in keys]
        assert self.send(*lines, stream=stream, connection=connection, received_at=at).errors == ()

    def reach(
        self,
        stream: StreamName = NOTES,
        *,
        connections: Sequence[int] | None = None,
        fields: Sequence[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        resources: Sequence[str] | None = None,
    ) -> Reach:
        """Give a reach: everything, unless it is narrowed."""
        chosen = range(len(self.ids)) if connections is None else connections
        bound = declared().streams[stream].consent_time_field
        time = None
        if since is not None or until is not None:
            assert bound is not None
            time = TimeConstraint(bound, _us(since), _us(until))
        return Reach(
            stream,
            tuple(self.ids[number] for number in chosen),
            _FIELDS[stream] if fields is None else tuple(map(FieldName, fields)),
            time,
            None if resources is None else frozenset(map(RecordId, resources)),
        )

    def page(self, reach: Reach | None = None, limit: int = 100, **options: Any) -> Page:
        """Read a page."""
        return self.store.page(PagePlan(reach or self.reach(), limit, **options))

    def keys(self, reach: Reach | None = None, **options: Any) -> list[str]:
        """Give the keys of a page, in order."""
        return [record.id for record in self.page(reach, **options).records]


def body(record: Record) -> dict[str, Any]:
    """Give what a record says."""
    return json.loads(record.body)


def _us(text: str | None) -> int | None:
    return None if text is None else instant(text)
