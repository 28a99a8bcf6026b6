from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.auth.credentials import provider_address
from headgate.errors import ConfigInvalid, HeadgateError, ResourceLimit, ResourceServerUnreachable
from headgate.model.query import BlobQuery, ListQuery, RecordQuery, SearchQuery, WindowQuery
from headgate.reading import remote
from headgate.reading.remote import RemoteResourceServer, http_client
from tests.mcp.serve.provider import Provider, provider


def ask(
    reading: Callable[[RemoteResourceServer], Awaitable[Any]], address: str | None = None
) -> tuple[Any, Provider]:
    async def go(made: Provider) -> Any:
        async with http_client("tok") as client:
            return await reading(RemoteResourceServer(address or made.address, client))

    with provider() as made:
        return asyncio.run(go(made)), made


@pytest.mark.requirement("S1-07", "S3-25")
@pytest.mark.parametrize(
    ("reading", "path"),
    [
        (
            lambda port: port.record(RecordQuery("messages", "m1", "cin_a", fields=("text",))),
            "/v1/streams/messages/records/m1?connection_id=cin_a&fields=text",
        ),
        (
            lambda port: port.window(WindowQuery("messages", "m1", "text", "cin_a", limit_chars=9)),
            "/v1/streams/messages/records/m1/field-window?field=text&connection_id=cin_a&limit_chars=9",
        ),
        (
            lambda port: port.records(ListQuery("messages", cursor="pg1.x")),
            "/v1/streams/messages/records?cursor=pg1.x",
        ),
        (lambda port: port.search(SearchQuery("a b", limit=3)), "/v1/search?q=a+b&limit=3"),
    ],
)
def test_a_read_becomes_one_request(reading: Callable[[RemoteResourceServer], Awaitable[Any]], path: str):
    answer, made = ask(reading)
    assert made.asked == [path]
    assert made.tokens == {"Bearer tok"}
    assert answer.request_id == "req_7"
    assert answer.body()


@pytest.mark.parametrize(
    ("reading", "code", "status", "kind"),
    [
        (lambda port: port.records(ListQuery("nope")), "grant_stream_not_allowed", 403, "permission_error"),
        (lambda port: port.records(ListQuery("oauth")), "invalid_token", 401, "invalid_token"),
        (lambda port: port.stream("moved"), "http_307", 307, "rs_error"),
        (lambda port: port.blob(BlobQuery("blob_" + "0" * 64)), "blob_not_found", 404, "not_found_error"),
    ],
)
def test_a_refusal_keeps_its_code(reading: Callable[..., Awaitable[Any]], code: str, status: int, kind: str):
    with pytest.raises(HeadgateError) as raised:
        ask(reading)
    assert (raised.value.code, raised.value.status, raised.value.type) == (code, status, kind)


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(ResourceServerUnreachable):
        ask(lambda port: port.streams(), "http://127.0.0.1:9")


def test_an_answer_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote, "MAX_ANSWER_BYTES", 100)
    with pytest.raises(ResourceLimit):
        ask(lambda port: port.record(RecordQuery("messages", "m1")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "ftp://a",
        "http://a.example",
        "https://u@a.example",
        "https://a/?q",
        "http://[::1",
        "https://a.example/v1",
    ],
)
def test_an_address_that_is_not_safe_is_refused(text: str):
    with pytest.raises(ConfigInvalid):
        provider_address(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("HTTPS://A.Example", "https://a.example"),
        ("https://a.example:443/", "https://a.example"),
        ("https://a.example:8443", "https://a.example:8443"),
        ("http://LOCALHOST:80", "http://localhost"),
        ("http://[::1]:8321", "http://[::1]:8321"),
    ],
)
def test_spellings_of_an_address_are_one_address(text: str, address: str):
    assert provider_address(text) == address


def test_an_address_loses_its_last_slash():
    assert provider_address("https://a.example/") == "https://a.example"
    assert provider_address("http://127.0.0.1:8321") == "http://127.0.0.1:8321"
