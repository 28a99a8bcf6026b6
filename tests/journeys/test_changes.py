"""By the text alone: read all that there is as changes, then only what changed since."""

from __future__ import annotations

import re

import pytest

from tests.journeys.agent import TextAgent
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS


@pytest.mark.parametrize("way", WAYS)
def test_changes_from_the_beginning_are_all_records_and_again_only_what_changed(home: SharedHome, way: str):
    agent, truth = TextAgent(home.session("shapes", way)), home.worlds["shapes"]
    (source,) = agent.sources("log")
    (connection,) = source.connections
    place = {"stream": "log", "connection_id": connection}
    first = re.search(r"changes_since='(\w+)'", agent.session.descriptions()["query_records"])[1]
    seen, mark = agent.changes(first, **place, limit=30)
    assert len(seen) == len(set(seen)) >= len(truth.written[connection, "log"])
    assert set(agent.pages("query_records", **place)) <= set(seen)
    assert agent.changes(mark, **place)[0] == []
    home.write("shapes", connection, "log", {"id": f"new-{way}", "label": "new"})
    home.delete("shapes", connection, "log", f"old-{way}")
    changed, after = agent.changes(mark, **place)
    assert sorted(changed) == [f"{connection}/log:new-{way}", f"{connection}/log:old-{way}"]
    text = agent.ask("query_records", **place, changes_since=mark)
    assert re.findall(r"^\d\. deleted_at=\S+ \| id=(.*)$", text, re.MULTILINE) == [
        f"{connection}/log:old-{way}"
    ]
    assert agent.changes(after, **place)[0] == []
