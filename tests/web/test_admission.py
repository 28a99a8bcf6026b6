"""Who is let in, and how everybody else is turned away."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.audit.activity import Activity, LogFilter, by_day
from headgate.model.ids import ConnectionId, GrantId
from tests.auth.test_admission import token_for
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, shop_document, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
DAY = 24 * 3600 * 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        await made.declare("mail", declaration())
        yield made


async def test_no_token_and_an_unknown_token_get_the_challenge(program: LocalProgram):
    for token in (None, "hg_unknown", "", "ü"):
        answer = await program.get("/v1/schema", token)
        assert (answer.status, answer.code) == (401, "authentication_error")
        metadata = answer.body["error"]["resource_metadata"]
        assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
        found = await program.get(metadata.removeprefix("http://127.0.0.1"))
        assert found.body["resource"] == "http://127.0.0.1"


async def test_a_package_reads_all_its_sources_over_rest_and_nothing_else(program: LocalProgram):
    await token_for(program)
    await program.declare("shop", shop_document())
    mail, shop, other = [await program.connect(key) for key in ("mail", "shop", "mail")]
    package = await program.grant(
        grant(stream_grant("messages", "id", connections=(ConnectionId(mail),)), id_="grt_a"),
        grant(stream_grant("orders", "id", connections=(ConnectionId(shop),)), id_="grt_b", source="shop"),
    )
    schema = (await program.get("/v1/schema", package)).body
    assert [one["connector_key"] for one in schema["connectors"]] == ["mail", "shop"]
    for stream in ("messages", "orders"):
        assert (await program.get(f"/v1/streams/{stream}/records", package)).status == 200
    hidden = await program.get(f"/v1/streams/messages/records?connection_id={other}", package)
    assert hidden.code == "connection_not_found"
    assert (await program.get("/v1/streams/attachments/records", package)).code == "grant_stream_not_allowed"


async def test_a_package_whose_grants_are_all_revoked_is_challenged_where_agents_call(program: LocalProgram):
    await token_for(program)
    await program.declare("shop", shop_document())
    mail, shop = [ConnectionId(await program.connect(key)) for key in ("mail", "shop")]
    package = await program.grant(
        grant(stream_grant("messages", "id", connections=(mail,)), id_="grt_a"),
        grant(stream_grant("orders", "id", connections=(shop,)), id_="grt_b", source="shop"),
    )
    found: list[tuple[int, int]] = []
    for one in ("grt_a", "grt_b"):
        assert (await program.ask("POST", f"/grants/{one}/revoke", program.owner)).body == {"revoked": True}
        agents = await program.ask("POST", "/mcp", package, body=b"{}")
        found.append((agents.status, (await program.get("/v1/schema", package)).status))
    assert found == [(400, 200), (401, 403)]
    assert "www-authenticate" in agents.headers


async def test_owner_routes_refuse_clients(program: LocalProgram):
    token = await token_for(program)
    for method, path in (
        ("PUT", "/v1/declarations/mail"),
        ("POST", "/v1/connections"),
        ("GET", "/v1/connections/x"),
        ("DELETE", "/v1/connections/x"),
        ("POST", "/v1/ingest/messages?connection_id=x"),
        ("DELETE", "/v1/streams/messages/records/m1?connection_id=x"),
        ("POST", "/v1/blobs"),
        ("PUT", "/v1/state/x"),
    ):
        answer = await program.ask(method, path, token, body=b"{}")
        assert (answer.status, answer.code) == (403, "permission_error"), path
    assert (await program.get("/metrics", token)).status == 403
    assert (await program.get("/metrics", program.owner)).status == 200


async def test_hosts_origins_and_versions_that_are_not_ours_are_turned_away(program: LocalProgram):
    for header, value, code in (
        ("host", "evil.example", "misdirected_request"),
        ("origin", "https://evil.example", "permission_error"),
        ("pdpp-version", "1999-01-01", "unsupported_version"),
    ):
        answer = await program.ask("GET", "/v1/schema", program.owner, headers=[(header, value)])
        assert answer.code == code
    fine = await program.ask(
        "GET", "/v1/schema", program.owner,
        headers=[("origin", "http://127.0.0.1"), ("pdpp-version", "2026-04-06"), ("request-id", "mine.1")],
    )  # fmt: skip
    assert (fine.status, fine.headers["request-id"], fine.headers["pdpp-version"]) == (
        200,
        "mine.1",
        "2026-04-06",
    )


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8321", True),
        ("localhost", True),
        ("[::1]:80", True),
        ("192.168.1.7", True),
        ("home.example:443", True),
        ("evil.example", False),
        ("", False),
        ("127.0.0.1.evil.example", False),
        ("8.8.8.8", False),
        ("home.example.evil", False),
        ("home.example.", True),
        ("HOME.example:1", True),
        ("localhost:evil.com", False),
        ("localhost:", False),
        ("localhost:65535", True),
        ("localhost:65536", False),
        ("127.0.0.1:80@evil", False),
        ("[::1].evil.example", False),
        ("[::1]:80:90", False),
        ("::1", False),
        ("127.0.0.1 ", False),
        ("localhost/", False),
        ("localhost#", False),
        ("home.example" + "." * 300, False),
    ],
)
async def test_a_host_is_ours_by_name_or_because_it_is_at_home(host: str, known: bool):  # noqa: FBT001 - a table
    from headgate.web.admission import is_known_host  # noqa: PLC0415 - only here

    assert is_known_host(host, frozenset({"home.example"})) is known


async def test_a_header_that_must_stand_alone_and_does_not_is_refused(program: LocalProgram):
    answer = await program.ask(
        "GET", "/v1/schema", program.owner, headers=[("authorization", "Bearer other")]
    )
    assert answer.status == 400


async def test_too_many_requests_of_one_token_are_refused_and_others_are_not(tmp_path: Path):
    async with local_program(tmp_path, rate_limit="2") as program:
        statuses = [(await program.get("/v1/streams", program.owner)).status for _ in range(8)]
        assert statuses[:4] == [200] * 4
        assert 429 in statuses
        assert (await program.get("/v1/streams", "hg_other")).status == 401


async def test_guessing_tokens_is_slowed_down(program: LocalProgram):
    statuses = {(await program.get("/v1/schema", f"hg_{n}")).status for n in range(150)}
    assert statuses == {401, 429}


async def test_an_unexpected_failure_is_reported_without_its_message(
    program: LocalProgram, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_args):
        raise RuntimeError("a secret value")

    await program.connect("mail")
    monkeypatch.setattr(program.services.reads.store, "summaries", fail)
    answer = await program.get("/v1/streams", program.owner)
    assert (answer.status, answer.code) == (500, "api_error")
    assert b"secret" not in answer.content


async def test_owner_routes_take_records_in_and_out(program: LocalProgram):
    made = await program.ask(
        "POST", "/v1/connections", program.owner, body=b'{"connector_key":"mail","display_name":"Home"}'
    )
    assert made.status == 201
    name = made.body["connection_id"]
    lines = b'{"key":"a","data":{"id":"a","sent_at":"2026-03-01T00:00:00Z"},"emitted_at":"2026-03-01T00:00:00Z"}\nnope\n'
    report = await program.ask("POST", f"/v1/ingest/messages?connection_id={name}", program.owner, body=lines)
    assert (report.body["records_accepted"], report.body["records_rejected"]) == (1, 1)
    assert report.body["errors"][0]["index"] == 1
    again = await program.ask("GET", f"/v1/connections/{name}", program.owner)
    assert again.body["display_name"] == "Home"
    renamed = await program.ask(
        "PATCH", f"/v1/connections/{name}", program.owner, body=b'{"display_name":"Work"}'
    )
    assert renamed.body["display_name"] == "Work"
    state = await program.ask("PUT", f"/v1/state/{name}", program.owner, body=b'{"cursor":7}')
    assert state.body["state"] == {"cursor": 7}
    stored = await program.ask(
        "POST", "/v1/blobs", program.owner, body=b"abc", headers=[("content-type", "text/plain")]
    )
    assert (stored.status, stored.body["size_bytes"]) == (201, 3)
    removed = await program.ask(
        "DELETE", f"/v1/streams/messages/records/a?connection_id={name}", program.owner
    )
    assert removed.status == 204
    assert (await program.ask("DELETE", f"/v1/connections/{name}", program.owner)).status == 204
    assert (await program.ask("GET", f"/v1/connections/{name}", program.owner)).status == 404


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/connections", b"[]", 400),
        ("POST", "/v1/connections", b"{", 400),
        ("POST", "/v1/connections", b'{"connector_key":"Mail"}', 400),
        ("POST", "/v1/connections", b'{"connector_key":"other"}', 404),
        ("POST", "/v1/connections", b'{"connector_key":"mail","x":1}', 400),
        ("POST", "/v1/connections", b'{"connector_key":"mail","display_name":"a\\u0000"}', 400),
        ("POST", "/v1/connections", b" " * 70_000, 413),
        ("PUT", "/v1/declarations/mail", b"{}", 400),
        ("POST", "/v1/ingest/messages?connection_id=cin_none", b"", 404),
        ("POST", "/v1/ingest/messages", b"", 400),
        ("PUT", "/v1/state/cin_none", b"{}", 404),
        ("PUT", "/v1/connections", b"", 405),
        ("GET", "/v1/nothing/here", b"", 404),
        ("GET", "/v1", b"", 404),
    ],
)
async def test_owner_routes_refuse_what_they_do_not_take(
    program: LocalProgram, method: str, path: str, body: bytes, status: int
):
    assert (await program.ask(method, path, program.owner, body=body)).status == status


async def test_a_key_with_a_slash_has_an_address(program: LocalProgram):
    connection = await program.connect("mail")
    await program.ingest(connection, "messages", [record("a/b?c", sent_at="2026-03-01T00:00:00Z")])
    answer = await program.get("/v1/streams/messages/records/a%2Fb%3Fc", program.owner)
    assert answer.body["id"] == "a/b?c"
    assert (await program.get(answer.body["links"]["self"], program.owner)).body["id"] == "a/b?c"


async def test_a_token_that_has_ended_and_goes_on_asking_does_not_fill_the_log(tmp_path: Path):
    async with local_program(tmp_path) as program:
        token = await program.grant(grant(stream_grant("messages", "id")))
        await program.services.ledger.revoke(GrantId("grt_1"), program.clock.at)
        for number in range(300):
            program.clock.at += 1_000_000
            assert (await program.get("/v1/streams", token)).status == 403, number
        program.clock.at += 3600_000_000
        assert (await program.get("/v1/streams", token)).status == 403
        await program.services.pump.flush()
        entries = await program.services.ledger.newest(None, 1000)
        events = [json.loads(one.event) for one in reversed(entries)]
    refused = [one for one in events if one["outcome"] == "grant_revoked"]
    assert [one.get("refusals", 1) for one in refused] == [1, 1, 1, 1, 1, 5, 10, 20, 40, 80, 140, 1]
    assert {one["client_id"] for one in refused} == {"agent"}


async def test_refusals_that_were_only_counted_are_logged_at_the_end(tmp_path: Path):
    async with local_program(tmp_path) as program:
        token = await program.grant(grant(stream_grant("messages", "id")))
        await program.services.ledger.revoke(GrantId("grt_1"), program.clock.at)
        for _ in range(9):
            await program.get("/v1/streams", token)
    async with local_program(tmp_path) as program:
        log = Activity(program.services.ledger, program.services.home)
        (found,) = by_day((await log.page(LogFilter(), before=None, limit=100)).reads)
        assert found.refusals == 9
