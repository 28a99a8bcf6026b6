"""The connection to the database is cut at each statement of what gives clients their tokens and takes them away.

A client whose answer was lost can do everything again, a code gives tokens once, and what was taken away stays away. The
usual run cuts at some of the statements, the long one at all of them.
"""

from __future__ import annotations

import itertools
import json

import pytest

from headgate.auth.grants import OWNER
from headgate.auth.keys import digest_of
from headgate.model.grant import TokenKind
from headgate.model.ids import ConnectionId, PackageId
from headgate.model.ledger import IssuedGrant, IssuedToken
from tests import postgres
from tests.console.clients import REDIRECT, Client
from tests.console.granting import World, make
from tests.hostile.store.cut_scene import Scene, Work, attempts, tolerantly
from tests.http_clients import HttpAnswer
from tests.policy.worlds import grant, stream_grant

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.usefixtures("nothing_runs_beside"),
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]


@pytest.fixture(params=[3, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "all"])
def stride(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
async def world(at: Scene) -> World:
    return await make(at.program)


async def token_count(at: Scene) -> int:
    connections = at.program.services.ledger.connections  # type: ignore[attr-defined]
    return await connections.look_up(
        lambda database: database.value("SELECT count(*) FROM token WHERE home=:home")
    )


async def test_a_registration_whose_connection_is_cut_can_be_done_again(at: Scene, stride: int):
    addresses = itertools.count(1)

    async def register(mark: str) -> HttpAnswer:
        body = json.dumps({"client_name": mark, "redirect_uris": [REDIRECT]}).encode()
        # From another address each time: one may not register so often.
        sender = f"198.51.100.{next(addresses)}"
        return await at.program.ask("POST", "/oauth/register", body=body, client=sender)

    async def check(mark: str, _is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        assert (await register(mark)).status == 201

    await at.at_each_statement(Work(register, check), stride)


async def test_a_refresh_whose_connection_is_cut_can_be_done_again(at: Scene, world: World, stride: int):
    client, tokens = await world.connected()

    async def refresh(_mark: str) -> HttpAnswer:
        answer = await client.refresh(tokens["refresh_token"])
        if answer.status == 200:
            tokens.update(answer.body)
        return answer

    async def check(_mark: str, _is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        # A client whose answer was lost comes again with the token it has.
        assert await world.reads(tokens["access_token"]) == 200
        assert (await refresh("")).status == 200

    await at.at_each_statement(Work(refresh, check), stride)


async def test_a_code_gives_tokens_once_wherever_the_connection_is_cut(at: Scene, world: World, stride: int):
    client = Client(at.program)
    await client.register()
    codes: dict[str, str] = {}
    given: dict[str, str] = {}
    counted: dict[str, int] = {}

    async def approve(mark: str) -> None:
        codes[mark] = await world.code(client)
        counted[mark] = await token_count(at)

    async def redeem(mark: str) -> HttpAnswer:
        answer = await client.redeem(codes[mark])
        if answer.status == 200:
            given[mark] = answer.body["access_token"]
        return answer

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        if not is_done:
            # Nothing was done, or tokens were made and lost with the answer: then the code is used up.
            made = await token_count(at) - counted[mark]
            assert (await redeem(mark)).status == (400 if made else 200)
        assert mark not in given or await world.reads(given[mark]) == 200
        assert (await redeem(mark)).status == 400

    await at.at_each_statement(Work(redeem, check, approve), stride)
    assert given


async def test_a_token_that_its_client_gave_up_is_of_no_use_wherever_the_connection_was_cut(
    at: Scene, world: World, stride: int
):
    tokens: dict[str, str] = {}
    client = Client(at.program)
    await client.register()

    async def connect(mark: str) -> None:
        tokens[mark] = (await client.redeem(await world.code(client))).body["access_token"]

    async def give_up(mark: str) -> HttpAnswer:
        body = f"token={tokens[mark]}&client_id={client.id}".encode()
        return await at.program.ask("POST", "/oauth/revoke", body=body)

    async def check(mark: str, is_done: bool) -> None:  # noqa: FBT001 - one form for all work
        assert await world.reads(tokens[mark]) in ({401} if is_done else {200, 401})
        assert (await give_up(mark)).status == 200
        assert await world.reads(tokens[mark]) == 401

    await at.at_each_statement(Work(give_up, check, connect), stride)


async def test_the_grants_of_a_package_are_there_with_its_token_or_none_wherever_the_connection_is_cut(
    at: Scene, stride: int
):
    reach = stream_grant("messages", "id", connections=(ConnectionId(at.connection),))
    ledger, package = at.program.services.ledger, PackageId("pkg_cut")
    outcomes: set[bool] = set()
    for attempt in attempts(at.proxy, stride):
        pair = [IssuedGrant(grant(reach, id_=f"grt_{attempt.name}_{n}"), package) for n in (1, 2)]
        token = IssuedToken(
            digest_of(attempt.name), TokenKind.MCP_PACKAGE, OWNER, at.program.clock.at, package_id=package
        )
        with attempt.cut():
            is_done = await tolerantly(ledger.issue(pair, token))
        parts = [await ledger.grant(one.grant.id) is not None for one in pair]
        parts.append((await at.program.get("/v1/streams", attempt.name)).status == 200)
        assert parts in ([True] * 3, [False] * 3)
        assert parts[0] or not is_done
        outcomes.add(parts[0])
    assert outcomes == {True, False}
