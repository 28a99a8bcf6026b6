from __future__ import annotations

import base64

import pytest

from headgate.text.binary import binary_facts
from headgate.text.titles import title

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


@pytest.mark.parametrize("joint", ["\n", "\r\n"])
def test_encoded_bytes_in_lines_are_binary_and_lines_of_words_are_not(joint: str):
    encoded = base64.b64encode(bytes(range(256)) * 4).decode()
    lines = joint.join(encoded[at : at + 76] for at in range(0, len(encoded), 76))
    assert binary_facts(lines)["size_chars"] == len(lines)
    assert binary_facts(joint.join(["alpha", "beta", "gamma", "delta"] * 40)) is None
