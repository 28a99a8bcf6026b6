"""Messages and events of a server: measured before they are parsed, however their bytes are split."""

import json

import pytest
from hypothesis import example, given, strategies as st

from headgate.errors import HeadgateError, UpstreamProtocolError, UpstreamTooLarge
from headgate.mcp.client import message
from headgate.mcp.client.message import MAX_DEPTH, cut_depth, measure, read_message
from headgate.mcp.client.wire import EventAssembler
from headgate.operations.secrets import Secret
from tests.hostile.server import answers, http
from tests.mcp.client.importing import call, importing

TOKEN = "canary-5f1d-token"
TEXTS = st.text(st.sampled_from('ab\\"{}[],:\n\x01ü😀'), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def count(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(VALUES, st.booleans(), st.integers(1, 12))
def test_values_are_counted_and_levels_measured_in_slices_of_any_length(value, is_ascii, length):
    data = json.dumps(value, ensure_ascii=is_ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "_SLICE_BYTES", length)
        values, levels = measure(data, 10_000)
    assert levels == depth(value)
    # An object counts as four values and a list as two.
    assert count(value) <= values <= 5 * count(value)


@given(VALUES, st.integers(1, 6))
def test_what_is_cut_is_at_most_so_deep_and_the_rest_stays(value, most):
    found = json.loads(cut_depth(json.dumps(value).encode(), most))
    assert depth(found) <= most
    if depth(value) <= most:
        assert found == value


def reply(result, message_id="1"):
    return f'{{"jsonrpc":"2.0","id":{message_id},"result":{result}}}'.encode()


def test_more_values_than_allowed_are_refused_unparsed():
    assert read_message(reply('{"a":[1,2,3]}'), None, max_values=20).values <= 20
    with pytest.raises(UpstreamTooLarge):
        read_message(reply('{"a":[' + "{}," * 20 + "1]}"), None, max_values=20)


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e999", "1" + "0" * 400 + ".0", "9" * 5000, '"\\ud800"', "[" * MAX_DEPTH]
)
def test_what_is_not_json_or_too_much_for_a_reader_is_refused(text):
    with pytest.raises(UpstreamProtocolError):
        read_message(reply(f'{{"a":{text}}}'), None, max_values=10_000)


@given(
    st.integers(1, 4200),
    st.integers(0, 500),
    st.sampled_from(["%s", "-%s", "0.%s", "1e%s"]),
    st.integers(1, 700),
)
@example(399, 0, "%s", 64)
@example(400, 0, "%s", 64)
@example(4200, 70, "-%s", 700)
def test_a_number_longer_than_any_reader_takes_is_refused_wherever_it_stands(digits, before, form, length):
    """Python itself reads integers of up to 4300 digits, which other readers of the result would not."""
    long = form % ("7" * digits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message, "_SLICE_BYTES", length)
        data = reply(f'{{"a":"{"x" * before}","b":["{"7" * digits}",{long}]}}')
        if digits < 400:
            assert measure(data, 100)[1] == 3
        else:
            with pytest.raises(UpstreamProtocolError, match="too long"):
                measure(data, 100)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["tools/call", "tools/list"])
async def test_a_number_that_python_reads_and_others_do_not_is_refused_in_results_and_tools(where):
    holding = (
        '{"content":[],"structuredContent":{"a":%s},"tools":[{"name":"t","inputSchema":{"maximum":%s}}]}'
    )

    async def fault(seen, writer):
        writer.write(http(200, reply(holding.replace("%s", "7" * 500), seen.id)))

    async with importing() as (server, imported):
        server.faults[where] = fault
        with pytest.raises(HeadgateError) as caught:
            await (call(imported[0]) if where == "tools/call" else imported.refresh())
    assert "upstream_protocol_error" in {caught.value.code, (caught.value.details or {}).get("reason")}


@pytest.mark.parametrize("body", ["[]", "3", '{"jsonrpc":"2.0"}', '{"id":1,"result":{}}', "{", ""])
def test_what_is_no_message_is_refused(body):
    with pytest.raises(UpstreamProtocolError):
        read_message(body.encode(), None, max_values=100)


def test_a_token_in_escapes_is_redacted_after_parsing():
    escaped = "".join(f"\\u{ord(character):04x}" for character in TOKEN)
    found = read_message(reply(f'{{"{escaped}":["{escaped}"]}}'), Secret(TOKEN), max_values=100)
    assert found.result == {"[REDACTED]": ["[REDACTED]"]}


LINES = st.lists(
    st.sampled_from(["data: 1", "data:2", "data", "id: a", "event: x", ": note", "retry: 5", "odd", "", ""]),
    max_size=12,
)


@given(LINES, st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=24, max_size=24), st.data())
def test_events_are_the_same_however_the_bytes_are_split(lines, ends, data):
    whole = "".join(line + end for line, end in zip([*lines, "", ""], ends, strict=False)).encode()
    # Behind a single CR the next byte decides whether its line has ended.
    whole += b": end\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=10)))
    parts = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    expected = list(EventAssembler().feed(whole))
    # Single bytes are the split in which every pair of CR and LF is apart, and in two parts each is once.
    in_two = [[whole[:at], whole[at:]] for at in range(len(whole))]
    for split in (parts, [whole[at : at + 1] for at in range(len(whole))], *in_two):
        in_parts = EventAssembler()
        assert [event for part in split for event in in_parts.feed(part)] == expected


@pytest.mark.anyio
@pytest.mark.parametrize("as_events", [False, True])
async def test_an_escaped_token_is_redacted_wherever_the_answer_is_split(as_events):
    """Every split of the escape in two packets, a backslash at the end of the first among them."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in TOKEN)
    for cut in range(7):

        async def splits(seen, writer, cut=cut):
            body = reply(f'{{"structuredContent":{{"text":"{escaped}"}}}}', seen.id)
            if as_events:
                body = b"data: " + body + b"\n\n"
            at = body.index(b"\\u") + cut
            kind = "text/event-stream" if as_events else "application/json"
            head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
            writer.write(head.encode())
            for part in (body[:at], body[at:], b""):
                writer.write(b"%x\r\n%s\r\n" % (len(part), part))
                await writer.drain()

        async with importing(token=TOKEN, faults={"tools/call": splits}) as (_, imported):
            assert (await call(imported[0])).data == {"text": "[REDACTED]"}


@pytest.mark.anyio
async def test_an_error_status_with_a_large_body_is_the_error_of_its_status():
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"%s"}}' % (b"x" * 2_000_000)
    async with importing(faults={"tools/call": answers(http(500, body))}) as (_, imported):
        with pytest.raises(Exception, match="answered with an error") as caught:
            await call(imported[0])
    assert len(caught.value.details["rpcMessage"]) == 500
