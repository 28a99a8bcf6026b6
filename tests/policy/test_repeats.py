"""What repeats another text is not searched beside it, by meaning either: the grant and the query decide."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import ConnectorKey
from headgate.model.plan import SearchPlan
from headgate.model.query import SearchMode, SearchQuery
from headgate.policy.allowance import SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.policy.decide import decide_search
from headgate.schema.declare import read_declaration
from headgate.sources import declaring
from headgate.sources.mail.source import MAIL_STREAMS
from tests.policy.worlds import MAIL, catalog, client, grant, seals, stream_grant

WORDS = ("id", "subject", "from", "body", "quoted")


def mail() -> SourceDeclaration:
    return read_declaration(declaring.declaration("mail", "Mail", MAIL_STREAMS))


def plan(query: SearchQuery, *fields: str, threads: tuple[str, ...] = ("id", "subject")) -> SearchPlan:
    source = mail()
    known = catalog()
    world = SourceCatalog({ConnectorKey(MAIL): source}, known.connections)
    streams = [stream_grant("messages", *fields), *([stream_grant("threads", *threads)] if threads else [])]
    one = replace(grant(*streams), source_id=source.source_id, declaration_version=source.version)
    allowance = allow(client(one), world, Rules(has_meaning=True))
    return decide_search(allowance, query, seals()).plan


@pytest.mark.parametrize("mode", [SearchMode.SEMANTIC, SearchMode.HYBRID])
def test_by_meaning_quoted_text_is_compared_only_where_it_is_named(mode: SearchMode):
    (reach,) = plan(SearchQuery("boat", mode=mode), *WORDS).reaches
    assert reach.meaning_fields == ("subject", "body")
    assert reach.quoted_fields == ("quoted",)
    named: Any = ("body", "quoted")
    (reach,) = plan(SearchQuery("boat", mode=mode, in_fields=named), *WORDS).reaches
    assert reach.meaning_fields == named
    assert reach.quoted_fields == ()


@pytest.mark.parametrize("mode", list(SearchMode))
def test_a_stream_that_repeats_another_is_searched_where_the_other_is_not(mode: SearchMode):
    def searched(query: SearchQuery, *fields: str) -> list[str]:
        return [reach.reach.stream for reach in plan(query, *fields).reaches]

    assert searched(SearchQuery("boat", mode=mode), *WORDS) == ["messages"]
    assert searched(SearchQuery("boat", mode=mode), "id", "body") == ["messages", "threads"]
    assert searched(SearchQuery("boat", mode=mode, in_fields=("subject",)), *WORDS) == ["messages"]
    assert searched(SearchQuery("boat", mode=mode, streams=("threads",)), *WORDS) == ["threads"]
    assert searched(SearchQuery("boat", mode=mode, streams=("messages", "threads")), *WORDS) == [
        "messages",
        "threads",
    ]
