"""F28: the gate against a small model of it, on each engine.

Ingest, update, delete, grant, narrow, revoke, read, page, sync and restart, in any order.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.instants import instant
from tests import postgres
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.web.gate_model import Held, Model, Paging
from tests.web.leaks import changes_of_hidden_fields, forget_the_time

KEYS = st.sampled_from(["a", "b", "c", "d"])
SIDES = st.integers(0, 1)
DAYS = st.integers(1, 9)
SUBJECTS, BODIES = st.text("xyz", max_size=3), st.text("pq", max_size=3)
RECORDS = "/v1/streams/messages/records"
FIELDS = ("id", "sent_at", "subject", "body")
NEEDS_POSTGRES = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


def moment(day: int) -> str:
    return f"2026-03-0{day}T00:00:00Z"


class Gate(RuleBasedStateMachine):
    """The gate, with its records in a file."""

    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.names = itertools.count()
        self.model = Model()
        self.open()
        self.connections = self.runner.run(self.first())

    def open(self) -> None:
        self.stack = AsyncExitStack()
        entered = self.stack.enter_async_context(local_program(Path(self.place.name), **self.flags()))
        self.program: LocalProgram = self.runner.run(entered)

    def flags(self) -> dict[str, str]:
        return {}

    async def first(self) -> tuple[str, str]:
        await self.program.declare("mail", declaration())
        return await self.program.connect("mail"), await self.program.connect("mail")

    def get(self, path: str, token: str) -> HttpAnswer:
        return self.runner.run(self.program.get(path, token))

    def somebody(self, data: st.DataObject) -> tuple[str, Held]:
        # In the order in which they were made: tokens are random, and the same choices must give the same story.
        token = data.draw(st.sampled_from(list(self.model.live())))
        return token, self.model.held[token]

    def put(self, connection: str, key: str, values: dict[str, Any]) -> None:
        self.runner.run(self.program.ingest(connection, "messages", [record(key, **values)]))
        self.model.put((connection, key), {"id": key, **values})

    @initialize()
    def begin_with_something(self) -> None:
        for number, key in enumerate("abc"):
            self.put(self.connections[number % 2], key, {"sent_at": moment(number + 1), "subject": key})
        self.issue(self.connections, FIELDS, None)

    @rule(side=SIDES, key=KEYS, day=DAYS, subject=SUBJECTS, body=BODIES)
    def ingest(self, side: int, key: str, day: int, subject: str, body: str) -> None:
        self.put(self.connections[side], key, {"sent_at": moment(day), "subject": subject, "body": body})

    @precondition(lambda self: self.model.records)
    @rule(data=st.data(), body=BODIES)
    def update_what_some_cannot_see(self, data: st.DataObject, body: str) -> None:
        stored = sorted(self.model.records, key=lambda one: (self.connections.index(one[0]), one[1]))
        connection, key = data.draw(st.sampled_from(stored))
        values = self.model.records[connection, key] | {"body": body}
        self.put(connection, key, {name: value for name, value in values.items() if name != "id"})

    @rule(side=SIDES, key=KEYS)
    def delete(self, side: int, key: str) -> None:
        connection = self.connections[side]
        path = f"{RECORDS}/{key}?connection_id={connection}"
        answer = self.runner.run(self.program.ask("DELETE", path, self.program.owner))
        assert answer.status == (204 if self.model.remove((connection, key)) else 404)

    def issue(self, connections: tuple[str, ...], fields: tuple[str, ...], since: str | None) -> str:
        name = f"grt_{next(self.names)}"
        time = None if since is None else TimeConstraint(FieldName("sent_at"), instant(since))
        where = tuple(map(ConnectionId, connections))
        given = grant(stream_grant("messages", *fields, connections=where, time=time), id_=name)
        token = self.runner.run(self.program.grant(given))
        self.model.held[token] = Held(name, connections, fields, since)
        return token

    def end(self, held: Held) -> None:
        path = f"/grants/{held.grant_id}/revoke"
        assert self.runner.run(self.program.ask("POST", path, self.program.owner)).status == 200
        held.is_over = True

    @precondition(lambda self: len(self.model.live()) < 4)
    @rule(sides=st.sampled_from([(0,), (1,), (0, 1)]), size=st.integers(3, 4), day=st.none() | DAYS)
    def give(self, sides: tuple[int, ...], size: int, day: int | None) -> None:
        chosen = tuple(self.connections[side] for side in sides)
        self.issue(chosen, FIELDS[:size], None if day is None else moment(day))

    @precondition(lambda self: self.model.live())
    @rule(data=st.data(), day=DAYS)
    def narrow(self, data: st.DataObject, day: int) -> None:
        """Grants do not change: a narrower one takes a grant's place, and nothing given out under it opens."""
        token, wide = self.somebody(data)
        since = max(moment(day), wide.since or "")
        narrower = self.issue(wide.connections[:1], wide.fields[:3], since)
        self.end(wide)
        assert self.get(RECORDS, token).code == "grant_revoked"
        if wide.paging is not None:
            assert (
                self.get(f"{RECORDS}?limit=2&cursor={wide.paging.cursor}", narrower).code == "invalid_cursor"
            )
        for connection, mark in wide.marks.items():
            path = f"{RECORDS}?connection_id={connection}&changes_since={quote(mark)}"
            assert self.get(path, narrower).status in {400, 404}

    @precondition(lambda self: self.model.live())
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        self.end(self.somebody(data)[1])

    @precondition(lambda self: self.model.live())
    @rule(data=st.data(), key=KEYS)
    def read(self, data: st.DataObject, key: str) -> None:
        token, held = self.somebody(data)
        found = [place for place in self.model.shown(held) if place[1] == key]
        answer = self.get(f"{RECORDS}/{key}", token)
        assert answer.status == {0: 404, 1: 200, 2: 409}[len(found)]
        for connection, _ in found:
            one = self.get(f"{RECORDS}/{key}?connection_id={connection}", token).body
            assert one["data"] == self.model.shown(held)[connection, key]

    @precondition(lambda self: self.model.live())
    @rule(data=st.data())
    def page(self, data: st.DataObject) -> None:
        """Take the next page of a list, however much has changed since the last one."""
        token, held = self.somebody(data)
        shown = self.model.shown(held)
        at = held.paging or Paging("", [], set(shown), "9")
        cursor = f"&cursor={at.cursor}" if at.cursor else ""
        body = self.get(f"{RECORDS}?limit=2{cursor}", token).body
        for row in body["data"]:
            place = (row["connection_id"], row["id"])
            assert row["data"] == shown[place]
            assert row["data"]["sent_at"] <= at.last
            at.seen.append(place)
            at.last = row["data"]["sent_at"]
        held.paging = at
        if body["has_more"]:
            at.cursor = body["next_cursor"]
            return
        assert at.owed <= set(at.seen)
        assert all(at.seen.count(place) == 1 for place in at.owed)
        held.paging = None

    @precondition(lambda self: self.model.live())
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        token, held = self.somebody(data)
        for connection in held.connections:
            copy, mark = held.copies.setdefault(connection, {}), held.marks.get(connection, "beginning")
            path: str | None = f"{RECORDS}?connection_id={connection}&limit=2&changes_since={quote(mark)}"
            while path is not None:
                answer = self.get(path, token)
                assert answer.status == 200, answer.content
                body = answer.body
                self.follow(held, copy, body["data"])
                path = body["links"]["next"]
            held.marks[connection] = body["next_changes_since"]
            held.changed = {place for place in held.changed if place[0] != connection}
            assert copy == self.model.shown_of(held, connection)

    def follow(self, held: Held, copy: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row.get("deleted"):
                copy.pop(row["id"], None)
            else:
                # What did not change for this client is not reported again.
                has_changed = (row["connection_id"], row["id"]) in held.changed
                assert has_changed or copy.get(row["id"]) != row["data"]
                copy[row["id"]] = row["data"]

    @rule()
    def restart(self) -> None:
        self.runner.run(self.stack.aclose())
        self.open()

    @invariant()
    def every_grant_shows_just_what_the_model_says(self) -> None:
        for token, held in self.model.held.items():
            if held.is_over:
                assert self.get(RECORDS, token).code == "grant_revoked"
                continue
            body = self.get(f"{RECORDS}?limit=100&count=exact", token).body
            rows = {(row["connection_id"], row["id"]): row["data"] for row in body["data"]}
            assert rows == self.model.shown(held)
            assert len(body["data"]) == len(rows) == body["meta"]["count"]["value"]
            times = [row["data"]["sent_at"] for row in body["data"]]
            assert times == sorted(times, reverse=True)

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        self.place.cleanup()


class GateInDatabase(Gate):
    """The same, with its records in PostgreSQL."""

    def flags(self) -> dict[str, str]:
        return {"store_url": postgres.database_url(), "store_home": self.place.name}


#: With the part of the stories that the usual run tells of each engine.
GATES = [
    pytest.param(Gate, 12, id="sqlite"),
    pytest.param(GateInDatabase, 2, id="postgres", marks=NEEDS_POSTGRES),
]


def run(gate: type[Gate], examples: int, steps: int, **more: Any) -> None:
    run_state_machine_as_test(
        gate,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            **more,
        ),
    )


@pytest.mark.parametrize(("gate", "examples"), GATES)
def test_the_gate_does_what_its_model_does(gate: type[Gate], examples: int):
    run(gate, examples, 30)


@pytest.mark.soak
@pytest.mark.parametrize(("gate", "_examples"), GATES)
def test_the_gate_does_what_its_model_does_for_long(gate: type[Gate], _examples: int):
    run(gate, 200, 50)


@pytest.mark.parametrize("leak", [forget_the_time, changes_of_hidden_fields])
def test_a_gate_with_a_fault_in_it_does_not_do_what_its_model_does(
    monkeypatch: pytest.MonkeyPatch, leak: Any
):
    leak(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        run(Gate, 200, 30, database=None, phases=[Phase.generate])
