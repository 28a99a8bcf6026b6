"""What a server sends is quoted without our token and without control characters."""

from hypothesis import given, strategies as st

from headgate.mcp.client.message import Redactor, redact_value, sanitise
from headgate.operations.secrets import Secret

TOKEN = "tokentok-1"


@given(st.lists(st.sampled_from([TOKEN, TOKEN[:4], TOKEN[4:], "x", "to", "ken"]), max_size=12), st.data())
def test_a_token_is_taken_out_however_the_bytes_are_cut(pieces, data):
    whole = "".join(pieces).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    redact = Redactor(Secret(TOKEN))
    clean = b"".join(redact(part) for part in parts) + redact.rest()
    assert TOKEN.encode() not in clean
    assert clean.replace(b"[REDACTED]", TOKEN.encode()) == whole


@given(st.binary(max_size=200))
def test_without_a_token_nothing_is_touched(whole):
    redact = Redactor(None)
    assert redact(whole) + redact.rest() == whole


def test_a_parsed_answer_is_searched_everywhere():
    found = redact_value({TOKEN: [f"a{TOKEN}b", {"x": TOKEN}, 1, None, True]}, Secret(TOKEN))
    assert found == {"[REDACTED]": ["a[REDACTED]b", {"x": "[REDACTED]"}, 1, None, True]}


def test_quoted_text_is_short_and_holds_no_control_characters():
    words = sanitise(f"\x1b[31m{TOKEN}\n" + "x" * 2000, Secret(TOKEN))
    assert words.startswith("\\x1b[31m[REDACTED]\\n")
    assert len(words) < 600
