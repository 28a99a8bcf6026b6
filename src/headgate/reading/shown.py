"""Records that the log names, as they are now: for the owner, who opens an entry."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.audit.journal import ShownRecord, disclosed, owner_event
from headgate.model.declaration import LineFields
from headgate.model.plan import RecordPlan
from headgate.model.record import Record
from headgate.policy.allowance import StreamScope
from headgate.reading.home import ReadableHome, ReadContext, labels_of


@dataclass(frozen=True, slots=True)
class RecordNow:
    """A record that was shown once: its row as lists have it, and which of its fields make a line."""

    row: dict[str, Any]
    line: LineFields


async def records_now(
    home: ReadableHome, context: ReadContext, places: Sequence[ShownRecord], preview_chars: int
) -> dict[ShownRecord, RecordNow]:
    """Read the records of some places with their texts cut; those that are gone are left out."""
    allowance = (await home.decisions(context.access)).allowance
    scopes = {
        (connection.id, scope.stream): scope.among((connection,))
        for scope in allowance.scopes
        for connection in scope.connections
    }
    there = [(place, scope) for place in places if (scope := scopes.get(place[:2])) is not None]
    found = await asyncio.gather(*(_read(home, place, scope, preview_chars) for place, scope in there))
    parts = [
        part
        for (_, scope), record in zip(there, found, strict=True)
        if record is not None
        for part in disclosed([record], tuple(scope.capability.fields))
    ]
    home.discloser.write(owner_event(home.clock(), context.request_id, context.via, parts=tuple(parts)))
    labels = labels_of(allowance, allowance.scopes)
    return {
        place: RecordNow(
            {
                "id": record.id,
                "stream": record.stream,
                "data": msgspec.json.decode(record.body),
                **labels.of(record.connection_id),
            },
            scope.declaration.line,
        )
        for (place, scope), record in zip(there, found, strict=True)
        if record is not None
    }


async def _read(
    home: ReadableHome, place: ShownRecord, scope: StreamScope, preview_chars: int
) -> Record | None:
    reach = scope.reach(tuple(scope.capability.fields))
    records = await home.store.record(RecordPlan(reach, place[2], preview_chars=preview_chars))
    return records[0] if records else None
