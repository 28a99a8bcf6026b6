"""Every row of the table of addresses, walked with every kind of caller: status, challenge, log, metric, limit."""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from headgate.auth.documents import USER
from headgate.model.ids import ConnectionId
from headgate.web.admission import Callers
from headgate.web.api.definitions import ENDPOINTS
from headgate.web.api.oauth import oauth_addresses
from headgate.web.app import ADDRESSES, GATEWAY
from headgate.web.front import Address
from headgate.web.refusals import Flavour
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
HOUR = 3600 * 1_000_000
ROWS = (*ADDRESSES, GATEWAY)
#: More than the burst of failed tokens that one network address may send.
GUESSES = 150
LARGE = b" " * (5 * 1024 * 1024)
OAUTH_PATHS = ("/oauth/", "/token", "/revoke", "/register", "/device_authorization")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass(frozen=True)
class Outcome:
    """What admission does with a caller: a status, or None where the handler answers; and whether it is logged."""

    status: int | None
    code: str | None = None
    is_logged: bool = False


ADMITTED = Outcome(None)
UNKNOWN = Outcome(401, "authentication_error")
DOUBLED = Outcome(400, "invalid_request")
GUESSING = Outcome(429, "rate_limit_exceeded")
REFUSED = Outcome(403, "permission_error", is_logged=True)
CONSENT_OVER = {
    "revoked": Outcome(403, "grant_revoked", is_logged=True),
    "ended": Outcome(403, "grant_expired", is_logged=True),
}
STRANGERS = {"none": UNKNOWN, "malformed": UNKNOWN, "unknown": UNKNOWN, "expired": UNKNOWN}
BASIC = Outcome(401, "context.authentication_failed")
KINDS = ("owner", "client", "package")
CASES = (*STRANGERS, *CONSENT_OVER, *KINDS)

EXPECTED: dict[Callers, dict[str, Outcome]] = {
    Callers.ANYONE: dict.fromkeys(CASES, ADMITTED),
    Callers.READERS: STRANGERS | CONSENT_OVER | {"owner": ADMITTED, "client": ADMITTED, "package": ADMITTED},
    Callers.OWNER: STRANGERS | CONSENT_OVER | {"owner": ADMITTED, "client": REFUSED, "package": REFUSED},
    Callers.AGENTS: STRANGERS
    | {case: replace(outcome, status=401) for case, outcome in CONSENT_OVER.items()}
    | {"owner": REFUSED, "client": ADMITTED, "package": ADMITTED},
    Callers.HOLDERS: STRANGERS | dict.fromkeys((*CONSENT_OVER, *KINDS), ADMITTED),
    # What one that is admitted may call is decided behind the edge.
    Callers.GATEWAY_CLIENTS: STRANGERS | CONSENT_OVER | dict.fromkeys(KINDS, ADMITTED),
    Callers.RESOURCE_SERVERS: dict.fromkeys(CASES, BASIC),
}


@dataclass(frozen=True)
class World:
    program: LocalProgram
    tokens: dict[str, str | None]
    grants: dict[str, str]

    async def call(self, row: Address, case: str, request_id: str, **more: Any) -> HttpAnswer:
        path = re.sub(r"\{(\w+)\}", lambda place: self._place(place[1], case), row.path)
        token = self.tokens[case]
        headers = [("request-id", request_id), *more.pop("headers", ())]
        if case == "malformed":
            headers.append(("authorization", "Bearer"))
        return await self.program.ask(row.method, path, token, headers=headers, body=b"{}", **more)

    def _place(self, name: str, case: str) -> str:
        places = {"grant_id": self.grants.get(case, "grt_none"), "stream": "messages"}
        return places.get(name, "x")

    def password(self) -> tuple[str, str]:
        """Give the header by which a resource server is known."""
        secret = (self.program.services.home.keys / "introspection").read_text(encoding="ascii").strip()
        return "authorization", f"Basic {base64.b64encode(f'{USER}:{secret}'.encode()).decode()}"

    async def logged(self, request_id: str) -> list[dict[str, Any]]:
        await self.program.services.pump.flush()
        events = [json.loads(entry.event) for entry in await self.program.services.ledger.newest(None, 1000)]
        return [event for event in events if event["request_id"] == request_id]


@asynccontextmanager
async def world(place: Path, **flags: str) -> AsyncIterator[World]:
    servers = place / "servers.json"
    servers.write_text('{"mcpServers": {}}', encoding="utf-8")
    async with local_program(
        place, gateway_servers=str(servers), gateway_clients="agent", **flags
    ) as program:
        await program.declare("mail", declaration())
        connection = (ConnectionId(await program.connect("mail")),)
        numbers = itertools.count()

        def granted(**changes: Any) -> Any:
            made = grant(stream_grant("messages", "id", connections=connection), id_=f"grt_{next(numbers)}")
            return replace(made, **changes)

        client, revoked = granted(), granted()
        tokens: dict[str, str | None] = {
            "none": None,
            "malformed": None,
            "unknown": "hg_unknown",
            "expired": await program.grant(granted(), expires_at=program.clock.at + HOUR),
            "revoked": await program.grant(revoked),
            "ended": await program.grant(granted(expires_at=program.clock.at + HOUR)),
            "owner": program.owner,
            "client": await program.grant(client),
            "package": await program.grant(granted(), granted()),
        }
        assert await program.services.ledger.revoke(revoked.id, program.clock.at)
        program.clock.at += 2 * HOUR
        yield World(program, tokens, {"client": client.id, "revoked": revoked.id})


def challenge(row: Address, case: str, code: str) -> str:
    """Write the challenge that belongs to a 401 of a row."""
    metadata = "http://127.0.0.1/.well-known/oauth-protected-resource"
    if row.flavour is Flavour.INTROSPECTION:
        return 'Basic realm="introspection"'
    if row.flavour is Flavour.REST:
        return f'Bearer resource_metadata="{metadata}"'
    error = "" if case == "none" else f', error="invalid_token", error_description="{code}"'
    return f'Bearer resource_metadata="{metadata}/mcp", scope="records:read"{error}'


def is_from_the_handler(row: Address, answer: HttpAnswer) -> bool:
    """Say whether a request got past admission."""
    if answer.status not in {401, 403, 429}:
        return True
    # Only a grant that is not the caller's is refused by a handler.
    return (
        row.callers is Callers.HOLDERS
        and answer.body["error"]["message"] == "This is not a grant of this token."
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.route)
async def test_every_address_treats_every_caller_as_the_table_says(tmp_path: Path, row: Address):
    async with world(tmp_path) as made:
        metrics = made.program.metrics
        for case, outcome in EXPECTED[row.callers].items():
            request_id = f"case-{case}"
            seconds = metrics.seconds[row.route]
            answer = await made.call(row, case, request_id)
            counted = metrics.requests[row.route, answer.status]
            assert answer.headers["request-id"] == request_id
            assert counted > 0
            assert metrics.seconds[row.route] > seconds
            events = [event for event in await made.logged(request_id) if event["outcome"] == outcome.code]
            assert [event["via"] for event in events] == [row.route] * outcome.is_logged, case
            if outcome.status is None:
                assert is_from_the_handler(row, answer), (case, answer)
                continue
            assert (answer.status, answer.code) == (outcome.status, outcome.code), case
            if answer.status == 401:
                assert outcome.code is not None
                assert answer.headers["www-authenticate"] == challenge(row, case, outcome.code)


async def test_strict_core_refuses_packages_at_every_address_for_readers_and_admits_them_for_agents(
    tmp_path: Path,
):
    async with world(tmp_path, strict_core="true") as made:
        for number, row in enumerate(ROWS):
            answer = await made.call(row, "package", f"strict-{number}")
            if row.callers is Callers.READERS:
                assert (answer.status, answer.code) == (REFUSED.status, REFUSED.code), row.route
                assert [event["via"] for event in await made.logged(f"strict-{number}")] == [row.route]
                assert is_from_the_handler(row, await made.call(row, "client", f"client-{number}")), row.route
            elif row.callers is Callers.AGENTS:
                assert is_from_the_handler(row, answer), row.route


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.route)
async def test_a_doubled_authorization_header_is_refused_at_every_address(tmp_path: Path, row: Address):
    async with world(tmp_path) as made:
        twice = [("authorization", "Bearer one"), ("authorization", "Bearer two")]
        answer = await made.call(row, "none", "doubled", headers=twice)
        assert answer.status == 400
        assert made.program.metrics.requests[row.route, 400] == 1


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.route)
async def test_one_who_guesses_is_slowed_down_at_every_address_with_a_token_and_others_are_not(
    tmp_path: Path, row: Address
):
    async with world(tmp_path) as made:
        statuses: list[int] = []
        for number in range(GUESSES):
            guess = base64.b64encode(f"{USER}:{number}".encode()).decode()
            scheme = f"Basic {guess}" if row.callers is Callers.RESOURCE_SERVERS else f"Bearer hg_{number}"
            headers = [("authorization", scheme)]
            answer = await made.call(row, "none", f"guess-{number}", headers=headers, client="127.0.0.9")
            statuses.append(answer.status)
        is_limited = row.callers is not Callers.ANYONE
        assert (429 in statuses) is is_limited
        assert statuses[0] != 429
        assert not await made.logged("guess-0")
        if is_limited:
            assert answer.headers["retry-after"] == "2"
        # Those with a valid token are not slowed down, even at the same address.
        if row.callers is Callers.RESOURCE_SERVERS:
            answer = await made.call(row, "none", "after", headers=[made.password()], client="127.0.0.9")
            assert answer.status != 429
            return
        for case in ("owner", "client", "package"):
            assert (await made.call(row, case, f"after-{case}", client="127.0.0.9")).status != 429


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.route)
async def test_a_token_that_asks_too_often_waits_at_every_address_that_takes_tokens(
    tmp_path: Path, row: Address
):
    async with world(tmp_path, rate_limit="1") as made:
        case = "client" if row.callers in {Callers.AGENTS, Callers.GATEWAY_CLIENTS} else "owner"
        statuses = [(await made.call(row, case, f"ask-{number}")).status for number in range(4)]
        takes_tokens = row.callers not in {Callers.ANYONE, Callers.RESOURCE_SERVERS}
        assert (429 in statuses) is takes_tokens
        # A second later it may ask again.
        made.program.clock.at += 1_000_000
        assert (await made.call(row, case, "later")).status != 429


async def test_a_resource_server_with_the_password_is_admitted(tmp_path: Path):
    row = next(row for row in ROWS if row.callers is Callers.RESOURCE_SERVERS)
    async with world(tmp_path) as made:
        answer = await made.call(row, "none", "good", headers=[made.password()])
        assert (answer.status, answer.body["error"]["param"]) == (400, "token")


def rows_with_small_bodies() -> Iterator[Address]:
    """Give the addresses that take a body, and less of it than `LARGE`."""
    service: Any = None
    for row in (*ROWS, *oauth_addresses(service)):
        body = None if row.endpoint is None else row.endpoint.body
        takes_form = row.method == "POST" and row.path.startswith(("/introspect", *OAUTH_PATHS))
        if row.max_body_bytes or takes_form or (body is not None and body.most_bytes < len(LARGE)):
            yield row


@pytest.mark.parametrize("row", list(rows_with_small_bodies()), ids=lambda row: row.route)
async def test_a_body_that_is_too_large_is_refused_with_a_code_wherever_one_is_read(
    row: Address, tmp_path: Path
):
    async with world(tmp_path) as made:
        takes_password = row.callers is Callers.RESOURCE_SERVERS
        token = {Callers.OWNER: "owner", Callers.ANYONE: "none"}.get(row.callers, "client")
        answer = await made.program.ask(
            row.method,
            row.path.replace("{", "").replace("}", ""),
            None if takes_password else made.tokens[token],
            headers=[made.password()] if takes_password else [],
            body=LARGE,
        )
        assert (answer.status, answer.code) == (413, "resource_limit")
        assert answer.headers["content-type"].startswith("application/json")


async def test_what_is_not_in_the_table_is_refused_and_counted_without_the_callers_words(tmp_path: Path):
    async with world(tmp_path) as made:
        missing = await made.program.get("/nothing/here")
        assert (missing.status, missing.code) == (404, "not_found")
        other = await made.program.ask("BREW", "/v1/connections")
        assert (other.status, other.headers["allow"], other.content) == (405, "POST", b"")
        stray = await made.program.ask("GET", "/healthz", headers=[("host", "evil.example")])
        assert (stray.status, stray.code) == (421, "misdirected_request")
        counted = made.program.metrics.requests
        assert counted["unknown", 404] == counted["/v1/connections", 405] == counted["GET /healthz", 421] == 1


async def test_every_endpoint_of_the_openapi_document_is_a_row_and_every_path_is_there_once():
    assert [row.endpoint for row in ADDRESSES if row.endpoint is not None] == list(ENDPOINTS)
    routes = [row.route for row in ROWS]
    assert len(routes) == len(set(routes))
    undefined = {row.path for row in ROWS if row.path.startswith("/v1") and row.endpoint is None}
    assert undefined == set()
