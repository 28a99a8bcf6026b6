from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from headgate.text.document import title
from headgate.text.ladder import binary_facts

HIT = {"stream": "messages", "connection_id": "cin_a", "connector_key": "slack", "display_name": "Work Slack"}


@pytest.mark.requirement("S2-55", "S2-56")
@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"title": "Plan", "data": {"subject": "no"}}, "Plan"),
        ({"data": {"subject": "Hello\nthere"}}, "Hello there"),
        (
            {**HIT, "authored_at": "2026-02-03", "emitted_at": "2027-01-01"},
            "Work Slack / messages / 2026-02-03",
        ),
        (
            {**HIT, "data": {"sent_at": "2026-02-03"}, "emitted_at": "2027"},
            "Work Slack / messages / 2026-02-03",
        ),
        *(
            ({**HIT, **place, "emitted_at": "2027"}, "Work Slack / messages / 2026-02-03")
            for name in ("created_at", "source_created_at", "occurred_at", "updated_at")
            for place in ({name: "2026-02-03"}, {"data": {name: "2026-02-03"}})
        ),
        ({**HIT, "display_name": "", "emitted_at": "2027"}, "slack / messages / 2027"),
        ({"stream": "messages", "connection_id": "cin_a"}, "cin_a / messages"),
        ({**HIT, "snippet": "found", "name": "  "}, "Work Slack / messages"),
        ({"title": "x" * 300}, "x" * 199 + "…"),
    ],
)
def test_a_title_is_the_records_own_or_says_whence_and_when(record: dict[str, object], expected: str):
    assert title(record) == expected


ENCODED = base64.b64encode(bytes(range(256)) * 4).decode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"blob_id": "b", "mime_type": "image/png", "size_bytes": 3, "sha256": "ab"}, ("b", "image/png")),
        ({"id": "u1", "url": "https://a.example"}, None),
        (ENCODED, (None, "application/octet-stream")),
        ("data:image/png;base64," + ENCODED, (None, "image/png")),
        ("word " * 100, None),
        ("a" * 400, None),
        (ENCODED[:200], None),
        (7, None),
    ],
)
def test_files_and_encoded_bytes_are_distinguished_from_text(
    value: object, expected: tuple[str | None, str] | None
):
    facts = binary_facts(value)
    found = None if facts is None else (facts.get("blob_id"), facts["mime_type"])
    assert found == expected


RAW = bytes(range(256)) * 4
URL_SAFE = base64.urlsafe_b64encode(RAW).decode()


def in_lines(text: str, width: int, joint: str = "\n") -> str:
    return joint.join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.requirement("S3-32")
@pytest.mark.parametrize("joint", ["\n", "\r\n"])
@pytest.mark.parametrize("width", [40, 60, 64, 70, 72, 76, 300])
@pytest.mark.parametrize("encoded", [ENCODED, URL_SAFE, URL_SAFE.rstrip("=")])
def test_encoded_bytes_in_lines_are_binary(encoded: str, width: int, joint: str):
    lines = in_lines(encoded, width, joint)
    for text in (lines, lines + joint, lines[:1000]):
        assert binary_facts(text)["size_chars"] == len(text)


@pytest.mark.requirement("S3-32")
@pytest.mark.parametrize("size", range(900, 904))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_encoded_bytes_are_binary_with_and_without_padding(encode: Callable[[bytes], bytes], size: int):
    encoded = encode(RAW[:size]).decode()
    assert set("+/-_") & set(encoded)
    for text in (encoded, encoded.rstrip("=")):
        assert binary_facts(text)["size_chars"] == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["alpha", "beta", "gamma", "delta"] * 40),
        in_lines("no word ends here " * 60, 64),
        "one-long-name-of-lower-case-letters-" * 9 + "x",
        "9" * 401,
        "\n" * 400,
        "a\n" * 400,
    ],
)
def test_words_and_names_are_not_taken_for_encoded_bytes(text: str):
    assert binary_facts(text) is None


def test_encoded_bytes_are_no_title():
    assert title({**HIT, "data": {"title": URL_SAFE}}) == "Work Slack / messages"
