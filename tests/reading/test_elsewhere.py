"""Search by meaning in a process without a model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import ResourceServerUnreachable
from headgate.model.ids import RequestId
from headgate.model.query import SearchMode, SearchQuery
from headgate.reading import local
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalWithoutModel
from headgate.reading.port import ReadAnswer
from tests.in_process import local_program

QUERY = SearchQuery("bridge", mode=SearchMode.HYBRID)


async def search(place: Path, address: str | None, query: SearchQuery = QUERY) -> dict[str, Any]:
    async with local_program(place) as program:
        access = await program.services.admission.owner_access()
        context = ReadContext(access, RequestId("req_1"), "mcp:search")
        port = LocalWithoutModel(program.services.reads, context, "tok", lambda: address)
        return (await port.search(query)).body()


def test_without_a_server_words_are_searched_and_the_answer_says_so(tmp_path: Path):
    body = asyncio.run(search(tmp_path, None))
    (warning,) = body["meta"]["warnings"]
    assert (warning["code"], warning["param"]) == ("compatibility_fallback", "mode")


def test_a_search_by_words_has_nothing_to_say(tmp_path: Path):
    body = asyncio.run(search(tmp_path, "http://127.0.0.1:9", SearchQuery("bridge")))
    assert not body["meta"].get("warnings")


def test_the_server_of_the_home_searches_by_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def answer(address: str, token: str, query: SearchQuery, _chars: int | None) -> ReadAnswer:
        assert (address, token, query) == ("http://127.0.0.1:9", "tok", QUERY)
        return ReadAnswer(b'{"from": "server"}', RequestId("req_2"))

    monkeypatch.setattr(local, "_search_at", answer)
    assert asyncio.run(search(tmp_path, "http://127.0.0.1:9")) == {"from": "server"}


def test_a_server_that_has_gone_is_one_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def fail(*_asked: Any) -> ReadAnswer:
        raise ResourceServerUnreachable

    monkeypatch.setattr(local, "_search_at", fail)
    assert asyncio.run(search(tmp_path, "http://127.0.0.1:9"))["meta"]["warnings"]
