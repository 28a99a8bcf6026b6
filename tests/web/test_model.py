"""The gate against a small model of it: ingest, delete, grant, revoke, read, page, sync, restart."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.instants import instant
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.web.gatehouse import Gatehouse, gatehouse, record

KEYS = st.sampled_from(["a", "b", "c", "d"])
DAYS = st.integers(1, 9)
RECORDS = "/v1/streams/messages/records"


class Gate(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.names = itertools.count()
        self.records: dict[str, dict[str, Any]] = {}
        self.grants: dict[str, dict[str, Any]] = {}
        self.open()
        self.connection = self.runner.run(self.first())

    def open(self) -> None:
        self.stack = AsyncExitStack()
        entered = self.stack.enter_async_context(gatehouse(Path(self.place.name)))
        self.house: Gatehouse = self.runner.run(entered)

    async def first(self) -> str:
        await self.house.declare("mail", declaration())
        return await self.house.connect("mail")

    def get(self, path: str, token: str) -> Any:
        return self.runner.run(self.house.get(path, token))

    def seen_by(self, held: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What the model says a grant shows."""
        return {
            key: {name: data[name] for name in held["fields"] if name in data}
            for key, data in self.records.items()
            if held["since"] is None or data["sent_at"] >= held["since"]
        }

    @rule(key=KEYS, day=DAYS, subject=st.text("xyz", max_size=3), body=st.text("pq", max_size=3))
    def ingest(self, key: str, day: int, subject: str, body: str) -> None:
        data = {"id": key, "sent_at": f"2026-03-0{day}T00:00:00Z", "subject": subject, "body": body}
        values = {name: value for name, value in data.items() if name != "id"}
        self.runner.run(self.house.ingest(self.connection, "messages", [record(key, **values)]))
        self.records[key] = data

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        path = f"{RECORDS}/{key}?connection_id={self.connection}"
        answer = self.runner.run(self.house.ask("DELETE", path, self.house.owner))
        assert answer.status == (204 if self.records.pop(key, None) else 404)

    @precondition(lambda self: len(self.grants) < 4)
    @rule(wide=st.sampled_from([True, False]), day=st.none() | DAYS)
    def give(self, wide, day: int | None) -> None:
        fields = ["id", "subject", "sent_at", *(["body"] if wide else [])]
        since = None if day is None else f"2026-03-0{day}T00:00:00Z"
        time = None if since is None else TimeConstraint(FieldName("sent_at"), instant(since))
        name = f"grt_{next(self.names)}"
        held = grant(
            stream_grant("messages", *fields, connections=(ConnectionId(self.connection),), time=time),
            id_=name,
        )
        token = self.runner.run(self.house.grant(held))
        self.grants[token] = {
            "id": name, "fields": fields, "since": since, "is_over": False, "mark": "beginning", "copy": {},
        }  # fmt: skip

    @precondition(lambda self: self.grants)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(sorted(self.grants)))
        path = f"/grants/{self.grants[token]['id']}/revoke"
        assert self.runner.run(self.house.ask("POST", path, self.house.owner)).status == 200
        self.grants[token]["is_over"] = True

    @precondition(lambda self: self.grants)
    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(sorted(self.grants)))
        held, cursor = self.grants[token], ""
        if held["is_over"]:
            return
        while True:
            answer = self.get(f"{RECORDS}?limit=2&changes_since={quote(held['mark'])}{cursor}", token).body
            for row in answer["data"]:
                if row.get("deleted"):
                    held["copy"].pop(row["id"], None)
                else:
                    assert held["copy"].get(row["id"]) != row["data"]
                    held["copy"][row["id"]] = row["data"]
            if not answer["has_more"]:
                break
            cursor = f"&cursor={answer['next_cursor']}"
        held["mark"] = answer["next_changes_since"]
        assert held["copy"] == self.seen_by(held)

    @rule()
    def restart(self) -> None:
        self.runner.run(self.stack.aclose())
        self.open()

    @invariant()
    def every_grant_shows_just_what_the_model_says(self) -> None:
        for token, held in self.grants.items():
            rows: list[Any] = []
            path: str | None = f"{RECORDS}?limit=2&count=exact"
            while path is not None:
                answer = self.get(path, token)
                if held["is_over"]:
                    assert answer.code == "grant_revoked"
                    break
                rows += answer.body["data"]
                path = answer.body["links"]["next"]
            if not held["is_over"]:
                expected = self.seen_by(held)
                assert {row["id"]: row["data"] for row in rows} == expected
                assert len(rows) == len(expected) == answer.body["meta"]["count"]["value"]
                order = [(row["data"]["sent_at"], row["id"]) for row in rows]
                assert order == sorted(order, reverse=True)

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()
        self.place.cleanup()


class TestGate(Gate.TestCase):
    settings = settings(
        max_examples=12, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
    )
