"""An owner's token that was limited: which addresses take it, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.auth.admission import SCOPE_ROUTES
from headgate.auth.clients import Clients, token_mark
from headgate.auth.grants import issue_owner_token
from headgate.model.grant import OwnerScope
from headgate.web.app import ADDRESSES
from tests.in_process import LocalProgram, local_program
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        yield made


async def issued(program: LocalProgram, scope: OwnerScope | None = None, days: int | None = None) -> str:
    ledger = program.services.ledger
    return await issue_owner_token(ledger, now=program.clock.at, name="mine", scope=scope, days=days)


async def test_every_route_of_a_scope_is_an_address():
    routes = {row.route for row in ADDRESSES}
    assert set().union(*SCOPE_ROUTES.values()) <= routes


async def test_a_metrics_token_reads_the_metrics_and_nothing_else(program: LocalProgram):
    token = await issued(program, OwnerScope.METRICS)
    assert (await program.get("/metrics", token)).status == 200
    for method, path in (
        ("GET", "/v1/streams"),
        ("POST", "/v1/connections"),
        ("POST", "/mcp"),
        ("POST", "/grants/grt_x/revoke"),
    ):
        answer = await program.ask(method, path, token, body=b"{}")
        assert (answer.status, answer.code) == (403, "permission_error"), path


async def test_an_ingest_token_brings_records_in_and_reads_none(program: LocalProgram):
    await program.declare("mail", declaration())
    connection = await program.connect("mail")
    token = await issued(program, OwnerScope.INGEST)
    path = f"/v1/ingest/messages?connection_id={connection}"
    assert (await program.ask("POST", path, token, body=b"")).status == 200
    for path in ("/v1/streams", "/metrics", "/v1/streams/messages/records"):
        assert (await program.get(path, token)).status == 403


async def test_a_token_ends_with_its_days(program: LocalProgram):
    token = await issued(program, OwnerScope.METRICS, days=2)
    program.clock.at += 2 * DAY - 1
    assert (await program.get("/metrics", token)).status == 200
    program.clock.at += 1
    assert (await program.get("/metrics", token)).status == 401


async def test_a_token_is_listed_by_its_mark_and_ends_by_it(program: LocalProgram):
    token = await issued(program)
    services = program.services
    clients = Clients(services.ledger, clock=program.clock, latest=services.latest)
    listed = next(one for one in await clients.owner_tokens() if one.name == "mine")
    assert (await program.get("/v1/streams", token)).status == 200
    await clients.revoke_owner_token(token_mark(listed))
    assert (await program.get("/v1/streams", token)).status == 401
    assert listed.digest not in {one.digest for one in await clients.owner_tokens()}
