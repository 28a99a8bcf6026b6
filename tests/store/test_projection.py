"""Bodies are cut down to fields in two ways, by how often the fields are asked for; both give the same bytes."""

from __future__ import annotations

import gc
import json

import msgspec
from hypothesis import given, strategies as st

from headgate.model.ids import FieldName
from headgate.store.format.records import Projector

NAMES = st.text(min_size=1, max_size=4).map(FieldName)
VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(NAMES, VALUES, max_size=6), st.lists(NAMES, max_size=3), st.data())
def test_a_body_is_cut_down_alike_however_often_its_fields_are_asked_for(
    values: dict[FieldName, object], others: list[FieldName], data: st.DataObject
):
    fields = data.draw(st.permutations(list(dict.fromkeys((*values, *others)))))
    chosen = fields[: data.draw(st.integers(0, len(fields)))]
    added = dict.fromkeys(data.draw(st.lists(st.sampled_from(chosen))) if chosen else (), "a text")
    body, projector = json.dumps(values).encode(), Projector(chosen)
    ways: set[bytes] = set()
    for _ in range(12):
        projector.count_read()
        ways.add(projector.project(body, added))
    assert len(ways) == 1
    expected = {name: {**values, **added}[name] for name in chosen if name in values or name in added}
    assert json.loads(ways.pop()) == expected


def test_no_type_is_made_for_fields_that_are_asked_for_once():
    # What earlier tests left for the collector must not leave in between.
    gc.collect()
    before = len(msgspec.Struct.__subclasses__())
    made = [Projector((FieldName("id"), FieldName(f"f{number}"))) for number in range(100)]
    for one in made:
        one.count_read()
        assert one.project(b'{"id":"x","other":1}') == b'{"id":"x"}'
    assert len(msgspec.Struct.__subclasses__()) == before
