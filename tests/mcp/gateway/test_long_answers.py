"""Answers that are too long for a model: nothing of them is lost, and every part of them can be read."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from headgate.errors import CallError
from headgate.mcp.gateway.answers import Gateway
from headgate.mcp.gateway.results import ANSWER_BYTES
from headgate.mcp.gateway.selecting import parse_path, pruned, rows_that_fit, select, shape_of
from headgate.mcp.gateway.stored import CALLER_CALLS, KEPT_SECONDS, StoredCalls
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registration import expose
from headgate.operations.spec import AccessControl, Identity
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio

ANNA, BERT = Identity("anna"), Identity("bert")
ISSUES = [
    {
        "id": number,
        "state": "open" if number % 3 else "closed",
        "title": f"Leak {number} in the roof",
        "body": "ä" * 90,
    }
    for number in range(300)
]
LETTER = "\n".join(f"Line {number} of the letter about the bridge." for number in range(2000))
PICTURE = {"type": "image", "data": base64.b64encode(b"x" * 4000).decode(), "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///plan.txt", "name": "plan"}


@pytest.fixture
def anyio_backend():
    return "asyncio"


def remote(name, **answer):
    async def handler(_value, _context):
        return mcp_envelope(answer.get("structured_content", answer["content"]), **answer)

    return expose(leaf(handler, name), access_control=AccessControl())


def text_block(text):
    return {"type": "text", "text": text}


async def fails(_value, _context):
    raise RuntimeError


HELD = registry(
    remote(
        "issues", content=[text_block("see the structure"), PICTURE], structured_content={"items": ISSUES}
    ),
    remote("listed", content=[text_block(json.dumps({"items": ISSUES}))]),
    remote("letter", content=[text_block(LETTER)]),
    remote("plan", content=[LINK]),
    remote("film", content=[{**PICTURE, "data": "A" * 3_000_000}]),
    operation(fails, "fails"),
)


async def asked(gateway, tool, identity=ANNA, **arguments):
    return await gateway.answer(tool, arguments, identity=identity)


def handle_in(result):
    return json.loads(result.content[0]["text"])["answer"]


@pytest.mark.parametrize("name", ["issues", "listed"])
async def test_a_long_answer_is_shown_by_its_shape_and_its_rows_can_be_read(name):
    gateway = Gateway(HELD)
    answer = await asked(gateway, "call", operation=f"ns/{name}")
    assert not answer.is_error
    summary = json.loads(answer.content[0]["text"])
    assert (answer.structured == summary) is (name == "issues")
    assert "$.items list of 300" in summary["shape"]
    assert "$.items[*].title text" in summary["shape"]
    assert len(answer.content[0]["text"].encode()) <= ANSWER_BYTES
    chosen = await asked(
        gateway,
        "read",
        answer=summary["answer"],
        path="$.items",
        where={"state": "closed"},
        fields=["id", "title"],
        q="roof 29",
        limit=3,
    )
    expected = [issue for issue in ISSUES if issue["state"] == "closed" and "29" in issue["title"]]
    assert chosen.structured["count"] == len(expected)
    assert chosen.structured["rows"] == [{"id": row["id"], "title": row["title"]} for row in expected[:3]]


async def test_an_image_reaches_the_model_beside_the_beginning_of_a_long_answer():
    answer = await asked(Gateway(HELD), "call", operation="ns/issues")
    assert PICTURE in answer.content


async def test_media_that_no_host_takes_is_named_with_its_size():
    answer = await asked(Gateway(HELD), "call", operation="ns/film")
    assert answer.content == [
        text_block("[image/png: 3000000 characters of base64, too many for one answer]")
    ]


async def test_every_row_of_a_long_answer_is_read_exactly_once_by_following_the_offsets():
    gateway = Gateway(HELD)
    handle = handle_in(await asked(gateway, "call", operation="ns/issues"))
    offset, ids = 0, []
    while offset is not None:
        page = (
            await asked(gateway, "read", answer=handle, path="items", offset=offset, limit=200)
        ).structured
        assert len(json.dumps(page, ensure_ascii=False).encode()) <= ANSWER_BYTES
        ids += [row["id"] for row in page["rows"]]
        offset = page.get("next_offset")
    assert ids == [issue["id"] for issue in ISSUES]


async def test_a_long_text_is_read_on_by_characters_and_searched_by_words():
    gateway = Gateway(HELD)
    answer = await asked(gateway, "call", operation="ns/letter")
    assert answer.structured is None
    handle = answer.content[0]["text"].split('answer="')[1].split('"')[0]
    text, offset = "", 0
    while offset < len(LETTER):
        part = (await asked(gateway, "read", answer=handle, offset=offset, limit=8000)).content[0]["text"]
        head, _, window = part.partition("\n\n")
        assert f"Characters {offset} to {offset + len(window)} of {len(LETTER)}." in head
        text += window
        offset += len(window)
    assert text == LETTER
    places = (await asked(gateway, "read", answer=handle, q="line 1999")).content[0]["text"]
    place = int(places.split("[")[1].split("]")[0])
    assert LETTER[place:].startswith("Line 1999")


async def test_an_answer_is_for_its_caller_alone_and_ends_after_an_hour():
    now = [1_000_000.0]
    gateway = Gateway(HELD, StoredCalls(clock=lambda: now[0]))
    handle = handle_in(await asked(gateway, "call", operation="ns/issues"))
    assert not (await asked(gateway, "read", answer=handle)).is_error
    for stranger in (BERT, None):
        refused = await asked(gateway, "read", stranger, answer=handle)
        assert refused.structured["error"]["code"] == "NOT_FOUND"
    now[0] += KEPT_SECONDS
    assert (await asked(gateway, "read", answer=handle)).structured["error"]["code"] == "NOT_FOUND"
    for wrong in ("", "../../../x", "a" * 12, "a" * 4000, "\x00" * 12):
        assert (await asked(gateway, "read", answer=wrong)).structured["error"]["code"] == "NOT_FOUND"


async def test_the_calls_of_the_last_hour_are_listed_with_how_they_ended(tmp_path):
    now = [1_000_000.0]
    calls = StoredCalls(tmp_path / "calls", clock=lambda: now[0])
    gateway = Gateway(HELD, calls)
    assert (await asked(gateway, "read")).content[0]["text"] == "You called nothing in the last hour."
    await asked(gateway, "call", operation="ns/plan")
    now[0] += 1
    await asked(gateway, "call", operation="ns/fails")
    now[0] += 1
    lost = await calls.begin("anna", "ns/letter")
    now[0] += 120
    # Another process answers, after the one that sent the call was killed.
    lines = (await asked(Gateway(HELD, calls), "read")).content[0]["text"].splitlines()
    assert [line.split(": ", 1)[1] for line in lines[:2]] == [
        "ns/letter, 2 min ago, no answer came: it may have run",
        "ns/fails, 2 min ago, INTERNAL",
    ]
    assert lines[2].split(": ", 1)[1].startswith("ns/plan, 2 min ago, answered, ")
    unknown = (await asked(gateway, "read", answer=lost)).structured["error"]
    assert unknown["details"] == {"maybe_executed": True}
    assert (await asked(gateway, "read", BERT)).content[0]["text"] == "You called nothing in the last hour."


async def test_a_call_whose_caller_went_away_is_known_as_one_that_may_have_run():
    begun = asyncio.Event()

    async def wait(_value, _context):
        begun.set()
        await asyncio.Event().wait()

    gateway = Gateway(registry(operation(wait, "wait")))
    call = asyncio.create_task(asked(gateway, "call", operation="ns/wait"))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (line,) = (await asked(gateway, "read")).content[0]["text"].splitlines()
    handle = line.split('"')[1]
    error = (await asked(gateway, "read", answer=handle)).structured["error"]
    assert (error["code"], error["details"]) == ("ABORTED", {"maybe_executed": True})


async def test_a_call_that_cannot_be_noted_is_not_sent(tmp_path):
    ran = []

    async def run(_value, _context):
        ran.append(1)

    (tmp_path / "file").write_text("")
    gateway = Gateway(registry(operation(run, "run")), StoredCalls(tmp_path / "file"))
    answer = await asked(gateway, "call", operation="ns/run")
    assert answer.structured["error"]["code"] == "RESOURCE_LIMIT"
    assert not ran


async def test_the_stored_calls_of_a_caller_are_bounded(tmp_path):
    calls = StoredCalls(tmp_path / "calls", clock=lambda: 1_000_000.0)
    handles = [await calls.begin("anna", "ns/plan") for _ in range(20)]
    folder = next((tmp_path / "calls").iterdir())
    modes = [path.stat().st_mode & 0o777 for path in (folder.parent, folder, next(folder.iterdir()))]
    assert modes == [0o700, 0o700, 0o600]
    for number in range(CALLER_CALLS):
        (folder / f"x{number}.json").write_bytes(b"{}")
    await calls.begin("anna", "ns/plan")
    assert len(list(folder.iterdir())) <= CALLER_CALLS
    assert len(handles) == len(set(handles))


async def test_a_resource_that_an_answer_links_to_can_be_read_and_no_other():
    read = []

    async def read_link(operation_id, uri):
        read.append((operation_id, uri))
        return [{"type": "resource", "resource": {"uri": uri, "text": "the plan"}}]

    gateway = Gateway(HELD, read_link=read_link)
    answer = await asked(gateway, "call", operation="ns/plan")
    assert answer.content[0] == LINK
    handle = answer.content[1]["text"].split('answer="')[1].split('"')[0]
    refused = await asked(gateway, "read", answer=handle, uri="file:///secret.txt")
    assert refused.structured["error"]["code"] == "NOT_FOUND"
    linked = await asked(gateway, "read", answer=handle, uri=LINK["uri"])
    assert linked.content[0]["resource"]["text"] == "the plan"
    assert read == [("ns/plan", LINK["uri"])]


@pytest.mark.parametrize(
    ("path", "reason"),
    [("$.itms", "items"), ("$.items.x", "list of 300"), ("$[", "no path"), ("$.items[0].id.x", "number")],
)
async def test_a_path_that_leads_nowhere_is_answered_with_what_is_there(path, reason):
    gateway = Gateway(HELD)
    handle = handle_in(await asked(gateway, "call", operation="ns/issues"))
    error = (await asked(gateway, "read", answer=handle, path=path)).structured["error"]
    assert error["code"] == "INVALID_INPUT"
    assert reason in error["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=90), inner, max_size=12),
    max_leaves=60,
)


@given(JSON, st.integers(40, 4000))
def test_a_value_is_cut_to_any_size_and_stays_json(value, most):
    cut = pruned(value, most)
    assert (
        len(json.dumps(cut, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        <= most
    )
    assert all(isinstance(line, str) for line in shape_of(value))


@given(st.lists(JSON, max_size=40), st.integers(1, 30), st.integers(60, 3000))
def test_rows_are_given_once_each_in_order_at_every_limit(rows, limit, most):
    offset, shown = 0, 0
    while offset is not None:
        window = rows_that_fit(rows, offset, limit, most)
        if not window.is_cut:
            assert window.rows == rows[offset : offset + len(window.rows)]
        shown += len(window.rows)
        offset = window.next_offset
    assert shown == len(rows)


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.integers(), min_size=1, max_size=8))
def test_every_member_can_be_reached_by_a_quoted_path(members):
    for name, value in members.items():
        assert select(members, parse_path(f"$[{json.dumps(name)}]")).values == [value]


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_a_typed_error(text):
    with suppress(CallError):
        assert isinstance(parse_path(text), tuple)
