"""The reference of declarations: each of its examples is declared and ingested for real."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from headgate.schema.document import DeclarationDocument, StreamDocument
from headgate.web.api.openapi import openapi_document
from tests.in_process import local_program

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "declaration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r'^## Example: (.+?)\n\n```json title="Declaration"\n(.*?)^```\n\n'
    r'```json title="Lines of (\w+)"\n(.*?)^```\n\n```json title="Answer"\n(.*?)^```',
    PAGE,
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _schema(name: str) -> jsonschema_rs.Validator:
    document: dict[str, Any] = openapi_document()
    whole = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    return jsonschema_rs.validator_for(whole, offline=True)


def test_every_block_of_the_page_belongs_to_an_example():
    assert len(EXAMPLES) == PAGE.count("## Example") == PAGE.count('title="Declaration"')


@pytest.mark.anyio
@pytest.mark.parametrize(("declared", "stream", "lines", "answer"), [one[1:] for one in EXAMPLES])
async def test_an_example_is_answered_as_the_page_says(
    tmp_path: Path, declared: str, stream: str, lines: str, answer: str
):
    async with local_program(tmp_path) as program:
        path = "/v1/declarations/example"
        assert (await program.ask("PUT", path, program.owner, body=declared.encode())).status == 200
        connection = await program.connect("example")
        path = f"/v1/ingest/{stream}?connection_id={connection}"
        report = await program.ask("POST", path, program.owner, body=lines.encode())
    assert report.body == json.loads(answer)


def test_the_examples_fit_the_schemas_of_the_openapi_document():
    for _, declared, _, lines, _ in EXAMPLES:
        _schema("SourceDeclaration").validate(json.loads(declared))
        for line in lines.splitlines():
            _schema("RecordLine").validate(json.loads(line))
    assert not _schema("SourceDeclaration").is_valid({"streams": []})
    for line in ({}, {"op": "delete"}, {"data": 5}, {"data": {}, "op": "merge"}):
        assert not _schema("RecordLine").is_valid(line)


def test_the_page_names_every_member():
    for model in (DeclarationDocument, StreamDocument):
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in PAGE, name
