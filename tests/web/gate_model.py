"""A small model of the gate, in memory: what is kept, what is granted, and what each grant must show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Place = tuple[str, str]


@dataclass
class Paging:
    """A list that a client is in the middle of."""

    cursor: str
    seen: list[Place]
    #: What was visible at its start and has not been touched since: it must come, and come once.
    owed: set[Place]
    last: str


@dataclass
class Held:
    """What a client holds: its grant, and what it was given under it."""

    grant_id: str
    connections: tuple[str, ...]
    fields: tuple[str, ...]
    since: str | None
    is_over: bool = False
    #: A copy kept up by changes_since, one for each connection, and the bookmark it stands at.
    marks: dict[str, str] = field(default_factory=dict)
    copies: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What has become something else for this client since then, even if it is again what it was.
    changed: set[Place] = field(default_factory=set)
    paging: Paging | None = None


@dataclass
class Model:
    records: dict[Place, dict[str, Any]] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)

    def put(self, place: Place, data: dict[str, Any]) -> None:
        self._become(place, data)

    def remove(self, place: Place) -> bool:
        """Remove a record; returns whether it existed."""
        was_there = place in self.records
        self._become(place, None)
        return was_there

    def _become(self, place: Place, data: dict[str, Any] | None) -> None:
        before = {token: self.shown(held).get(place) for token, held in self.held.items()}
        self.records.pop(place, None)
        if data is not None:
            self.records[place] = data
        for token, held in self.held.items():
            if held.paging is not None:
                held.paging.owed.discard(place)
            if self.shown(held).get(place) != before[token]:
                held.changed.add(place)

    def live(self) -> dict[str, Held]:
        return {token: held for token, held in self.held.items() if not held.is_over}

    def shown(self, held: Held) -> dict[Place, dict[str, Any]]:
        """Say what a grant must show now."""
        return {
            place: {name: data[name] for name in held.fields if name in data}
            for place, data in self.records.items()
            if place[0] in held.connections and (held.since is None or data["sent_at"] >= held.since)
        }

    def shown_of(self, held: Held, connection: str) -> dict[str, dict[str, Any]]:
        return {key: data for (where, key), data in self.shown(held).items() if where == connection}
