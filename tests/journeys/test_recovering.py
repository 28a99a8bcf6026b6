"""By the text alone: every error names a remedy, and the call that follows it succeeds."""

from __future__ import annotations

import json
import re

import pytest

from tests.journeys.agent import TextAgent, is_error
from tests.journeys.recovery import Arguments, recovered
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS

MISTAKES: tuple[tuple[str, str, Arguments], ...] = (
    ("shapes", "schema", {"stream_name": "forms"}),
    ("shapes", "query_records", {}),
    ("shapes", "query_records", {"stream": "form"}),
    ("shapes", "query_records", {"stream": "texts", "order": "up"}),
    ("shapes", "query_records", {"stream": "texts", "where": {"label": "x"}}),
    ("shapes", "query_records", {"stream": "texts", "filter": "x"}),
    ("shapes", "query_records", {"stream": "forms", "filter": {"field_002_of_the_form": "x"}}),
    ("shapes", "query_records", {"stream": "texts", "filter": {"label": {"gte": "x"}}}),
    ("shapes", "query_records", {"stream": "texts", "fields": ["nothing"]}),
    ("shapes", "query_records", {"stream": "texts", "sort": "label"}),
    ("shapes", "query_records", {"stream": "texts", "limit": 1_000}),
    ("shapes", "query_records", {"stream": "texts", "expand": ["x"]}),
    ("shapes", "query_records", {"stream": "texts", "cursor": "abc"}),
    ("shapes", "query_records", {"stream": "texts", "changes_since": "2026-01-01"}),
    ("shapes", "query_records", {"stream": "scans", "changes_since": "2026-01-01"}),
    ("shapes", "query_records", {"stream": "scans"}),
    ("shapes", "aggregate", {"stream": "forms", "metric": "sum", "field": "field_001_of_the_form"}),
    ("shapes", "search", {"text": "bridge"}),
    ("shapes", "search", {"q": "bridge", "query": "x"}),
    ("shapes", "search", {"q": "bridge", "mode": "semantic"}),
    ("shapes", "search", {"q": "bridge", "stream": "texts"}),
    ("shapes", "search", {"q": "bridge", "filter": {"label": "bridge 1"}}),
    ("shapes", "fetch", {"id": "plain"}),
    ("shapes", "fetch", {"id": "texts:nothing"}),
    ("shapes", "fetch", {"id": "scans:small"}),
    ("shapes", "fetch", {"record_id": "texts:plain"}),
    ("shapes", "fetch", {"id": "texts:plain", "fields": ["nothing"], "connection": "x"}),
    ("shapes", "read_record_field", {"id": "texts:plain", "field": "label"}),
    ("shapes", "read_record_field", {"record_id": "plain", "field_path": "label"}),
    ("shapes", "read_record_field", {"id": "texts:plain", "field_path": "nothing"}),
    ("shapes", "read_record_field", {"id": "texts:plain", "field_path": "label", "limit_chars": 99_999}),
    ("shapes", "read_record_field", {"id": "texts:plain", "field_path": "label", "q": "absent"}),
    ("shapes", "read_record_field", {"id": "texts:plain", "field_path": "label", "cursor": "abc"}),
    ("crowd", "query_records", {"stream": "payments"}),
    ("crowd", "query_records", {"stream": "items_0", "changes_since": "beginning"}),
    ("crowd", "aggregate", {"stream": "payments", "metric": "total"}),
    ("crowd", "aggregate", {"stream": "payments", "metric": "sum", "field": "payee"}),
    ("crowd", "aggregate", {"stream": "payments", "metric": "count", "field": "amount"}),
    ("crowd", "aggregate", {"stream": "payments", "metric": "count", "group_by": "note"}),
    ("crowd", "aggregate", {"stream": "payments", "metric": "count", "group_by_time": "paid_at"}),
)


@pytest.mark.parametrize("way", WAYS)
def test_every_mistake_is_mended_by_what_its_error_says(home: SharedHome, way: str):
    lost: list[str] = []
    for world, tool, arguments in MISTAKES:
        try:
            recovered(TextAgent(home.session(world, way)), tool, arguments)
        except AssertionError as error:
            lost.append(f"{tool} {arguments}: {error}")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("way", WAYS)
def test_the_error_of_an_ambiguous_call_leads_to_every_connection(home: SharedHome, way: str):
    agent, truth = TextAgent(home.session("crowd", way)), home.worlds["crowd"]
    text = agent.session.call("query_records", {"stream": "payments"})
    assert is_error(text)
    shown = {line.split()[0] for line in json.loads(text)["error"]["available_connections"]}
    advised = json.loads(json.loads(f'"{re.search(r"schema with (.*?) lists every connection", text)[1]}"'))
    found = {one for source in agent.sources(**advised) for one in source.connections}
    assert shown < found == set(truth.connections)
    hidden = min(found - shown)
    assert len(agent.pages("query_records", stream="payments", connection_id=hidden)) == 2
