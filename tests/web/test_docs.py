"""The page at /docs shows the whole OpenAPI document, takes no word of it for markup, and needs nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from headgate.web.api.docs import docs_page
from headgate.web.api.openapi import openapi_document
from tests.in_process import LocalProgram, local_program

VOID = {"meta", "wbr"}
HOSTILE = (
    "</code></a></style><script>alert(1)</script><img src=//evil.example onerror=x>\"'` $title ${x} &amp;"
)


@dataclass
class Card:
    """One endpoint or shape as a reader sees it."""

    words: str = ""
    rows: list[list[str]] = field(default_factory=list)


class Page(HTMLParser):
    """What a browser makes of the page: the tags, the cards, the targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.cards: dict[str, Card] = {}
        self._card = Card()
        self._open: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags.append((tag, tuple(given)))
        self.addresses += [given[name] for name in ("href", "src", "action", "srcset") if name in given]
        self.ids += [given["id"]] if "id" in given else []
        if tag not in VOID:
            self._open.append(tag)
        if tag == "article":
            self._card = self.cards[given["id"]] = Card()
        elif tag == "tr":
            self._card.rows.append([])
        elif tag == "td":
            self._card.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "article":
            self._card = Card()

    def handle_data(self, data: str) -> None:
        self.words += data
        self._card.words += data
        if "td" in self._open:
            self._card.rows[-1][-1] += data


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def spelt(text: str) -> str:
    """Give a description as it reads once its code is set as code."""
    return text.replace("`", "")


DOCUMENT = openapi_document()
PAGE = Page(docs_page(DOCUMENT))


def test_every_endpoint_is_on_the_page_and_no_other():
    expected = {f"call-{operation['operationId']}" for _, _, operation in operations(DOCUMENT)}
    assert {name for name in PAGE.cards if name.startswith("call-")} == expected
    groups = {tag["name"]: tag["description"] for tag in DOCUMENT["tags"]}
    for method, path, operation in operations(DOCUMENT):
        words = PAGE.cards[f"call-{operation['operationId']}"].words
        assert f"{method.upper()} {path}\n{spelt(operation['summary'])}\n" in words
        (group,) = operation["tags"]
        assert f"\n{groups[group]}\n" in words


def test_every_parameter_is_on_the_page_with_all_there_is_to_say():
    seen = 0
    for _, _, operation in operations(DOCUMENT):
        rows = PAGE.cards[f"call-{operation['operationId']}"].rows
        shown = {row[0]: row[1:] for row in rows if len(row) == 3}
        assert len(shown) == len(operation["parameters"])
        for param in operation["parameters"]:
            needed = "required" if param["required"] else ""
            kind, meaning = shown[f"{param['name']} {param['in']} {needed}"]
            assert meaning == spelt(param["description"])
            assert meaning
            assert_tells(kind, param["schema"])
            seen += 1
    assert seen > 70


def assert_tells(kind: str, schema: dict[str, Any]) -> None:
    for inner in schema.get("anyOf", [schema]):
        if "type" in inner and "enum" not in inner:
            assert {"array": "list of string"}.get(inner["type"], inner["type"]) in kind
        for name, words in (("minimum", "at least"), ("maximum", "at most")):
            assert (f"{words} {inner.get(name)}" in kind) == (name in inner)
    assert (f"default {schema.get('default')}" in kind) == ("default" in schema)
    assert all(choice in kind for choice in schema.get("enum", ()))


def test_every_answer_and_every_body_is_on_the_page():
    for _, _, operation in operations(DOCUMENT):
        card = PAGE.cards[f"call-{operation['operationId']}"]
        for status, response in operation["responses"].items():
            shapes = [
                content["schema"].get("$ref", "string") for content in response.get("content", {}).values()
            ]
            (cell,) = (row[1] for row in card.rows if row[:1] == [status])
            assert cell.startswith(response["description"])
            assert all(f" {shape.rpartition('/')[2]} as " in cell for shape in shapes)
            assert all(way in cell for way in response.get("links", ()))
        body = operation.get("requestBody")
        assert (body is not None) == ("\nBody\n" in card.words)
        if body is not None:
            (media_type,) = body["content"]
            needed = "required" if body["required"] else "may be empty"
            assert f"\n{body['description']} {media_type} {needed}\n" in card.words


def test_every_shape_is_on_the_page_with_its_properties():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        named = {row[0].split()[0]: row[0] for row in PAGE.cards[f"shape-{name}"].rows if row}
        assert set(named) == set(schema.get("properties", {}))
        assert {inner for inner, words in named.items() if "required" in words} == set(
            schema.get("required", ())
        )


def test_what_is_taken_out_of_the_document_leaves_the_page():
    """Otherwise the page would be a second list."""
    document = openapi_document()
    del document["paths"]["/v1/search"]
    document["paths"]["/v1/schema"]["get"]["parameters"].pop(0)
    page = Page(docs_page(document))
    assert "call-search" in PAGE.cards
    assert "call-search" not in page.cards
    assert len(page.cards["call-schema"].rows) == len(PAGE.cards["call-schema"].rows) - 1


def test_every_link_on_the_page_leads_to_a_place_on_it_or_to_the_document():
    assert len(PAGE.ids) == len(set(PAGE.ids))
    inside = {unquote(address[1:]) for address in PAGE.addresses if address.startswith("#")}
    assert inside == set(PAGE.ids)
    assert {address for address in PAGE.addresses if not address.startswith("#")} == {"/openapi.json"}


def test_the_page_says_how_to_authorise():
    assert "headgate grants create --client" in PAGE.words
    assert 'curl -H "Authorization: Bearer $TOKEN" "$SERVER/v1/schema' in PAGE.words


#: The names that the form of a document is made of; all others come from its author.
FORM = frozenset({
    "openapi", "info", "title", "version", "description", "tags", "name", "paths", "operationId", "summary",
    "parameters", "in", "required", "schema", "requestBody", "content", "responses", "links", "components",
    "schemas", "securitySchemes", "bearer", "scheme", "security", "type", "enum", "const", "anyOf", "items",
    "properties", "additionalProperties", "default", "minimum", "maximum", "minLength", "$ref",
})  # fmt: skip


def poisoned(value: Any, spared: frozenset[str]) -> Any:
    """Put hostile words after every text and in place of every number, but for the members that are spared."""
    match value:
        case dict():
            return {
                name if name in FORM else name + HOSTILE: inner if name in spared else poisoned(inner, spared)
                for name, inner in value.items()
            }
        case list():
            return [poisoned(inner, spared) for inner in value]
        case str():
            return value + HOSTILE
        case int() if not isinstance(value, bool):
            return HOSTILE
        case _:
            return value


@pytest.mark.parametrize("spared", [frozenset(), frozenset({"type", "$ref"})])
def test_hostile_words_in_a_document_stay_words(spared: frozenset[str]):
    document = openapi_document()
    document["components"]["schemas"] = document["components"]["schemas"] | {
        "State": {"properties": {"state": {"type": ["null", "object"]}}}
    }
    text = docs_page(poisoned(document, spared))
    page = Page(text)
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in PAGE.tags}
    assert {names for _, names in page.tags} == {names for _, names in PAGE.tags}
    assert len(page.cards) == len(PAGE.cards)
    assert all(address.startswith("#") or address == "/openapi.json" for address in page.addresses)
    assert page.words.count("<script>alert(1)</script>") > 500
    assert "<script" not in text


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        yield made


@pytest.mark.anyio
async def test_the_page_needs_no_token_and_is_the_document_that_is_served(program: LocalProgram):
    answer = await program.get("/docs")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.content.decode() == docs_page((await program.get("/openapi.json")).body)
    assert (await program.ask("POST", "/docs")).status == 405


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_runs_nothing_loads_nothing_and_names_no_other_host(program: LocalProgram, path: str):
    answer = await program.get(path)
    text = answer.content.decode()
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "form", "object", "embed"} & {tag for tag, _ in page.tags}
    assert not [name for _, names in page.tags for name in names if name.startswith("on")]
    assert "//" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert answer.headers["content-security-policy"].split("; ") == [
        "default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'",
    ]  # fmt: skip
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "prefers-color-scheme: dark" in text


@pytest.mark.anyio
async def test_the_front_page_leads_to_it(program: LocalProgram):
    assert Page((await program.get("/")).content.decode()).addresses == ["/docs"]
