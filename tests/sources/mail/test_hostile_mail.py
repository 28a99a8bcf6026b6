"""Mail that is damaged or made to do harm: every message gives rows that the store takes, or a reject."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings, strategies as st

from headgate.sources.mail.html import text_of_html
from headgate.sources.mail.rows import MailRows, MailState
from headgate.sources.protocol import Row
from tests.sources.mail.mails import ANSWER, LETTER, check_items

MIXED = b"""\
From: ada@example.org
Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
Date: Tue, 3 Mar 2026 10:00:00 +0200
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: quoted-printable

Gr=C3=BC=C3=9Fe
--c
Content-Type: text/html; charset=iso-8859-1

<p>Gr\xfc\xdfe</p>
--c--
--b
Content-Type: application/octet-stream; name*=utf-8''%e2%82%ac.bin
Content-Disposition: attachment
Content-Transfer-Encoding: base64

AAECAwQF
--b
Content-Type: message/rfc822

Subject: inner

hello
--b--
"""
CHARSETS = [
    "utf-7",
    "utf-16",
    "x-unknown",
    "idna",
    "base64",
    "unicode_escape",
    "hex",
    "\x00",
    "utf-8\xff",
    "a" * 300,
]


def read(raw: bytes) -> Sequence[object]:
    items = list(MailRows().of(raw, MailState("test")))
    check_items(items)
    return items


@st.composite
def damaged(draw) -> bytes:
    raw = bytearray(draw(st.sampled_from((LETTER, ANSWER, MIXED))))
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(raw)))
        end = min(len(raw), at + draw(st.integers(0, 30)))
        raw[at:end] = draw(st.binary(max_size=30))
    return bytes(raw[: draw(st.integers(0, len(raw)))] if draw(st.booleans()) else raw)


@settings(max_examples=200, deadline=None)
@given(damaged())
def test_a_damaged_message_is_read_or_rejected(raw):
    read(raw)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
@example(b"")
@example(b"\n\n")
@example(b"\xff\xfe\x00")
@example(b"Subject: no blank line")
def test_any_bytes_are_read_as_a_message(raw):
    assert sum(isinstance(item, Row) and item.stream == "messages" for item in read(raw)) == 1


@settings(max_examples=60, deadline=None)
@given(
    charset=st.sampled_from(CHARSETS),
    encoding=st.sampled_from(["base64", "quoted-printable", "x-uuencode", "8bit", "x-unknown"]),
    body=st.binary(max_size=100),
    kind=st.sampled_from(["text/plain", "text/html", "text/", "", "application/pdf", "message/rfc822"]),
)
def test_any_body_in_any_charset_and_encoding_is_read(charset, encoding, body, kind):
    head = f'Content-Type: {kind}; charset="{charset}"; name="=?{charset}?q?=FF?="\nContent-Transfer-Encoding: {encoding}'
    read(head.encode("utf-8", "surrogateescape") + b"\n\n" + body)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        ["From", "To", "Date", "Subject", "Message-ID", "References", "X-Gmail-Labels", "X-GM-THRID"]
    ),
    st.binary(max_size=120).map(lambda value: re.sub(rb"[\r\n]", b" ", value)),
)
def test_any_header_is_read(name, value):
    read(name.encode() + b": " + value + b"\n\nbody\n")


def nested(levels: int) -> bytes:
    heads = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level)
        for level in range(levels)
    )
    return b"Subject: deep\n" + heads + b"Content-Type: text/plain\n\nhere\n"


@pytest.mark.parametrize("levels", [50, 300, 3000])
def test_parts_inside_parts_end_no_import(levels):
    (message,) = [
        item for item in read(nested(levels)) if isinstance(item, Row) and item.stream == "messages"
    ]
    assert message.data["subject"] == "deep"
    assert "here" in message.data["body"]


@pytest.mark.parametrize(
    "raw",
    [
        b"Subject: " + b"x" * 1_000_000 + b"\n\nbody",
        b"To: " + b"a@example.org, " * 70_000 + b"\n\nbody",
        b"To: " + b"<(" * 300_000 + b"\n\nbody",
        b"Subject: " + b"=?utf-8?q?a?= " * 70_000 + b"\n\nbody",
        b"X-A: b\n" * 100_000 + b"\nbody",
        b"References: " + b"<a@b> " * 100_000 + b"\n\nbody",
        b"Subject: folded\n" + b" x\n" * 200_000 + b"\nbody",
        b"Content-Type: text/plain; " + b"a=b; " * 100_000 + b"\n\nbody",
    ],
    ids=["subject", "to", "brackets", "words", "many", "references", "folded", "parameters"],
)
def test_headers_of_a_megabyte_are_read(raw):
    (message,) = [item for item in read(raw) if isinstance(item, Row) and item.stream == "messages"]
    assert len(str(message.data)) < 200_000


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 200_000 + "here",
        "<b><i>" * 50_000 + "here" + "</i></b>" * 50_000,
        "<table><tr><td>" * 30_000 + "here",
    ],
    ids=["open", "balanced", "tables"],
)
def test_html_nested_deep_is_read_as_its_words(html):
    assert text_of_html(html)[0] == "here"


def test_a_reply_that_looks_like_a_quotation_for_ever_is_folded():
    read(LETTER + b"On " * 100_000 + b"\n> x\n" + b"On \n> x\n" * 20_000)
