"""The connection to the database is cut at each statement of each kind of work, before and after the server does it.

What was acknowledged is there once, what was refused is there whole or not at all, every record that left is in the
log, and the same process goes on with the next call. The usual run cuts at some of the statements of long work; the
long one at all of them.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from headgate.audit.chain import load_audit_key
from headgate.audit.pruning import prune
from headgate.errors import StorageUnusable
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US
from tests import postgres
from tests.conftest import Figure
from tests.hostile.store.cut_scene import (
    RECORD_COUNT,
    RECORDS,
    SENT_AT,
    Scene,
    Work,
    attempts,
    lines,
    tolerantly,
)
from tests.http_clients import HttpAnswer
from tests.in_process import record
from tests.policy.worlds import grant, stream_grant
from tests.postgres_proxy import Cut

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_runs_beside"),
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]
MESSAGES = StreamName("messages")
READS = {
    "list": f"{RECORDS}?limit=2&count=exact",
    "record": f"{RECORDS}/m1",
    "aggregate": "/v1/streams/messages/aggregate?metric=sum&field=size",
    "search": "/v1/search?q=roof",
    "window": f"{RECORDS}/m1/field-window?field=body",
    "changes": f"{RECORDS}?changes_since=beginning&connection_id=<connection>",
    "schema": "/v1/schema",
    "streams": "/v1/streams",
}
#: What is new in every answer.
NEW = {"next_cursor", "links", "meta", "next_changes_since", "request_id"}


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.soak)], ids=["some", "all"])
def is_long(request: pytest.FixtureRequest) -> bool:
    return request.param


async def test_a_read_whose_connection_is_cut_is_answered_and_logged_or_refused(
    at: Scene, *, is_long: bool, figure: Figure
):
    for name, path in READS.items():
        asked = path.replace("<connection>", at.connection)
        expected = shown(await at.program.get(asked, at.client))

        async def read(
            mark: str, name: str = name, asked: str = asked, expected: Any = expected
        ) -> HttpAnswer:
            answer = await at.program.get(asked, at.client, headers=[("request-id", f"{name}-{mark}")])
            if answer.status == 200:
                at.answered.append(f"{name}-{mark}")
                assert shown(answer) == expected
            return answer

        async def check(mark: str, _is_done: bool, read: Any = read) -> None:  # noqa: FBT001 - one form for all work
            assert (await read(f"again-{mark}")).status == 200

        await at.at_each_statement(Work(read, check), stride=1 if is_long else 3)
    figure("cut", f"reads: {at.attempts} cuts, {at.refusals} refused, {len(at.answered)} answered and logged")


def shown(answer: HttpAnswer) -> dict[str, Any]:
    assert answer.status == 200, answer.content
    return {key: value for key, value in answer.body.items() if key not in NEW}


async def test_a_batch_whose_connection_is_cut_is_whole_or_absent_and_once_after_it_is_sent_again(
    at: Scene, *, is_long: bool, figure: Figure
):
    path = f"/v1/ingest/messages?connection_id={at.connection}"
    stored = {f"m{n}" for n in range(RECORD_COUNT)}

    async def ingest(mark: str) -> HttpAnswer:
        body = b"\n".join(json.dumps(line).encode() for line in lines(f"{mark}-", 3))
        return await at.program.ask("POST", path, at.program.owner, body=body)

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        keys = {f"{mark}-{n}" for n in range(3)}
        held = {key for key in keys if await at.has(key)}
        assert held == keys if is_done else held in (set(), keys)
        assert (await ingest(mark)).body["records_accepted"] == 3
        stored.update(keys)

    await at.at_each_statement(Work(ingest, check), stride=1 if is_long else 5)
    assert await at.all_keys() == sorted(stored)
    figure("cut", f"ingest: {at.attempts} cuts, {at.refusals} refused, {len(stored)} records, each once")


async def test_a_deletion_whose_connection_is_cut_is_done_or_not(at: Scene, *, is_long: bool):
    async def store(mark: str) -> None:
        await at.program.ingest(at.connection, "messages", [record(mark, sent_at=SENT_AT)])

    async def delete(mark: str) -> HttpAnswer:
        path = f"{RECORDS}/{mark}?connection_id={at.connection}"
        return await at.program.ask("DELETE", path, at.program.owner)

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        assert not (is_done and await at.has(mark))

    await at.at_each_statement(Work(delete, check, store), stride=1 if is_long else 6)


async def test_deletions_that_share_a_transaction_are_not_done_again_when_its_end_is_cut(at: Scene):
    """Done a second time they would find nothing, or what another machine has stored since."""
    store, where, now = at.program.services.store, ConnectionId(at.connection), at.program.clock.at
    keys = [f"m{n}" for n in range(5)]
    is_held, may_go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold(_database: Any) -> None:
        loop.call_soon_threadsafe(is_held.set)
        may_go.wait()

    holding = asyncio.create_task(store._writer.run(hold))  # type: ignore[attr-defined]
    await is_held.wait()
    deletions = [store.delete_record(where, MESSAGES, RecordId(key), at=now) for key in keys]
    waiting = asyncio.gather(*deletions, return_exceptions=True)
    await asyncio.sleep(0)
    at.proxy.cut_at(2, Cut.AFTER_COMMIT)
    may_go.set()
    await holding
    # What became of them only the server knows.
    assert [type(one) for one in await waiting] == [StorageUnusable] * 5
    assert at.proxy.stop_cutting()
    assert [await at.has(key) for key in keys] == [False] * 5


async def test_what_is_made_while_the_connection_is_cut_is_there_once_or_not_at_all(
    at: Scene, *, is_long: bool
):
    async def connect(mark: str) -> HttpAnswer:
        body = json.dumps({"connector_key": "mail", "display_name": mark}).encode()
        return await at.program.ask("POST", "/v1/connections", at.program.owner, body=body)

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        held = [one.display_name for one in await at.program.services.store.connections()].count(mark)
        assert held == 1 if is_done else held <= 1

    async def upload(mark: str) -> HttpAnswer:
        kind = [("content-type", "image/png")]
        return await at.program.ask("POST", "/v1/blobs", at.program.owner, body=mark.encode(), headers=kind)

    async def check_file(mark: str, _is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        stored = (await upload(mark)).body["blob_id"]
        assert (await at.program.get(f"/v1/blobs/{stored}", at.program.owner)).status in {200, 404}

    stride = 1 if is_long else 4
    await at.at_each_statement(Work(connect, check), stride)
    await at.at_each_statement(Work(upload, check_file), stride)


async def test_a_revocation_whose_connection_is_cut_holds_once_it_was_acknowledged(
    at: Scene, *, is_long: bool
):
    tokens: dict[str, str] = {}

    async def issue(mark: str) -> None:
        given = stream_grant("messages", "id", connections=(ConnectionId(at.connection),))
        tokens[mark] = await at.program.grant(grant(given, id_=f"grt_{mark}"))

    async def revoke(mark: str) -> HttpAnswer:
        return await at.program.ask("POST", f"/grants/grt_{mark}/revoke", at.program.owner)

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        status = (await at.program.get(RECORDS, tokens[mark])).status
        assert status == 403 if is_done else status in {200, 403}
        assert (await revoke(mark)).status == 200
        assert (await at.program.get(RECORDS, tokens[mark])).code == "grant_revoked"

    await at.at_each_statement(Work(revoke, check, issue), stride=1 if is_long else 3)


async def test_a_daily_limit_never_counts_less_than_what_left_while_connections_are_cut(
    at: Scene, *, is_long: bool
):
    given = stream_grant("messages", "id", connections=(ConnectionId(at.connection),))
    token = await at.program.grant(grant(given, id_="grt_limited"), daily_records=100_000)
    left = 0

    async def read(_mark: str) -> HttpAnswer:
        nonlocal left
        answer = await at.program.get(f"{RECORDS}?limit=2", token)
        left += len(answer.body["data"]) if answer.status == 200 else 0
        return answer

    async def check(_mark: str, _is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        counter = at.program.services.ledger
        day = at.program.clock.at // DAY_US
        counted = 100_000 - await counter.count_records("grt_limited", day, 0, 100_000)  # type: ignore[attr-defined]
        # A count whose answer was lost stays, and is repeated by the next attempt.
        assert left <= counted <= left + 4 * at.attempts

    await at.at_each_statement(Work(read, check), stride=1 if is_long else 3)


async def test_a_block_of_the_log_enters_the_chain_once_wherever_the_connection_is_cut(
    at: Scene, *, is_long: bool, figure: Figure
):
    for attempt in attempts(at.proxy, 1 if is_long else 2):
        for name in (f"{attempt.name}-1", f"{attempt.name}-2"):
            assert (await at.program.get(RECORDS, at.client, headers=[("request-id", name)])).status == 200
            at.answered.append(name)
        with attempt.cut():
            await tolerantly(at.program.services.pump.flush())
    figure("cut", f"log: {len(at.answered)} reads, each logged once")


async def test_pruning_the_log_is_done_or_not_wherever_the_connection_is_cut(
    at: Scene, tmp_path: Path, *, is_long: bool
):
    key, ledger = load_audit_key(at.home), at.program.services.ledger
    done = 0
    for attempt in attempts(at.proxy, 1 if is_long else 3):
        assert (await at.program.get(RECORDS, at.client)).status == 200
        await at.program.services.pump.flush()
        now = at.program.clock.at = at.program.clock.at + DAY_US
        with attempt.cut():
            done += await tolerantly(
                prune(at.home, ledger, key, before=now, path=tmp_path / attempt.name, now=now)
            )
    assert done > 0
