"""Hostile lines: whatever a line holds, it is stored or rejected with a reason, and no other line is lost."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings, strategies as st

from headgate.model.rows import IngestReport, OnInvalid
from tests.store.declared import NOTE_FIELDS
from tests.store.ledger import Ledger

_NUMBERS = st.sampled_from(
    [0, -1, 2**53, 2**63, -(2**63), 10**400, 1e300, -0.0, float("nan"), float("inf"), 5e-324]
)
_TEXTS = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(
    ["\ud800", "\0", "\udfff\ud800", "2026-02-30", "2026-01-01", "9999-12-31T23:59:59-14:00", "é" * 40, "~/"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)
_DATA = st.dictionaries(st.sampled_from(NOTE_FIELDS) | _TEXTS, _VALUES, max_size=6)
_ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "data": _DATA.map(lambda data: data | {"id": "x"}) | _DATA | _VALUES,
        "key": _VALUES,
        "op": st.sampled_from(["upsert", "delete"]) | _VALUES,
        "emitted_at": _TEXTS | _VALUES,
        "stream": st.just("notes") | _VALUES,
        "more": _VALUES,
    },
)
_LINES = (
    st.binary(max_size=40)
    | (_ENVELOPES | _VALUES).map(lambda line: json.dumps(line).encode())
    | (_ENVELOPES | _VALUES).map(
        lambda line: json.dumps(line, ensure_ascii=False).encode(errors="surrogatepass")
    )
)
_DEEP = b'{"data":{"id":"x","extra":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
_TWICE = b'{"data":{"id":"x","size":1,"size":"two"}}'
_WIDE = b'{"data":{"id":"x","extra":{%b}}}' % b",".join(b'"%d":0' % n for n in range(1001))


@given(st.lists(_LINES, max_size=12), st.sampled_from(OnInvalid))
@example([_DEEP, _TWICE, _WIDE, b'{"data":{"id":"x","size":NaN}}'], OnInvalid.REJECT)
@example([_DEEP, _TWICE, _WIDE, b'{"data":{"id":"x","size":' + b"9" * 5000 + b"}}"], OnInvalid.KEEP)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_line_is_stored_or_rejected_with_a_reason_and_no_other_is_lost(
    ledger: Ledger, hostile: list[bytes], on_invalid: OnInvalid
):
    ledger.remove("first", "last")
    lines = [b'{"data":{"id":"first"}}', *hostile, b'{"data":{"id":"last"}}']
    report = ledger.send(*lines, on_invalid=on_invalid)
    assert report.accepted + report.rejected == len(lines)
    rejected = [one.index for one in report.errors]
    assert rejected == sorted(set(rejected))
    assert not {0, len(lines) - 1} & set(rejected)
    for one in (*report.errors, *report.invalid):
        assert one.code.startswith("invalid_record"), one
        assert one.message
        assert one.pointer == "" or one.pointer.startswith("/")
    assert {one.index for one in report.invalid}.isdisjoint(rejected)
    assert on_invalid is OnInvalid.KEEP or report.invalid == ()
    assert {"first", "last"} <= set(_all_keys(ledger))
    # Each line alone has the same outcome: none depends on its neighbours.
    alone = [ledger.send(line, on_invalid=on_invalid).rejected for line in lines]
    assert [index for index, count in enumerate(alone) if count] == rejected


def _all_keys(ledger: Ledger) -> list[str]:
    found: list[str] = []
    position: Any = None
    for _ in range(50):
        page = ledger.page(ledger.reach(connections=[0]), after=position)
        found += [record.id for record in page.records]
        position = page.next
        if position is None:
            return found
    return found


def test_every_value_that_is_rejected_has_its_reason(ledger: Ledger):
    lines = [
        _DEEP,
        _WIDE,
        b'{"data":{"id":"x","title":"\\ud800"}}',
        b'{"data":{"id":"x","size":NaN}}',
        _TWICE,
        json.dumps({"data": {"id": "x", **{f"m{n}": n for n in range(1000)}}}).encode(),
    ]
    found = {one.index: (one.pointer, one.message) for one in ledger.send(*lines).errors}
    assert found[1] == ("/data/extra", "The object has more than 1000 members.")
    assert found[2] == ("/data/title", "The text is broken Unicode.")
    assert found[3][1] == "The line is not JSON."
    # Of two members with one name the last counts, here and in the schema.
    assert found[4][0] == "/data/size"
    assert found[5] == ("/data", "The object has more than 1000 members.")
    assert ledger.send(b'{"data":{"id":"x","size":"two","size":1}}') == IngestReport(1)
