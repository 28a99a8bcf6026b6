"""Lists of records in the console: each is the line that answers of tools show."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.sources.demo.filling import fill as fill_demo
from tests.console.browsers import signed_in
from tests.in_process import local_program, record

pytestmark = pytest.mark.anyio
SHELF = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://registry.example/connectors/shelf"},
    "declaration_version": "1",
    "publisher": {"id": "https://registry.example"},
    "display": {"name": "Shelves"},
    "streams": [
        {
            "name": "shelves",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("id", "shelf", "colour")}
                | {"tags": True},
                "required": ["id"],
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": False},
        }
    ],
}


async def test_a_list_shows_when_who_how_much_and_what_as_answers_do(tmp_path: Path):
    async with local_program(tmp_path) as program:
        connections, _ = await fill_demo(program.services.store)
        browser = await signed_in(program)
        for name, stream, shown in (
            ("Bank", "transactions", "Ticket VR83096 -39.76 GBP 31 Dec 2025 Valley Rail Kettle & Crumb"),
            (
                "Chat",
                "messages",
                "I have it, sorry. 31 Dec 2025, 20:16 Tom Hallam · Family Ida sends a kiss.",
            ),
            ("Calendar", "events", "31 Dec 2025, 11:00 Nora Hallam, Marek Dvorsky, 1 more · Drawing office"),
        ):
            listed = await browser.get(f"/console/data/{connections[name]}/{stream}")
            assert shown in listed.words
        found = await browser.get("/console/search?q=VR83096")
        assert "Ticket <mark>VR83096</mark></a>" in found.text
        assert "Ticket VR83096 -39.76 GBP 31 Dec 2025 Valley Rail · Bank · transactions" in found.words


async def test_a_record_without_a_line_shows_its_texts_and_any_text_is_escaped(tmp_path: Path):
    async with local_program(tmp_path) as program:
        await program.declare("shelf", SHELF)
        where = await program.connect("shelf", "Shelves")
        rows = [record("s1", shelf="<b>top</b>", colour="red", tags=[{"x": 1}]), record("s2")]
        await program.ingest(where, "shelves", rows)
        listed = await (await signed_in(program)).get(f"/console/data/{where}/shelves")
        assert "<b>top" not in listed.text
        assert "red · &lt;b&gt;top&lt;/b&gt;" in listed.text
        assert listed.text.count('class="title"') == 2
