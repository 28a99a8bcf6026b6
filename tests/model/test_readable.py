from __future__ import annotations

import re
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from headgate.model.ids import (
    ConnectorKey,
    RecordId,
    RecordRef,
    StreamName,
    connection_id,
    format_result_id,
    parse_result_id,
)
from headgate.model.readable import CONNECTION_CHARS, connection_ids, slug

MAIL = ConnectorKey("mail")
FORM = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def first(name: str, connector: str = "mail") -> str:
    return next(connection_ids(name, ConnectorKey(connector)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Home mail", "home-mail"),
        ("bank", "bank"),
        ("Nora's Büro", "noras-buro"),
        ("Nora\u2019s \u2014 Straße/Øst: Łódź", "noras-strasse-ost-lodz"),
        ("nora@hallam.example", "nora-hallam-example"),
        ("\uff22\uff41\uff4e\uff4b 2", "bank-2"),
        ("__../..//x::y\\\\z%00", "x-y-z-00"),
        ("Bank 日本", "bank"),
        ("日本語", "mail"),
        ("\U0001f600\u200d\U0001f600", "mail"),
        ("", "mail"),
        ("2025", "mail-2025"),
        ("cin_0123456789abcdef01234567", "cin-0123456789abcdef01234567"),
        ("x" * 90, "x" * 40),
        ("one two three four five six seven eight nine", "one-two-three-four-five-six-seven-eight"),
    ],
)
def test_an_id_is_made_of_the_words_of_a_name(name: str, expected: str):
    assert first(name) == expected


def test_a_name_without_a_letter_gets_its_connectors_form():
    assert list(islice(connection_ids("銀行", ConnectorKey("table_v1.x")), 3)) == [
        "table-v1-x", "table-v1-x-2", "table-v1-x-3",
    ]  # fmt: skip


@given(st.text(max_size=300), st.sampled_from(["mail", "0", "a" * 200, "k._-", "東京"]))
def test_whatever_the_name_every_id_fits_the_grammar_of_ids(name: str, connector: str):
    ids = list(islice(connection_ids(name, ConnectorKey(connector)), 12))
    assert len(set(ids)) == len(ids)
    for made in ids:
        assert FORM.fullmatch(made)
        assert len(made) <= CONNECTION_CHARS
        assert connection_id(made) == made
        ref = RecordRef(made, StreamName("notes"), RecordId("r1"))
        text = format_result_id(ref)
        assert text is not None
        assert parse_result_id(text) == ref


@given(st.text(max_size=100), st.integers(1, 60))
def test_a_slug_is_short_and_stable(text: str, most: int):
    made = slug(text, most)
    assert len(made) <= most
    assert made == "" or FORM.fullmatch(made)
    assert slug(made, most) == made
