"""Aggregates through the tool, over a real store: bounded, and complete by the printed cursors."""

from __future__ import annotations

import base64
import re

import msgspec
import pytest

from headgate.text.writing import unfenced
from tests.mcp.serve.odd import declare, grant_of, stream_of
from tests.mcp.serve.test_world import in_world
from tests.mcp.serve.world import World

FIELDS = {"id": {}, "label": {"type": "string"}}
ENCODED = base64.urlsafe_b64encode(bytes(range(256)) * 9).decode()


@pytest.mark.requirement("S3-32")
def test_an_aggregate_by_long_keys_is_bounded_and_its_keys_are_read_by_the_printed_cursors():
    labels = [ENCODED, *(f"{n:03} " + '\\"' * 3_000 for n in range(99))]

    async def work(w: World) -> None:
        stream = stream_of("things", FIELDS, aggregations={"count": True, "group_by": ["label"]})
        await declare(w, "odd", stream)
        access = w.access(grant_of(w, "odd", {"things": FIELDS}))
        await w.add("odd", "things", *({"id": f"r{n}", "label": label} for n, label in enumerate(labels)))
        args = {"stream": "things", "metric": "count", "group_by": "label", "limit": 100}
        found = await w.call(access, "aggregate", **args)
        assert len(msgspec.json.encode(found.wire())) <= 100_000
        assert ENCODED[:40] not in msgspec.json.encode(found.wire()).decode()
        groups = found.structured["data"]["groups"]
        assert len(groups) == 100
        last = next(group for group in groups if str(group["key"]).startswith("098 "))
        cursor, text = last["key_cursor"], last["key"].removesuffix("…")
        while cursor:
            part = await w.call(access, "aggregate", **args, cursor=cursor)
            text += unfenced(part.text)
            following = re.search(r'^repeat the call with cursor="(.*)"$', part.text, re.MULTILINE)
            cursor = following and following[1]
        assert text == labels[-1]
        printed = r'^\+ \d+ groups that are not printed: repeat the call with cursor="(.*)"$'
        more = re.search(printed, found.text, re.MULTILINE)
        assert not (await w.call(access, "aggregate", **args, cursor=more[1])).is_error

    in_world(work, ())


@pytest.mark.parametrize("cursor", ["x", "500", "0:1:00000000", "pg1.x"])
def test_a_cursor_that_was_not_printed_is_refused(cursor: str):
    async def work(w: World) -> None:
        access = w.access(w.grant("Home mail"))
        args = {"stream": "messages", "metric": "count", "group_by": "sender"}
        answer = await w.call(access, "aggregate", **args, cursor=cursor)
        assert answer.structured["error"]["code"] == "invalid_cursor"
        assert answer.structured["error"]["param"] == "cursor"

    in_world(work)
