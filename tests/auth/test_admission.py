"""What a token stands for at each request, and who can end a grant."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from headgate.auth.admission import Admission
from headgate.auth.clock import LatestTime
from headgate.auth.documents import USER, load_secret
from headgate.errors import ConfigInvalid, GrantRevoked
from headgate.home import open_home
from headgate.model.ids import ConnectionId, GrantId
from headgate.model.instants import iso
from headgate.model.ledger import Holder
from headgate.store.ledger.ledger import Ledger
from tests.console.browsers import Browser
from tests.console.clients import Client
from tests.console.granting import make
from tests.in_process import NOW, LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        await made.declare("mail", declaration())
        yield made


async def token_for(program: LocalProgram, **more) -> str:
    connection = await program.connect("mail")
    await program.ingest(
        connection, "messages", [record(f"m{n}", sent_at="2026-03-01T00:00:00Z") for n in range(5)]
    )
    return await program.grant(
        grant(stream_grant("messages", "id", "sent_at", connections=(ConnectionId(connection),))), **more
    )


async def test_a_revoked_grant_is_refused_on_the_next_request(program: LocalProgram):
    token = await token_for(program)
    assert (await program.get("/v1/schema", token)).status == 200
    assert (await program.ask("POST", "/grants/grt_1/revoke", token)).body == {"revoked": True}
    refused = await program.get("/v1/schema", token)
    assert (refused.status, refused.code) == (403, "grant_revoked")
    await program.services.pump.flush()
    (last,) = await program.services.ledger.newest(None, 1)
    assert json.loads(last.event)["outcome"] == "grant_revoked"
    program.clock.at -= 10 * 365 * DAY
    assert (await program.get("/v1/schema", token)).code == "grant_revoked"


async def test_only_the_owner_and_the_client_itself_may_end_a_grant(program: LocalProgram):
    token = await token_for(program)
    other = await program.grant(
        grant(stream_grant("messages", "id", connections=(ConnectionId("cin_x"),)), id_="grt_2")
    )
    assert (await program.ask("POST", "/grants/grt_1/revoke", other)).status == 403
    assert (await program.ask("POST", "/grants/grt_1/revoke")).status == 401
    assert (await program.ask("POST", "/grants/grt_none/revoke", program.owner)).status == 404
    assert (await program.ask("POST", "/grants/grt_1/revoke", program.owner)).status == 200
    assert (await program.ask("POST", "/grants/grt_1/revoke", token)).status == 200


async def test_a_token_past_its_time_is_unknown(program: LocalProgram):
    token = await token_for(program, expires_at=program.clock.at + DAY)
    assert (await program.get("/v1/schema", token)).status == 200
    program.clock.at += DAY
    assert (await program.get("/v1/schema", token)).code == "authentication_error"


async def test_what_has_expired_stays_expired_when_the_clock_goes_back(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        ended = await token_for(program, expires_at=program.clock.at + DAY)
        connection = await program.connect("mail")
        scope = stream_grant("messages", "id", connections=(ConnectionId(connection),))
        expired = await program.grant(replace(grant(scope, id_="grt_2"), expires_at=program.clock.at + DAY))
        assert {(await program.get("/v1/schema", one)).status for one in (ended, expired)} == {200}
        program.clock.at += DAY
        assert (await program.get("/v1/schema", expired)).code == "grant_expired"
        program.clock.at -= DAY
        assert (await program.get("/v1/schema", expired)).code == "grant_expired"
        assert (await program.get("/v1/schema", ended)).code == "authentication_error"
    # A second process, whose clock begins a day behind.
    async with local_program(tmp_path) as program:
        assert program.clock.at == NOW
        assert (await program.get("/v1/schema", expired)).code == "grant_expired"
        assert (await program.get("/v1/schema", ended)).code == "authentication_error"


def test_no_end_is_computed_from_a_clock_that_is_behind(tmp_path: Path):
    latest = LatestTime(open_home(tmp_path / "home"))
    latest.raise_to(NOW)
    latest.refuse_clock_behind(NOW - 60 * 1_000_000)
    with pytest.raises(ConfigInvalid) as refused:
        latest.refuse_clock_behind(NOW - DAY)
    assert "latest-time" in refused.value.hint


@pytest.mark.parametrize("wrong_by", [2 * DAY, 10 * 365 * DAY])
async def test_a_clock_that_is_wrong_for_a_moment_ends_nothing_for_good(tmp_path: Path, wrong_by: int):
    async with local_program(tmp_path) as program:
        world = await make(program)
        client, tokens = await world.connected(client_name="Known")
        limited = await token_for(program, expires_at=program.clock.at + 2 * DAY)
        shown = "/console/agents"
        assert (await world.browser.get(shown)).status == 200
        program.clock.wrong_by = wrong_by
        assert (await program.get("/v1/schema", limited)).status == 401
        assert (await world.browser.get(shown)).status == 303
        # What removes ended rows, and what counts attempts.
        assert (await Client(program).register(client_name="Other")).status == 201
        await Browser(program).post("/console/sign-in", password="guessed")
        program.clock.wrong_by, program.clock.at = 0, program.clock.at + 1_000_000
        assert (await program.get("/v1/schema", limited)).status == 200
        assert (await world.browser.get(shown)).status == 200
        assert (await client.refresh(tokens["refresh_token"])).status == 200
        program.services.latest.refuse_clock_behind(program.clock())
    async with local_program(tmp_path) as program:
        assert (await program.get("/v1/schema", limited)).status == 200


async def test_a_clock_that_has_gone_on_for_an_hour_is_believed(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        token = await token_for(program, expires_at=program.clock.at + 2 * DAY)
        program.clock.wrong_by = 30 * DAY
        for _ in range(7):
            assert (await program.get("/v1/schema", token)).status == 401
            program.clock.at += 601 * 1_000_000
        program.clock.wrong_by = 0
        assert (await program.get("/v1/schema", token)).status == 401, (
            "it stays expired when the clock goes back"
        )


def test_a_home_that_cannot_be_written_has_the_latest_time_of_its_process(tmp_path: Path):
    home = open_home(tmp_path / "home")
    (home.path / "latest-time").mkdir()
    latest = LatestTime(home)
    assert [latest.raise_to(at) for at in (5, 7, 6)] == [5, 7, 7]


async def test_a_days_records_can_be_used_up(program: LocalProgram):
    token = await token_for(program, daily_records=4)
    assert (await program.get("/v1/streams/messages/records", token)).status == 200
    spent = await program.get("/v1/streams/messages/records", token)
    assert (spent.status, spent.code) == (429, "rate_limit_exceeded")
    assert int(spent.headers["retry-after"]) > 0
    message = spent.body["error"]["message"]
    assert "4 records" in message
    assert iso((program.clock.at // DAY + 1) * DAY) in message
    await program.services.pump.flush()
    assert (await program.get("/v1/streams/messages/records", token)).status == 429
    program.clock.at += DAY
    assert (await program.get("/v1/streams/messages/records", token)).status == 200


async def test_introspection_tells_a_resource_server_the_rights_once(program: LocalProgram):
    token = await token_for(program)
    secret = load_secret(program.services.home)
    basic = base64.b64encode(f"{USER}:{secret}".encode()).decode()
    body = f"token={token}".encode()
    refused = await program.ask("POST", "/introspect", body=body)
    assert (refused.status, refused.code) == (401, "context.authentication_failed")
    assert refused.headers["www-authenticate"] == 'Basic realm="introspection"'
    asked = [("authorization", f"Basic {basic}")]
    found = (await program.ask("POST", "/introspect", body=body, headers=asked)).body
    assert found["active"] is True
    assert found["pdpp_token_kind"] == "client"
    assert found["authorization_details"][0]["streams"][0]["fields"] == ["id", "sent_at"]
    assert "exp" not in found
    await program.ask("POST", "/grants/grt_1/revoke", program.owner)
    ended = (await program.ask("POST", "/introspect", body=body, headers=asked)).body
    assert ended == {"active": False, "inactive_reason": "grant_revoked"}
    unknown = (await program.ask("POST", "/introspect", body=b"token=x", headers=asked)).body
    assert unknown == {"active": False}
    assert (await program.ask("POST", "/introspect", headers=asked)).status == 400


class LateLedger:
    """A ledger over a network: an answer was read when it was asked for, and arrives when it is let through."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.arrives = asyncio.Event()
        self.is_read = asyncio.Event()

    async def version(self) -> int:
        return await self._ledger.version()

    async def holder(self, digest: bytes) -> Holder | None:
        found = await self._ledger.holder(digest)
        self.is_read.set()
        await self.arrives.wait()
        return found


async def test_an_answer_that_was_read_before_a_revocation_and_arrives_after_it_admits_no_later_request(
    program: LocalProgram,
):
    token = await token_for(program)
    services, late = program.services, LateLedger(program.services.ledger)
    admission = Admission(
        cast("Ledger", late),
        clock=program.clock,
        latest=services.latest,
        budgets=services.reads.budgets,
        discloser=services.reads.discloser,
    )
    early = asyncio.create_task(admission.admit(token))
    await late.is_read.wait()
    await services.ledger.revoke(GrantId("grt_1"), program.clock.at)
    overtaking = asyncio.create_task(admission.admit(token))
    late.arrives.set()
    # It was admitted when it asked; everything that asks after the revocation is refused.
    assert (await early).grant_ids == ("grt_1",)
    with pytest.raises(GrantRevoked):
        await overtaking
    for _ in range(2):
        with pytest.raises(GrantRevoked):
            await admission.admit(token)
