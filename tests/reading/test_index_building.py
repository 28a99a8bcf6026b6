from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from headgate.model.ids import ConnectionId
from headgate.store.changes import writer
from headgate.store.format import analyser
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio


async def test_a_search_warns_while_the_index_is_being_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "IDLE_SECONDS", 1000)
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail")
        await program.ingest(connection, "messages", [record("m1", subject="hello")])
        scope = stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),))
        token = await program.grant(grant(scope))
        file = apsw.Connection(str(tmp_path / "home" / "records.db"))
        codes: list[list[str]] = []
        for version in (analyser.VERSION, -analyser.VERSION):
            file.execute("UPDATE meta SET v=? WHERE k='words'", (version,))
            answer = await program.get("/v1/search", token, params={"q": "hello"})
            assert len(answer.body["data"]) == 1
            codes.append([warning["code"] for warning in answer.body["meta"]["warnings"]])
        file.close()
    assert codes == [[], ["index_building"]]
