from __future__ import annotations

from tests.store.declared import DESK, PAGES, document, stream_of
from tests.store.engines import fresh
from tests.store.ledger import Ledger


def test_deleting_a_connection_takes_what_streams_that_are_declared_no_longer_hold():
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=2)
        for connection in (0, 1):
            ledger.put({"id": 1, "text": "apple"}, stream=PAGES, connection=connection)
        without = document("2")
        without["streams"].remove(stream_of(without, "pages"))
        store.declare(DESK, without)
        store.delete_connection(ledger.ids[0])
        database = store.bare._readers._loop_reader.database
        assert database.all("SELECT record_id FROM record") == [("1",)]
        assert database.all(
            "SELECT count(*) FROM word_leaf WHERE instr(words, x'00' || CAST('apple' AS BLOB))"
        ) == [(1,)]
