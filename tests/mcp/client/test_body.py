"""Bodies on their way in."""

import pytest
from hypothesis import given, strategies as st

from headgate.errors import UpstreamProtocolError, UpstreamSuspended
from headgate.mcp.client.body import Redactor, sanitise
from headgate.mcp.client.call_queue import Breaker
from headgate.mcp.client.session import redact_value
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
    with pytest.raises(UpstreamProtocolError):
        redact_value({"n": [float("inf")]}, None)


def test_words_of_a_stranger_are_short_and_obey_nobody():
    words = sanitise(f"\x1b[31m{TOKEN}\n" + "x" * 2000, Secret(TOKEN))
    assert words.startswith("\\x1b[31m[REDACTED]\\n")
    assert len(words) < 600


def test_a_breaker_opens_waits_and_lets_one_trial_through():
    breaker = Breaker(3, 30.0)
    for now in range(3):
        breaker.check(now)
        breaker.failed(now)
    with pytest.raises(UpstreamSuspended) as caught:
        breaker.check(10)
    assert caught.value.details == {"retry_after": 22}
    breaker.check(32)
    with pytest.raises(UpstreamSuspended):
        breaker.check(32)
    breaker.failed(33)
    with pytest.raises(UpstreamSuspended):
        breaker.check(60)
    breaker.check(63)
    breaker.gave_up()
    breaker.check(63)
    breaker.succeeded()
    breaker.check(64)
    breaker.check(64)
