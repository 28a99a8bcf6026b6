"""By the structure alone, as hosts do that show their model no text beside it: list, open a record, read on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.journeys.sessions import SharedHome, TextSession
from tests.journeys.worlds import WAYS

SHAPES = ("forms", "texts", "numbers", "pairs", "日記", "letters", "papers")


def read_on(session: TextSession, row: dict[str, Any], path: str) -> str:
    """Read a field from its beginning to its end."""
    pieces: list[str] = []
    place: dict[str, Any] = {}
    while True:
        window = session.structure("read_record_field", id=row["fetch_id"], field_path=path, **place)[
            "window"
        ]
        pieces.append(window["text"])
        if window["complete"] or window["next_cursor"] is None:
            return "".join(pieces)
        place = {"cursor": window["next_cursor"]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", SHAPES)
def test_every_row_is_opened_by_its_fetch_id_and_by_its_parts_and_long_fields_are_read_on(
    home: SharedHome, stream: str, way: str
):
    session, world = home.session("shapes", way), home.worlds["shapes"]
    page = session.structure("query_records", stream=stream, limit=12)
    assert page["untrusted"] is True
    for row in page["data"]["data"]:
        document = session.structure("fetch", id=row["fetch_id"])
        assert (document["id"], document["metadata"]["untrusted"]) == (row["fetch_id"], True)
        parts = {"stream": page["data"]["stream"], **{name: row[name] for name in ("id", "connection_id")}}
        assert session.structure("fetch", **parts)["text"] == document["text"]
        written = [one for one in world.written[row["connection_id"], stream] if one.get("id") == row["id"]]
        for rung in document["metadata"].get("content_ladder", {}).get("field_windows", ()):
            whole = read_on(session, row, rung["field_path"])
            assert not written or whole == written[0][rung["field_path"]]


@pytest.mark.parametrize("way", WAYS)
def test_every_hit_is_opened_by_the_id_of_its_result_and_by_the_parts_of_the_hit(home: SharedHome, way: str):
    session = home.session("stitched", way)
    found = session.structure("search", q="bridge", limit=10)
    assert found["untrusted"] is True
    assert found["results"]
    for result, hit in zip(found["results"], found["data"]["data"], strict=True):
        document = session.structure("fetch", id=result["id"])
        parts = {"id": hit["record_key"], "stream": hit["stream"], "connection_id": hit["connection_id"]}
        assert session.structure("fetch", **parts) == document


def children_of(page: dict[str, Any]) -> list[dict[str, Any]]:
    return [child for row in page["data"]["data"] for child in row["expanded"]["attachments"]["data"]]


@pytest.mark.parametrize("way", WAYS)
def test_related_records_in_a_row_have_an_id_for_fetch_as_well(home: SharedHome, way: str):
    session = home.session("stitched", way)
    asked = {"stream": "messages", "connector_key": "mail", "expand": ["attachments"], "limit": 100}
    page = session.structure("query_records", **asked)
    while not (children := children_of(page)):
        page = session.structure("query_records", **asked, cursor=page["data"]["next_cursor"])
    for child in children[:3]:
        opened = session.structure("fetch", id=child["fetch_id"])
        assert opened["metadata"]["stream"] == "attachments"
