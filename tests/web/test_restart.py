"""The server is stopped and started again: nothing that was given out or acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.conftest import Figure
from tests.http_clients import ask_once, keep_alive_client
from tests.on_socket import MAIL, WAIT_SECONDS, ServedProgram, headgate, line, owner_of, served_program

WORDS = "bridge plan " * 40


@dataclass
class Traveller:
    """Somebody who keeps everything the server gave out, and comes back with it after each restart."""

    served: ServedProgram
    seen: dict[str, Any] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        answer = self.served.ask("GET", path, self.seen["token"])
        assert answer.status == 200, answer
        return answer.body

    def connect(self) -> None:
        self.seen["connection"] = self.served.connect()

    def push(self) -> None:
        self.seen["report"] = self._push("batch-1", 6).body

    def push_again(self) -> None:
        assert self._push("batch-1", 6).body == self.seen["report"]
        other = self._push("batch-1", 5)
        assert (other.status, other.code) == (409, "idempotency_conflict")

    def _push(self, key: str, count: int) -> Any:
        path = f"/v1/ingest/messages?connection_id={self.seen['connection']}"
        body = b"\n".join(line(f"m{n}", subject=f"{WORDS}{n}", size=n) for n in range(count))
        address = self.served.address
        return ask_once(address, "POST", path, self.served.owner, body=body, headers={"Idempotency-Key": key})

    def grant(self) -> None:
        made = self.served.run("grants", "create", "--client", "agent", "--stream", "messages")
        self.seen |= {"token": made["access_token"], "grant": made["grant_ids"][0]}

    def open_everything(self) -> None:
        """Ask for one cursor of each kind."""
        self.seen["page"] = self.get(f"{MAIL}?limit=4")["next_cursor"]
        self.seen["hits"] = self.get("/v1/search?q=bridge&limit=4")["next_cursor"]
        self.seen["since"] = self.get(f"{MAIL}?changes_since=beginning")["next_changes_since"]
        window = self.get(f"{MAIL}/m1/field-window?field=subject&limit_chars=50")
        self.seen["window"] = window["window"]["next_cursor"]

    def next_page(self) -> None:
        assert len(self.get(f"{MAIL}?limit=4&cursor={self.seen['page']}")["data"]) == 2

    def next_hits(self) -> None:
        assert len(self.get(f"/v1/search?q=bridge&limit=4&cursor={self.seen['hits']}")["data"]) == 2

    def next_window(self) -> None:
        path = f"{MAIL}/m1/field-window?field=subject&limit_chars=50&cursor={self.seen['window']}"
        assert self.get(path)["window"]["start_chars"] == 50

    def next_changes(self) -> None:
        self.served.ingest(self.seen["connection"], [line("late", subject="late")])
        rows = self.get(f"{MAIL}?changes_since={quote(self.seen['since'])}")["data"]
        assert [row["id"] for row in rows] == ["late"]

    def state(self) -> None:
        path = f"/v1/state/{self.seen['connection']}"
        assert self.served.ask("PUT", path, self.served.owner, b'{"mark":7}').status == 200

    def same_state(self) -> None:
        path = f"/v1/state/{self.seen['connection']}"
        assert self.served.ask("GET", path, self.served.owner).body["state"] == {"mark": 7}

    def revoke(self) -> None:
        assert (
            self.served.ask("POST", f"/grants/{self.seen['grant']}/revoke", self.served.owner).status == 200
        )

    def refused(self) -> None:
        assert self.served.ask("GET", MAIL, self.seen["token"]).code == "grant_revoked"

    def audit(self) -> None:
        verdict = self.served.run("audit", "verify")
        assert verdict["whole"] is True
        self.seen["entries"] = len(self.served.run("audit", "list", "--limit", "1000"))


STEPS: tuple[Callable[[Traveller], None], ...] = (
    Traveller.connect, Traveller.push, Traveller.push_again, Traveller.grant, Traveller.open_everything,
    Traveller.next_page, Traveller.next_hits, Traveller.next_window, Traveller.next_changes, Traveller.state,
    Traveller.same_state, Traveller.revoke, Traveller.refused, Traveller.audit,
)  # fmt: skip


def test_a_restart_between_any_two_steps_of_a_journey_changes_nothing(tmp_path: Path, figure: Figure):
    """F15."""
    seen: dict[str, Any] = {}
    owner = owner_of(tmp_path)
    for number, step in enumerate(STEPS):
        with served_program(tmp_path, owner=owner) as served:
            step(Traveller(served, seen))
            if number % 2:
                stop(served)
            # Every other time it is killed instead.
    assert seen["entries"] == 9
    figure("F15", f"{len(STEPS)} steps with a restart or a kill after each; everything given out stayed good")


def stop(served: ServedProgram) -> float:
    """Ask the server to stop; gives how long that took."""
    before = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    served.process.wait(WAIT_SECONDS)
    assert served.process.returncode == 0, served.log.read_text(encoding="utf-8")[-2000:]
    return time.monotonic() - before


@dataclass
class Load:
    """Writers and readers that go on until the server is gone, and remember the answers."""

    acknowledged: list[str] = field(default_factory=list)
    answered: int = 0
    refused: int = 0
    stop_at: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, served: ServedProgram, connection: str, side: int) -> None:
        path = f"/v1/ingest/messages?connection_id={connection}"
        async with keep_alive_client(served.address) as client:
            for number in range(10_000):
                name = f"{served.pid}-{side}-{number}"
                body = b"\n".join(line(f"{name}-{n}", size=n) for n in range(5))
                answer = await client.ask("POST", path, served.owner, body)
                if answer.status == 200:
                    self.acknowledged.append(name)
                    if len(self.acknowledged) >= self.stop_at:
                        self.reached.set()
                else:
                    self.refused += 1

    async def read(self, served: ServedProgram, token: str) -> None:
        async with keep_alive_client(served.address) as client:
            while True:
                answer = await client.ask("GET", f"{MAIL}?limit=5", token)
                self.answered += answer.status == 200
                self.refused += answer.status != 200

    async def until_gone(self, served: ServedProgram, connection: str, token: str, enough: int) -> None:
        tasks = [asyncio.create_task(self.write(served, connection, side)) for side in range(4)]
        tasks += [asyncio.create_task(self.read(served, token)) for _ in range(4)]
        self.stop_at, self.reached = len(self.acknowledged) + enough, asyncio.Event()
        async with asyncio.timeout(WAIT_SECONDS):
            await self.reached.wait()
        os.kill(served.pid, signal.SIGTERM)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        gone = (ConnectionError, asyncio.IncompleteReadError)
        assert [one for one in ended if not isinstance(one, gone)] == []


def stop_under_load(place: Path, times: int, seed: int) -> dict[str, Any]:
    dice = random.Random(seed)
    load, owner, slowest = Load(), owner_of(place), 0.0
    with served_program(place, owner=owner) as served:
        connection = served.connect()
        token = served.grant()
    for _ in range(times):
        with served_program(place, owner=owner) as served:
            asyncio.run(load.until_gone(served, connection, token, dice.randint(1, 25)))
            slowest = max(slowest, stop_is_over(served))
    waiting = [path.stat().st_size for path in (place / "home").rglob("*-wal")]
    with served_program(place, owner=owner) as served:
        lost = [name for name in load.acknowledged if not has_whole(served, connection, name)]
        count = served.ask("GET", "/v1/streams/messages/aggregate?metric=count", owner).body["value"]
        reads = sum(1 for one in served.run("audit", "list", "--limit", "1000000") if "records" in one["via"])
        assert served.run("audit", "verify")["whole"] is True
    return {
        "stops": times, "acknowledged": len(load.acknowledged), "lost": len(lost), "torn": count % 5,
        "answered": load.answered, "unlogged": max(0, load.answered - reads), "refused": load.refused,
        "wal_bytes": sum(waiting), "slowest_stop_ms": round(slowest * 1000),
    }  # fmt: skip


def stop_is_over(served: ServedProgram) -> float:
    before = time.monotonic()
    served.process.wait(WAIT_SECONDS)
    assert served.process.returncode == 0, served.log.read_text(encoding="utf-8")[-2000:]
    return time.monotonic() - before


def has_whole(served: ServedProgram, connection: str, name: str) -> bool:
    path = f"{MAIL}/{name}-%d?connection_id={connection}&fields=size"
    return all(served.ask("GET", path % n, served.owner).status == 200 for n in (0, 4))


def assert_nothing_was_lost(figures: dict[str, Any], figure: Figure) -> None:
    figure("F16", json.dumps(figures))
    assert (figures["lost"], figures["torn"], figures["unlogged"], figures["wal_bytes"]) == (0, 0, 0, 0)
    assert figures["acknowledged"] >= figures["stops"]
    assert figures["answered"] > 0
    assert figures["refused"] == 0


def test_a_stop_under_load_loses_nothing_that_was_acknowledged(tmp_path: Path, figure: Figure):
    """F16, a few times."""
    assert_nothing_was_lost(stop_under_load(tmp_path, 4, 1), figure)


@pytest.mark.soak
def test_fifty_stops_under_load_lose_nothing_that_was_acknowledged(tmp_path: Path, figure: Figure):
    assert_nothing_was_lost(stop_under_load(tmp_path, 50, 2), figure)


def half_a_request(served: ServedProgram) -> socket.socket:
    place = urlsplit(served.address)
    made = socket.create_connection((place.hostname, place.port), timeout=WAIT_SECONDS)
    head = f"PUT /v1/declarations/mail HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.owner}\r\n"
    made.sendall(head.replace("Host: x", f"Host: {place.netloc}").encode() + b"Content-Length: 99\r\n\r\n{")
    # An answer on another connection shows that the server has read what was sent before it.
    assert served.ask("GET", "/healthz").status == 200
    return made


def wait_until_deaf(served: ServedProgram) -> None:
    """Wait until the server takes no more connections."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        try:
            served.ask("GET", "/healthz")
        except OSError:
            return
    raise AssertionError("It goes on taking connections.")


def test_a_request_under_way_is_waited_for_and_nothing_new_is_taken(tmp_path: Path):
    with served_program(tmp_path) as served:
        made = half_a_request(served)
        served.process.send_signal(signal.SIGTERM)
        wait_until_deaf(served)
        made.sendall(b"}" + b" " * 97)
        assert made.recv(12) == b"HTTP/1.1 400"
        made.close()
        served.process.wait(WAIT_SECONDS)
        assert served.process.returncode == 0


def test_a_second_signal_ends_it_at_once_and_not_in_good_order(tmp_path: Path):
    with served_program(tmp_path) as served:
        made = half_a_request(served)
        served.process.send_signal(signal.SIGTERM)
        wait_until_deaf(served)
        served.process.send_signal(signal.SIGTERM)
        served.process.wait(WAIT_SECONDS)
        assert served.process.returncode not in {0, None}
        made.close()
    assert headgate(tmp_path, "--home", "home", "audit", "verify").code == 0
