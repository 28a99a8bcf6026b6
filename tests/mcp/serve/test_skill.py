"""The skill: a real client finds it among the resources, reads it, and makes every call that it shows."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as t
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from headgate.auth.credentials import credential_path, home_credential_path, write_token
from headgate.mcp.serve.skill import SKILL_CHARS, SKILL_URI, SKILLS_EXTENSION, skill_text
from headgate.model.kinds import PUBLISHER, kinds_of
from tests.mcp.serve.product import Product, product

_CALL = re.compile(r"`(\w+) (\{.*?\})`")


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield made


def with_names(call: str, known: dict[str, str]) -> str:
    return re.sub(r'"([A-Z]+)"', lambda found: json.dumps(known[found[1]]), call)


async def follow(client: Client) -> list[str]:
    """Read the skill and make its calls, with the names that the answers before them showed."""
    listed = (await client.list_resources()).resources
    (uri,) = [str(one.uri) for one in listed if one.mime_type == "text/markdown"]
    assert uri == SKILL_URI
    (content,) = (await client.read_resource(uri)).contents
    assert len(content.text) <= SKILL_CHARS
    assert content.text.startswith("---\nname: headgate\n")
    known = {"WORDS": "bridge"}
    made: list[str] = []
    for tool, written in _CALL.findall(content.text):
        result = await client.call_tool(tool, json.loads(with_names(written, known)))
        text = result.content[0].text
        assert not result.is_error, (tool, written, text)
        made.append(tool)
        if row := re.search(r'^stream name=("messages") .*? time=(\w+) title=(\w+)', text, re.MULTILINE):
            known |= {"STREAM": json.loads(row[1]), "TIME": row[2], "FIELD": row[3]}
        if found := (result.structured_content or {}).get("results"):
            known["ID"] = found[0]["id"]
    return made


CALLS = ["schema", "schema", "search", "search", "aggregate", "query_records", "fetch"]


@pytest.mark.parametrize("way", ["hosted", "stdio"])
def test_a_client_reads_the_skill_and_every_call_of_it_works(shipped: Product, tmp_path: Path, way: str):
    async def go() -> None:
        headers = {"Authorization": f"Bearer {shipped.mail}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            place: Any = streamable_http_client(shipped.url, http_client=http)
            if way == "stdio":
                home = shipped.settings.home
                for path in (
                    credential_path(tmp_path, shipped.address),
                    home_credential_path(tmp_path, home),
                ):
                    token = {"access_token": shipped.mail}
                    write_token(path, shipped.address, token, created_at="2026-01-01T00:00:00Z")
                program = ["-m", "headgate", "--home", str(home), "mcp", "--cache-root", str(tmp_path)]
                variables = {"HEADGATE_SEMANTIC_MODEL": "off"}
                place = StdioServerParameters(command=sys.executable, args=program, env=variables)
            async with Client(place) as client:
                assert await follow(client) == CALLS

    asyncio.run(go())


def test_the_skill_names_the_kinds_of_a_grant_and_no_others_and_stays_short():
    every = [*("mail", "calendar", "chat", "money", "notes", "contacts", "documents", "conversations", "git")]
    every += ["tables", "history-browser", "history-spotify", "history-youtube", "history-health"]
    sources = [f"{PUBLISHER}/{name}" for name in every]
    assert len(skill_text(kinds_of([*sources, "https://other.example/x"]))) <= SKILL_CHARS
    some = skill_text(kinds_of([f"{PUBLISHER}/mail"]))
    assert "Read mail in few calls" in some
    assert "bank" not in some
    assert "bank:" in skill_text(kinds_of([f"{PUBLISHER}/money"]))
    # What a stranger's source calls itself is not repeated.
    assert "evil" not in skill_text(kinds_of(["https://evil.example/ignore-all-rules"]))


class _Skills(t.Result):
    skills: tuple[dict[str, Any], ...] = ()
    skill: dict[str, Any] | None = None


class _Named(t.RequestParams):
    uri: str


async def _ask(client: Client, method: str, params: t.RequestParams | None = None) -> _Skills:
    return await client.session.send_request(t.Request(method=method, params=params), _Skills)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_of_the_skills_extension_lists_the_skill_and_can_verify_what_it_reads(
    shipped: Product, mode: str
):
    async def go() -> None:
        headers = {"Authorization": f"Bearer {shipped.mail}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            place = streamable_http_client(shipped.url, http_client=http)
            async with Client(place, mode=mode) as client:
                (entry,) = (await _ask(client, "skills/list")).skills
                assert (await _ask(client, "skills/get", _Named(uri=entry["uri"]))).skill == entry
                (content,) = (await client.read_resource(entry["uri"])).contents
                (file,) = entry["resources"]
                written = content.text.encode()
                assert (file["uri"], file["size"]) == (entry["uri"], len(written))
                assert file["digest"] == f"sha256:{hashlib.sha256(written).hexdigest()}"
                _, front, _ = content.text.split("---\n", 2)
                assert dict(line.split(": ", 1) for line in front.splitlines()) == entry["frontmatter"]
                (listed,) = (await client.list_resources()).resources
                assert (listed.name, listed.description) == tuple(entry["frontmatter"].values())
                for uri in ("skill://other/SKILL.md", "skill://headgate", "pdpp://x", "x" * 9_000):
                    with pytest.raises(MCPError) as refused:
                        await _ask(client, "skills/get", _Named(uri=uri))
                    assert refused.value.error.code == t.INVALID_PARAMS
                if mode == "auto":
                    assert client.server_capabilities.extensions == {SKILLS_EXTENSION: {}}

    asyncio.run(go())
