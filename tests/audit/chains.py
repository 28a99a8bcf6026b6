"""A chain of disclosures in as few words as possible, for tests on every engine."""

from __future__ import annotations

from functools import partial

from headgate.audit.activity import all_entries
from headgate.audit.chain import seal_block, write_head
from headgate.audit.journal import Disclosed, Disclosure, Journal
from headgate.home import Home
from headgate.model.ids import ConnectionId, FieldName, GrantId, RecordId, RequestId, StreamName
from headgate.model.ledger import AuditEntry
from headgate.store.ledger.ledger import Ledger

KEY = b"k" * 32


def disclosure(number: int, outcome: str = "answered") -> Disclosure:
    part = Disclosed(ConnectionId("c"), StreamName("s"), (FieldName("id"),), (RecordId(f"r{number}"),))
    return Disclosure(
        number,
        RequestId(f"q{number}"),
        "client",
        None,
        (GrantId("g"),),
        None,
        "GET /v1",
        outcome,
        10,
        (part,),
    )


async def fill(ledger: Ledger, home: Home, count: int, *, together: int = 1000) -> None:
    journal = Journal(home)
    for number in range(count):
        journal.write(disclosure(number))
        if (number + 1) % together == 0 or number + 1 == count:
            await flush(journal, ledger, home)
    await journal.close(ledger)


async def flush(journal: Journal, ledger: Ledger, home: Home) -> None:
    while (moved := await journal.flush(ledger, partial(seal_block, KEY))) is not None:
        write_head(home, moved[0])


async def entries_of(ledger: Ledger) -> list[AuditEntry]:
    return [entry async for entry in all_entries(ledger)]
