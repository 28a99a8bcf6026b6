from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st

from headgate.errors import InvalidRequest
from headgate.model import ids

ANY_TEXT = st.text(max_size=40)
OPAQUE = [ids.subject_id, ids.client_id, ids.grant_id, ids.package_id, ids.connection_id, ids.stream_name]
ALL = [*OPAQUE, ids.source_id, ids.connector_key, ids.field_name, ids.record_id, ids.blob_id, ids.request_id]


@pytest.mark.parametrize("read", ALL, ids=lambda read: read.__name__)
@given(text=st.text(st.characters(), max_size=30))
def test_an_id_is_the_text_it_was_read_from_or_is_refused(read: Callable[[str], str], text: str):
    try:
        outcome = read(text)
    except InvalidRequest as error:
        outcome = error
    if isinstance(outcome, InvalidRequest):
        assert outcome.param
        assert outcome.code == "invalid_request"
    else:
        assert outcome == text


@pytest.mark.parametrize("read", ALL, ids=lambda read: read.__name__)
@pytest.mark.parametrize("text", ["", "\ud800", "a\0b", "x" * 1025])
def test_no_id_is_empty_endless_broken_unicode_or_holds_nul(read: Callable[[str], str], text: str):
    if read is ids.field_name and len(text) > 1000:
        assert read(text) == text
        return
    with pytest.raises(InvalidRequest):
        read(text)


@pytest.mark.parametrize("read", OPAQUE, ids=lambda read: read.__name__)
@pytest.mark.parametrize("hidden", ["\n", "\t", "\x1b", "\u202e", "\u200b", "\u2028", "\U000e0041", "\ufeff"])
def test_an_opaque_id_shows_every_character_it_has(read: Callable[[str], str], hidden: str):
    with pytest.raises(InvalidRequest):
        read(f"a{hidden}b")


@pytest.mark.parametrize("good", ["gmail", "claude-code", "a", "0day", "a.b_c-d"])
def test_a_connector_key_is_a_short_lower_case_word(good: str):
    assert ids.connector_key(good) == good


@pytest.mark.parametrize("bad", ["Gmail", "https://example.org/x", "-a", "a b", "a/b", "é"])
def test_a_connector_key_is_never_an_address(bad: str):
    with pytest.raises(InvalidRequest):
        ids.connector_key(bad)


@pytest.mark.parametrize(
    "good", ["https://registry.example/connectors/slack", "urn:x:y", "HTTPS://A.example/%7e"]
)
def test_a_source_id_is_an_absolute_uri_kept_byte_for_byte(good: str):
    assert ids.source_id(good) == good


@pytest.mark.parametrize("bad", ["slack", "/a/b", "https:", "1x:y", "https://a b", "http://[::1"])
def test_a_relative_or_broken_source_id_is_refused(bad: str):
    with pytest.raises(InvalidRequest):
        ids.source_id(bad)


def test_a_stream_cannot_be_named_star():
    with pytest.raises(InvalidRequest):
        ids.stream_name("*")


def test_a_blob_is_named_by_its_digest():
    assert ids.blob_id_from("ab" * 32) == f"blob_{'ab' * 32}"
    with pytest.raises(InvalidRequest):
        ids.blob_id("../../etc/passwd")


@given(ANY_TEXT)
def test_plain_text_has_no_line_break_control_or_direction_mark(text: str):
    if ids.is_plain(text):
        assert len(text.splitlines()) <= 1
        assert not set(text) & set("\0\x1b\x7f\x85\u202a\u202e\u2066\u2069\u200b\ufeff")
