"""What a document shows of a record: all of it, inline or by the calls that it prints."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings, strategies as st

from headgate.model.grant import Access
from headgate.model.query import RecordQuery
from headgate.text.writing import size, unfenced
from tests.field_lines import is_written, values_in_lines
from tests.mcp.serve.odd import declare, grant_of, stream_of
from tests.mcp.serve.test_world import in_world
from tests.mcp.serve.world import World, world

NAMES = ("note", "kind", "stream", "fields", "title", "count", "list", "a b", "ünïcode", 'q"uote')
MAIN = ("text", "body", "summary")
FIELDS = {"id": {}, **{name: {} for name in (*NAMES, *MAIN)}}
#: Metadata that is not of the record.
OWN = {
    *("stream", "connection_id", "connector_key", "display_name", "record_id", "emitted_at", "fields"),
    *("text_truncated", "text_total_chars", "content_ladder"),
}
ENCODED = base64.b64encode(bytes(range(256)) * 4).decode()
IN_LINES = "\n".join(ENCODED[at : at + 64] for at in range(0, len(ENCODED), 64))

SIZES = st.sampled_from(
    [0, 1, 159, 160, 161, 1_000, 1_023, 1_025, 4_095, 4_097, 8_200, 16_383, 16_384, 16_385, 30_000]
)
UNITS = st.sampled_from(["ab ", "é", "世", "👩‍👧", '"', "\\", "x\n", "<b>"])
TEXTS = st.builds(lambda unit, size: (unit * size)[:size], UNITS, SIZES)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(-9, 9), TEXTS)
BYTES = st.sampled_from(
    [ENCODED, IN_LINES, "data:image/png;base64," + ENCODED, ENCODED.replace("+", "-").replace("/", "_")]
)
BLOBS = st.builds(
    lambda digit, more: {"blob_id": "blob_" + digit * 64, "mime_type": "image/png", **more},
    st.sampled_from("0a"),
    st.sampled_from(
        [{}, {"size_bytes": 3}, {"content_type": "image/gif"}, {"caption": "x" * 300}, {"sha256": None}]
    ),
)
NESTED = st.one_of(
    st.lists(st.one_of(SCALARS, BYTES), max_size=3),
    st.dictionaries(st.sampled_from(["a", "b c", "blob"]), st.one_of(SCALARS, BYTES), max_size=3),
    BLOBS,
)
VALUES = st.one_of(SCALARS, NESTED, BYTES)
RECORDS = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(NAMES, VALUES) | dict.fromkeys(MAIN, st.one_of(SCALARS, VALUES))
)


async def windowed(w: World, access: Access, args: dict[str, Any]) -> str:
    """Read a field to its end by the calls that its windows print."""
    text = ""
    while True:
        window = await w.call(access, "read_record_field", **args)
        assert not window.is_error, window.text
        text += unfenced(window.text)
        following = re.search(r"^next read_record_field args=(.*)$", window.text, re.MULTILINE)
        if following is None:
            return text
        args = json.loads(following[1])


def inline(document: dict[str, Any]) -> dict[str, Any]:
    """Read the fields that a document shows by name; those that are not whole are among them."""
    metadata = document["metadata"]
    beside = {path: value for path, value in metadata.items() if path not in OWN} | metadata.get("fields", {})
    return beside | values_in_lines(document["text"])


async def recovered(w: World, access: Access, args: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """Read a record as a text-only client does: from the document, and by every call that it prints."""
    assert depth < 5
    outcome = await w.call(access, "fetch", **args)
    assert not outcome.is_error, outcome.text
    assert len(msgspec.json.encode(outcome.wire())) <= (100_000 if "fields" in args else 24_000)
    assert size(outcome.structured["text"]) <= 20_000
    document = json.loads(outcome.text)
    found = inline(document)
    ladder = document["metadata"].get("content_ladder", {})
    rungs = [
        rung for kind in ("binary_fields", "field_windows", "json_fields") for rung in ladder.get(kind, ())
    ]
    for shared in ladder.get("other_fields", ()):
        found |= await asked_for(w, access, shared["read"]["args"], depth)
    for rung in rungs:
        path = rung["field_path"]
        if "read" not in rung:
            found[path] = rung
            continue
        call = rung["read"]
        if call["tool"] == "fetch":
            assert call["args"] != args, "a circle"
            found |= await asked_for(w, access, call["args"], depth)
            continue
        read = await windowed(w, access, call["args"])
        begun = found.get(path)
        if call["args"]["offset_chars"]:
            # The text stopped at the ellipsis.
            begun = begun if isinstance(begun, str) else document["text"]
            assert begun.endswith("…")
            read = begun[:-1] + read
        found[path] = json.loads(read) if rung.get("json_field") else read
        # Hidden characters are printed as escapes, which are longer.
        assert rung["size_chars"] == len(read) or "\\u00" in read
    main = [path for path in ("text", "content", "body", "summary") if path not in found]
    if "text_truncated" not in document["metadata"] and main:
        found["(text)"] = document["text"]
    found["(title)"] = document["title"]
    return found


async def asked_for(w: World, access: Access, args: dict[str, Any], depth: int) -> dict[str, Any]:
    """Read the fields that a printed call names."""
    found = await recovered(w, access, args, depth + 1)
    text = found.get("(text)")
    return {path: found.get(path, text) for path in args["fields"] if path in found or text is not None}


def is_found(path: str, value: Any, found: dict[str, Any]) -> bool:
    if value is None or (path in found and (found[path] == value or is_written(value, found[path]))):
        return True
    if isinstance(value, str):
        return value == found["(title)"] or (path in MAIN and value == found.get("(text)"))
    # The facts about a file repeat these members, and no others.
    is_file = isinstance(value, dict) and {"blob_id"} <= value.keys() <= {
        "blob_id",
        "mime_type",
        "size_bytes",
    }
    return is_file and found[path].items() >= value.items()


@pytest.mark.requirement("S3-30", "S3-31", "S3-32")
def test_inline_text_and_the_printed_calls_give_every_field_of_any_record():
    numbers = itertools.count()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        w = runner.run(stack.enter_async_context(world(())))
        runner.run(declare(w, "odd", stream_of("things", FIELDS)))
        access = w.access(grant_of(w, "odd", {"things": FIELDS}))

        @settings(max_examples=100, deadline=None)
        @given(RECORDS)
        @example({"list": ["x" * 16_380]})
        @example({"list": ["\x7f" * 4_000], "body": "beside"})
        @example({"body": "beside", "note": {"blob_id": "blob_" + "0" * 64, "caption": "the canal"}})
        @example({"note": {"name": "x", "raw": IN_LINES}, "count": None, "kind": "k" * 1_000})
        def check(data: dict[str, Any]) -> None:
            key = f"r{next(numbers)}"
            runner.run(w.add("odd", "things", {"id": key, **data}))
            found = runner.run(recovered(w, access, {"id": f"{w.connections['odd']}/things:{key}"}))
            assert {path for path, value in data.items() if not is_found(path, value, found)} == set()

        try:
            check()
        finally:
            runner.run(stack.aclose())


def test_a_record_of_400_fields_is_read_whole_by_shared_calls():
    fields = {f"field_{n:03}": {} for n in range(400)}
    data = {path: f"{path} " * 30 for path in fields} | {"body": "main " * 5000}

    async def work(w: World) -> None:
        await declare(w, "odd", stream_of("things", {**fields, "body": {}}))
        access = w.access(grant_of(w, "odd", {"things": {"id": {}, **data}}))
        await w.add("odd", "things", {"id": "r1", **data})
        found = await recovered(w, access, {"id": f"{w.connections['odd']}/things:r1"})
        assert {path for path, value in data.items() if not is_found(path, value, found)} == set()

    in_world(work, ())


def test_fields_without_a_value_are_left_out_unless_they_are_named():
    async def work(w: World) -> None:
        await declare(w, "odd", stream_of("things", FIELDS))
        access = w.access(grant_of(w, "odd", {"things": FIELDS}))
        for number, body in enumerate(({"body": "text"}, {})):
            await w.add("odd", "things", {"id": f"r{number}", "note": None, "kind": "k", **body})
            record_id = f"{w.connections['odd']}/things:r{number}"
            assert "note" not in (await w.call(access, "fetch", id=record_id)).text
            named = await w.call(access, "fetch", id=record_id, fields=["note", "kind", *body])
            shown = inline(json.loads(named.text))
            assert "note" in shown
            assert shown["note"] is None

    in_world(work, ())


def test_the_size_of_encoded_bytes_is_that_of_the_whole_field_in_every_answer():
    scan = base64.b64encode(bytes(range(256)) * 200).decode()

    async def work(w: World) -> None:
        await declare(w, "odd", stream_of("things", FIELDS))
        access = w.access(grant_of(w, "odd", {"things": FIELDS}))
        await w.add("odd", "things", {"id": "r1", "note": scan, "body": "words"})
        page = await w.call(access, "query_records", stream="things")
        changed = await w.call(access, "query_records", stream="things", changes_since="beginning")
        opened = await w.call(access, "fetch", id=f"{w.connections['odd']}/things:r1")
        for answer in (page, changed, opened):
            whole = answer.text + msgspec.json.encode(answer.structured).decode()
            assert set(re.findall(r'"size_chars\\*":(\d+)', whole)) == {str(len(scan))}

    in_world(work, ())


@pytest.mark.requirement("S3-32")
@pytest.mark.parametrize("declared", [{"contentMediaType": "image/png"}, {}])
def test_a_text_that_is_declared_as_base64_is_binary_however_short(declared: dict[str, str]):
    field = {"type": "string", "contentEncoding": "base64", **declared}

    async def work(w: World) -> None:
        await declare(w, "odd", stream_of("things", {"icon": field, "body": {}}))
        access = w.access(grant_of(w, "odd", {"things": {"id": {}, "icon": {}, "body": {}}}))
        await w.add(
            "odd",
            "things",
            {"id": "r1", "icon": "QUJDRA==", "body": "words"},
            {"id": "r2", "icon": "QUJDRA=="},
        )
        for key in ("r1", "r2"):
            read_id = f"{w.connections['odd']}/things:{key}"
            opened = await w.call(access, "fetch", id=read_id)
            page = await w.call(access, "query_records", stream="things")
            changed = await w.call(access, "query_records", stream="things", changes_since="beginning")
            assert "QUJDRA" not in "".join(
                json.dumps(one.structured) + one.text for one in (opened, page, changed)
            )
            (rung,) = json.loads(opened.text)["metadata"]["content_ladder"]["binary_fields"]
            assert rung["mime_type"] == declared.get("contentMediaType", "application/octet-stream")
            assert rung["size_chars"] == 8
            assert await windowed(w, access, rung["read"]["args"]) == "QUJDRA=="
        raw = await w.port(access).record(RecordQuery("things", "r1"))
        assert raw.body()["data"]["icon"] == "QUJDRA=="
        assert "previews" not in raw.body()

    in_world(work, ())
