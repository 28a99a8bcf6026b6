"""A person's files come in by one command, and an agent that has only text answers a question over two of them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.journeys.agent import TextAgent, ids_in
from tests.journeys.sessions import TextSession
from tests.on_socket import headgate, serving

_MAIL = """\
From x Mon Mar  2 09:00:00 2026
From: Moser Roofing <office@moser-roofing.example>
To: Ines Albrecht <ines@example.org>
Subject: Offer for the roof
Date: Mon, 02 Mar 2026 09:00:00 +0100
Message-ID: <offer@moser-roofing.example>

We offer to repair the roof for 1,790.00 EUR.

From x Fri Mar 20 10:00:00 2026
From: Moser Roofing <office@moser-roofing.example>
To: Ines Albrecht <ines@example.org>
Subject: Invoice 2026-117
Date: Fri, 20 Mar 2026 10:00:00 +0100
Message-ID: <invoice@moser-roofing.example>
In-Reply-To: <offer@moser-roofing.example>

The roof is repaired. Please pay 1,840.50 EUR within thirty days.

From x Sat Mar 21 10:00:00 2026
From: Garden club <club@example.org>
To: Ines Albrecht <ines@example.org>
Subject: Invoice for the plot
Date: Sat, 21 Mar 2026 10:00:00 +0100
Message-ID: <plot@example.org>

The plot costs 60.00 EUR this year.
"""
_STATEMENT = """\
Buchungstag;Empfänger;Verwendungszweck;Betrag;Währung
01.03.2026;Bäckerei Huber;Brot;-4,50;EUR
01.03.2026;Bäckerei Huber;Brot;-4,50;EUR
23.03.2026;Gartenverein;Parzelle 12;-60,00;EUR
02.04.2026;Moser Bedachungen;RE 2026-117;-1.840,50;EUR
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "mail.mbox").write_text(_MAIL, encoding="utf-8")
    (tmp_path / "statement.csv").write_text(_STATEMENT, encoding="latin-1")
    return tmp_path


def run(place: Path, *arguments: str) -> dict:
    done = headgate(place, *arguments, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


def test_when_was_the_invoice_for_the_roof_paid(place: Path):
    """Import, grant as the import says, serve, ask: the mail has the amount and the bank has the day."""
    report = run(place, "--home", "home", "import", "mail.mbox", "statement.csv", "--yes")
    token = run(place, *shlex.split(report["next"])[1:])["access_token"]
    with serving(place) as served, start_blocking_portal() as portal:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20)
        client = Client(streamable_http_client(f"{served.address}/mcp", http_client=http))
        with portal.wrap_async_context_manager(client) as opened:
            agent = TextAgent(TextSession(portal, opened, served.address, token))
            assert {"messages", "transactions"} <= agent.streams()
            amount = amount_asked(agent)
            assert paid_on(agent, amount) == {"2026-04-02"}
            assert agent.number(stream="transactions", metric="sum", field="amount") == -1909.5
        portal.call(http.aclose)


def amount_asked(agent: TextAgent) -> float:
    """Find the message that asks for money for the roof, by the person's words, and the amount in it."""
    found = ids_in(agent.ask("search", q="what do I have to pay for the roof?"))
    bodies = [str(agent.read(one).unnamed) for one in dict.fromkeys(found)]
    (amount,) = {one for body in bodies for one in re.findall(r"Please pay ([\d,.]+) EUR", body)}
    return float(amount.replace(",", ""))


def paid_on(agent: TextAgent, amount: float) -> set[str]:
    """Find the days on which such an amount left the account."""
    sources = agent.sources("transactions")
    assert "booked_on" in sources[0].fields
    text = agent.ask(
        "query_records", stream="transactions", filter={"amount": {"gte": -amount, "lte": -amount}}
    )
    return set(re.findall(r"^\d+\. ([\d-]+) \| ", text, re.MULTILINE))
