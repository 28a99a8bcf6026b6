"""One search reads so much and no more; an answer that is not complete for that reason says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.store.search import matching
from tests.in_process import local_program, record
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
BATCHES, RECORDS, TIMES = 6, 10, 200
MOST = 3 * RECORDS * TIMES


async def test_a_search_that_would_read_too_much_finds_the_newest_and_says_that_it_is_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        for batch in range(BATCHES):
            lines = [
                record(f"m{batch}{n}", subject="common " * TIMES + f"rare{batch}{n}") for n in range(RECORDS)
            ]
            await program.ingest(connection, "messages", lines)

        async def ask(q: str) -> tuple[set[str], list[str], int | None]:
            body = (await program.get("/v1/search", program.owner, params={"q": q, "limit": "100"})).body
            found = {row["record_key"] for row in body["data"] if "match" not in row}
            codes, recall = [one["code"] for one in body["meta"]["warnings"]], body["meta"]["recall"]
            assert recall["truncated"] is not recall["complete"] is (codes == [])
            return found, codes, body["meta"]["count"]

        everything = {f"m{batch}{n}" for batch in range(BATCHES) for n in range(RECORDS)}
        assert await ask("common") == (everything, [], len(everything))
        monkeypatch.setattr(matching, "READ_MOST", MOST)
        found, warnings, count = await ask("common")
        assert warnings == ["search_partial"]
        newest = {f"m{BATCHES - 1}{n}" for n in range(RECORDS)}
        assert newest <= found < everything
        assert count is None
        # A word that stands everywhere leaves enough for one that does not.
        assert (await ask("common rare50"))[:2] == ({"m50"}, ["search_partial"])
        assert await ask("rare00") == ({"m00"}, [], 1)
        for q in ("com*", '"common common"', "commons", "comon", "rare50 -common"):
            assert (await ask(q))[1] == ["search_partial"], q
