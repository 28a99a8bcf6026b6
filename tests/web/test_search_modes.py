"""Search by meaning over REST and MCP: offered where there is a model, and refused, not replaced, where there is none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import ConfigInvalid
from headgate.model.plan import MAX_QUERY_CHARS
from headgate.store import quick
from headgate.store.models import choice
from headgate.store.models.choice import chosen_model
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration
from tests.store.hostile_queries import HOSTILE_QUERIES

pytestmark = pytest.mark.anyio
_METADATA = "/.well-known/oauth-protected-resource"


@asynccontextmanager
async def mail(place: Path, model: str) -> AsyncIterator[tuple[LocalProgram, str, str]]:
    """A home with three messages; yields it with its connection and the token of a client that sees the subjects."""
    async with local_program(place, semantic_model=model) as program:
        document = declaration()
        document["streams"][0]["query"]["search"]["semantic_fields"] = ["subject", "body"]
        await program.declare("mail", document)
        connection = await program.connect("mail", "Home")
        subjects = {
            "v1": "Your visit to Dr. Weber on Friday",
            "v2": "The roof is repaired",
            "v3": "Soup recipe",
        }
        lines = [
            record(key, sender="ann", subject=subject, sent_at="2026-03-02T00:00:00Z", body="dentist")
            for key, subject in subjects.items()
        ]
        await program.ingest(connection, "messages", lines)
        assert await program.services.store.wait_for_vectors(60)  # type: ignore[attr-defined]
        fields = ("id", "sender", "subject", "sent_at")
        token = await program.grant(grant(stream_grant("messages", *fields, connections=(connection,))))
        yield program, connection, token


async def _tool(program: LocalProgram, token: str, method: str, **params: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-06-18"),
    ]
    answer = await program.ask("POST", "/mcp", token, body=json.dumps(message).encode(), headers=headers)
    return answer.body["result"]


async def test_hits_name_what_found_them(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        semantic = (await program.get("/v1/search/semantic?q=doctor+appointment", token)).body
        first = semantic["data"][0]
        assert (first["record_key"], first["matched_fields"]) == ("v1", ["subject"])
        assert first["retrieval_mode"] == "semantic"
        assert first["score"]["kind"] == "cosine_similarity"
        assert first["evidence_excerpts"][0]["provenance"] == "semantic_match"
        assert semantic["url"] == "/v1/search/semantic"
        assert semantic["meta"]["recall"]["complete"] is True
        hybrid = (await program.get("/v1/search/hybrid?q=roof", token)).body["data"][0]
        assert hybrid["record_key"] == "v2"
        assert hybrid["retrieval_mode"] == "hybrid"
        assert hybrid["retrieval_sources"] == ["lexical", "semantic"]
        assert hybrid["scores"].keys() == {"lexical", "semantic"}


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
async def test_pages_lead_on_in_every_mode(tmp_path: Path, mode: str):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        found: list[str] = []
        path = f"/v1/search/{mode}?q=visit+roof+soup&limit=1"
        while path:
            body = (await program.get(path, token)).body
            found += [hit["record_key"] for hit in body["data"]]
            path = body["links"]["next"]
        whole = (await program.get(f"/v1/search/{mode}?q=visit+roof+soup", token)).body["data"]
        assert found == [hit["record_key"] for hit in whole]
        assert len(found) >= 2


async def test_a_hidden_field_is_not_compared(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        hits = (await program.get("/v1/search/semantic?q=dentist", token)).body["data"]
        assert all(hit["matched_fields"] == ["subject"] for hit in hits)
        owner = (await program.get("/v1/search/semantic?q=dentist", program.owner)).body["data"]
        assert owner[0]["matched_fields"] == ["body"]


async def test_every_surface_names_what_is_on(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        schema = (await program.get("/v1/streams/messages", token)).body["field_capabilities"]
        assert schema["subject"]["semantic_search"] == {"declared": True, "usable": True}
        offered = (await program.get(_METADATA)).body["capabilities"]
        assert offered["semantic_retrieval"]["endpoint"] == "/v1/search/semantic"
        assert offered["hybrid_retrieval"]["supported"] is True
        tools = {tool["name"]: tool for tool in (await _tool(program, token, "tools/list"))["tools"]}
        assert tools["search"]["inputSchema"]["properties"]["mode"]["enum"] == [
            "lexical",
            "semantic",
            "hybrid",
        ]
        text = await _tool(program, token, "tools/call", name="schema", arguments={"stream": "messages"})
        assert "lexical|semantic|hybrid" in text["content"][0]["text"]
        found = await _tool(
            program,
            token,
            "tools/call",
            name="search",
            arguments={"q": "doctor appointment", "mode": "hybrid"},
        )
        assert "Dr. Weber" in found["content"][0]["text"]


async def test_the_tool_searches_by_both_and_says_so_and_by_words_where_every_match_is_wanted(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):

        async def called(**arguments: Any) -> tuple[str, dict[str, Any]]:
            answer = await _tool(program, token, "tools/call", name="search", arguments=arguments)
            return answer["content"][0]["text"], answer["structuredContent"]["data"]

        text, found = await called(query="doctor appointment")
        assert "hit(s) by words and meaning. " in text.splitlines()[0]
        assert "· by meaning" in text
        assert found["meta"]["mode"] == "hybrid"
        text, found = await called(query="roof")
        assert "1 matched all" in text
        for exact in ({"mode": "lexical"}, {"limit": 0}, {"sort": "time"}):
            text, found = await called(query="roof", **exact)
            assert text.startswith("search: ")
            assert "by words" not in text
            assert (found["meta"]["count"], "mode" in found["meta"]) == (1, False)
        assert (await program.get("/v1/search?q=doctor+appointment", token)).body["data"] == []


@pytest.mark.parametrize(
    "asked",
    [
        {"query": '"doctor appointment"'},
        {"query": "doctor OR appointment"},
        {"query": "doctor -roof"},
        {"query": "doctor*"},
        {"query": "doctor appointment", "understand": False},
    ],
)
async def test_a_query_that_says_which_words_it_means_is_answered_by_words_alone(
    tmp_path: Path, asked: dict[str, Any]
):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        answer = await _tool(program, token, "tools/call", name="search", arguments=asked)
        assert answer["structuredContent"]["results"] == []
        assert answer["content"][0]["text"].startswith("search: 0 hit(s). ")


async def test_over_rest_both_is_a_preference_and_its_pages_go_on(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        prefer = [("prefer", "by-both=1")]
        first = (await program.get("/v1/search?q=roof+visit&limit=1", token, headers=prefer)).body
        assert (first["meta"]["mode"], first["url"]) == ("hybrid", "/v1/search")
        second = (await program.get(first["links"]["next"], token, headers=prefer)).body
        shown = [hit["record_key"] for page in (first, second) for hit in page["data"]]
        assert len(shown) == len(set(shown)) == 2
        assert "mode" not in (await program.get("/v1/search?q=roof", token)).body["meta"]


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
async def test_without_a_model_nothing_is_offered_and_nothing_takes_its_place(tmp_path: Path, mode: str):
    async with mail(tmp_path, "off") as (program, _, token):
        refused = await program.get(f"/v1/search/{mode}?q=roof", token)
        assert (refused.status, refused.code) == (404, "unsupported")
        assert "lexical" in refused.body["error"]["hint"]
        schema = (await program.get("/v1/streams/messages", token)).body["field_capabilities"]
        assert schema["subject"]["semantic_search"]["usable"] is False
        assert f"{mode}_retrieval" not in (await program.get(_METADATA)).body["capabilities"]
        tools = {tool["name"]: tool for tool in (await _tool(program, token, "tools/list"))["tools"]}
        assert tools["search"]["inputSchema"]["properties"]["mode"]["enum"] == ["lexical"]
        failed = await _tool(
            program, token, "tools/call", name="search", arguments={"q": "roof", "mode": mode}
        )
        assert failed["isError"]
        by_words = await _tool(program, token, "tools/call", name="search", arguments={"q": "roof"})
        assert "mode" not in by_words["structuredContent"]["data"]["meta"]


async def test_a_hostile_query_is_answered_or_refused_by_name_on_every_surface(tmp_path: Path):
    async with mail(tmp_path, "multilingual") as (program, _, token):
        queries = [q for q in HOSTILE_QUERIES if "\ud800" not in q]
        for mode, path in (
            ("lexical", "/v1/search"),
            ("semantic", "/v1/search/semantic"),
            ("hybrid", "/v1/search/hybrid"),
        ):
            for q in queries:
                answer = await program.get(path, token, params={"q": q})
                refused = (400, "q") if len(q) > MAX_QUERY_CHARS else (answer.status, "q")
                assert answer.status in {200, 400}
                named = answer.body["error"]["param"] if answer.status == 400 else "q"
                assert (answer.status, named) == refused
                assert len(answer.content) < 20_000
                called = await _tool(
                    program, token, "tools/call", name="search", arguments={"q": q, "mode": mode}
                )
                assert called.get("isError", False) == (answer.status == 400)
                assert len(json.dumps(called)) < 40_000


def test_a_model_that_is_named_and_missing_is_a_mistake_and_auto_is_then_off(monkeypatch: pytest.MonkeyPatch):
    for module in (choice, quick):
        monkeypatch.setattr(module, "find_spec", lambda _name: None)
    assert chosen_model("auto") is None
    assert chosen_model("off") is None
    with pytest.raises(ConfigInvalid) as refused:
        chosen_model("multilingual")
    assert "headgate[semantic]" in refused.value.hint
