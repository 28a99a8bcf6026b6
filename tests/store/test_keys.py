"""Keys that are looked for by their beginning and their digest."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from headgate.model.ids import RecordId, digest_of_key
from headgate.model.plan import KeyPlan
from tests.store.engines import fresh
from tests.store.ledger import Ledger

#: With the first and the last character that a key can have, and one beyond those of two bytes.
ENDS = st.text(st.sampled_from("\x01a\u07ff\uffff\U0010ffff"), max_size=4)
STARTS = st.sampled_from(["k" * 8, "\U0010ffff" * 4, "世界"])


@settings(deadline=None, max_examples=30)
@given(STARTS, st.sets(ENDS, min_size=1, max_size=8), st.data())
def test_a_key_is_found_by_its_beginning_and_its_digest_alone(
    start: str, ends: set[str], data: st.DataObject
):
    keys = [start + end for end in sorted(ends)]
    with fresh("sqlite") as store:
        ledger = Ledger(store, connections=2)
        ledger.put(*({"id": key, "title": "x"} for key in [*keys, "before", "\U0010ffff" * 1_024]))
        for key in keys:
            beginning = RecordId(key[: data.draw(st.integers(1, len(start)))])
            assert store.key(KeyPlan(ledger.reach(), beginning, digest_of_key(RecordId(key)))) == key
        absent = digest_of_key(RecordId(start + "absent"))
        assert store.key(KeyPlan(ledger.reach(), RecordId(start), absent)) is None


def test_a_key_is_found_only_inside_the_reach(ledger: Ledger):
    key = RecordId("k" * 300)
    ledger.put({"id": key, "title": "x", "at": "2026-03-01T00:00:00Z"})
    digest = digest_of_key(key)

    def found(**narrowed: object) -> RecordId | None:
        return ledger.store.key(KeyPlan(ledger.reach(**narrowed), RecordId("k"), digest))

    assert found() == key
    assert found(resources=[key]) == key
    assert found(connections=[1]) is None
    assert found(connections=[]) is None
    assert found(resources=["other"]) is None
    assert found(since="2026-04-01T00:00:00Z") is None
    ledger.remove(key)
    assert found() is None
