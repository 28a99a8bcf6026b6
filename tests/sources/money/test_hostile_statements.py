"""Broken and hostile statements: rejects, never an exception, and rows that can be stored."""

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.money.source import MONEY as SOURCE
from headgate.sources.protocol import Certainty, Recognised
from tests.sources.money.test_money import CAMT, GERMAN, SGML, XML
from tests.sources.money.test_qif_mt940 import MT940, QIF
from tests.sources.reading import input_file, read_all, rejects_of, rows_of

FILES = {"a.ofx": SGML, "b.qfx": XML, "c.xml": CAMT, "d.csv": GERMAN.encode(), "e.qif": QIF, "f.sta": MT940}
NAMES = st.sampled_from(sorted(FILES))


def read_anyway(name, content):
    """Read a file whether or not it would be recognised: it may change after it was."""
    return read_all(SOURCE, Recognised("money", "x", [input_file(name, content)], Certainty.FORMAT))


@given(NAMES, st.data())
@settings(max_examples=150, deadline=None)
def test_a_statement_cut_anywhere_gives_its_beginning(name, data):
    content = FILES[name]
    cut = read_anyway(name, content[: data.draw(st.integers(0, len(content)))])
    whole = rows_of(read_anyway(name, content), "transactions")
    # The last line may be half of one.
    assert rows_of(cut, "transactions")[:-1] == whole[: max(0, len(rows_of(cut, "transactions")) - 1)]


@given(NAMES, st.data(), st.binary(min_size=1, max_size=20))
@settings(max_examples=150, deadline=None)
def test_other_bytes_anywhere_break_nothing(name, data, bad):
    content = FILES[name]
    at = data.draw(st.integers(0, len(content)))
    read_anyway(name, content[:at] + bad + content[at + data.draw(st.integers(0, 20)) :])


@given(NAMES, st.binary(max_size=200))
def test_any_bytes_at_all_are_read_without_an_exception(name, content):
    read_anyway(name, content)


@given(NAMES, st.sampled_from(["utf-16", "utf-16-be", "utf-7", "utf-32"]))
def test_another_encoding_than_the_declared_one_breaks_nothing(name, encoding):
    read_anyway(name, FILES[name].decode("latin-1").encode(encoding))


@pytest.mark.parametrize("encoding", ["AUTF-8", "rot13", "punycode", "shift_jis", "undefined", "base64"])
def test_an_encoding_that_is_unknown_or_is_none_is_refused(encoding):
    content = CAMT.replace(b'encoding="UTF-8"', f'encoding="{encoding}"'.encode())
    assert content != CAMT
    (reject,) = rejects_of(read_anyway("c.xml", content))
    assert "encoding" in reject.reason or "broken" in reject.reason


def test_an_entity_bomb_is_refused():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    (reject,) = rejects_of(read_anyway("c.xml", CAMT.replace(b"<Document", bomb + b"<Document", 1)))
    assert reject.reason == "A document type is refused here."


def test_an_external_entity_is_never_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password")
    entity = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{secret}">]>'.encode()
    items = read_anyway(
        "c.xml", CAMT.replace(b"<Document", entity + b"<Document", 1).replace(b"Tomatoes", b"&a;")
    )
    assert "password" not in repr(items)
    ofx = read_anyway("a.ofx", entity + SGML.replace(b"Bread", b"&a;"))
    assert rows_of(ofx, "transactions")[0]["description"] == "&a;"


def test_deep_nesting_is_refused():
    (reject,) = rejects_of(read_anyway("c.xml", b"<!-- camt.053. -->" + b"<a>" * 1000))
    assert "deeper" in reject.reason


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_huge_field_is_cut_or_refused_and_the_rest_is_read(name):
    huge = b"x" * 5_000_000
    marks = {
        "a.ofx": b"Bread",
        "b.qfx": b"Caf\xc3\xa9",
        "c.xml": b"Tomatoes",
        "d.csv": b"Kartenzahlung",
        "e.qif": b"Bread and cake",
        "f.sta": b"Returned",
    }
    items = read_anyway(name, FILES[name].replace(marks[name], huge))
    rows = rows_of(items, "transactions")
    assert all(len(str(row)) < 50_000 for row in rows)
    assert len(rows) + len(rejects_of(items)) >= 1
    if name != "d.csv":
        assert len(rows) == len(rows_of(read_anyway(name, FILES[name]), "transactions"))
    else:
        assert rows[-1]["description"] == "März; Lohn"


def test_a_quote_without_an_end_costs_at_most_the_rows_that_it_swallows():
    good = "".join(f'02.03.2026;"Mill {n:060}";"-1,00"\n' for n in range(4000))
    table = f'Buchungstag;Verwendungszweck;Betrag\n02.03.2026;"open;-1,00\n{good}'
    items = read_anyway("a.csv", table.encode())
    assert len(rows_of(items, "transactions")) > 2000


def test_nul_and_half_of_a_pair_are_left_out():
    items = read_anyway("a.ofx", SGML.replace(b"Bread", b"Br\0ead &#xD800; \xed\xa0\x80"))
    assert "\0" not in rows_of(items, "transactions")[0]["description"]
