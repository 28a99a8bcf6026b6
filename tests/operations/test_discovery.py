"""Listing, searching and describing show the same operations, and none that the caller cannot reach."""

import json

import pytest

from headgate.errors import CallError
from headgate.operations.discovery import description, find_visible, search, summary, visible_specs
from headgate.operations.spec import AccessControl, ErrorDefinition, Identity
from tests.operations.parts import leaf, operation, registry

READER = Identity("reader", frozenset({"read"}))
RESTRICTED = AccessControl(required_scopes=("read",))


HELD = registry(
    operation(name="open", title="Öffnen", description="Opens a door", tags=("house",)),
    operation(name="closed", access_control=RESTRICTED),
    leaf(name="hidden", description="canary"),
)


def ids(specs):
    return [spec.id for spec in specs]


@pytest.mark.requirement("S0-11")
def test_a_caller_sees_what_it_can_reach_and_no_more():
    assert ids(visible_specs(HELD, None)) == ["ns/open"]
    assert ids(visible_specs(HELD, READER)) == ["ns/open", "ns/closed"]
    assert ids(search(HELD, None).specs) == ["ns/open"]
    assert ids(search(HELD, READER).specs) == ["ns/closed", "ns/open"]
    assert search(HELD, READER, "canary").specs == ()


@pytest.mark.requirement("S0-11")
def test_what_is_hidden_restricted_or_missing_looks_the_same():
    shown = []
    for name in ("ns/hidden", "ns/closed", "ns/none"):
        with pytest.raises(CallError) as raised:
            find_visible(HELD, None, name)
        assert raised.value.code == "NOT_FOUND"
        shown.append(raised.value.message.replace(name, "X"))
    assert len(set(shown)) == 1
    assert find_visible(HELD, READER, "/ns/closed").id == "ns/closed"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", True),
        ("OPEN", True),
        ("öffnen", True),
        ("door house", True),
        ("ns/open", True),
        ("door garden", False),
        ("query", False),
    ],
)
def test_a_query_needs_all_its_words_somewhere(query, found):
    assert ("ns/open" in ids(search(HELD, None, query).specs)) is found


def test_a_search_has_pages():
    held = registry(*(operation(name=f"op{n:03}") for n in range(130)))
    first = search(held, None)
    assert (len(first.specs), first.next_offset) == (25, 25)
    second = search(held, None, limit=1_000, offset=first.next_offset)
    assert (len(second.specs), second.next_offset) == (100, 125)
    last = search(held, None, limit=100, offset=second.next_offset)
    assert (len(last.specs), last.next_offset) == (5, None)
    assert ids([*first.specs, *second.specs, *last.specs]) == sorted(f"ns/op{n:03}" for n in range(130))


def test_a_description_says_how_to_call_and_not_who_may_nor_from_where():
    spec = operation(
        title="T",
        input_schema={"type": "object"},
        error_schemas=(ErrorDefinition("E", "e", schema={"type": "null"}, http_status=418),),
        access_control=AccessControl(required_scopes=("canary-scope",)),
        meta={"mcp": {"endpoint": "https://canary.example/"}},
    ).spec
    shown = description(spec)
    assert shown["id"] == "ns/op"
    assert shown["input_schema"] == {"type": "object"}
    assert shown["error_schemas"] == [
        {"code": "E", "description": "e", "schema": {"type": "null"}, "http_status": 418}
    ]
    assert "canary" not in json.dumps(shown)
    assert summary(spec) == {
        "id": "ns/op",
        "namespace": "ns",
        "name": "op",
        "op_type": "query",
        "description": "",
        "title": "T",
    }
