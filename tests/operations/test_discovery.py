"""Listing, searching and describing show the same operations, and none that the caller cannot reach."""

import json

import pytest

from headgate.errors import CallError
from headgate.operations.discovery import description, find_visible, summary, visible_specs
from headgate.operations.finding import OperationFinder
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


def ranked(identity, query):
    return ids(OperationFinder().rank(list(visible_specs(HELD, identity)), query))


@pytest.mark.requirement("S0-11")
def test_a_caller_sees_what_it_can_reach_and_no_more():
    assert ids(visible_specs(HELD, None)) == ["ns/open"]
    assert ids(visible_specs(HELD, READER)) == ["ns/open", "ns/closed"]
    assert ranked(None, "") == ["ns/open"]
    assert ranked(READER, "") == ["ns/closed", "ns/open"]
    assert ranked(READER, "canary") == []


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
    ("query", "is_found"),
    [
        ("", True),
        ("OPEN", True),
        ("öffnen", True),
        ("opening", True),
        ("door house", True),
        ("ns/open", True),
        ("door garden", True),
        ("garden", False),
        ("query", False),
    ],
)
def test_a_query_needs_one_of_its_words_in_a_name_a_description_or_a_tag(query, is_found):
    assert ("ns/open" in ranked(None, query)) is is_found


def test_what_has_more_of_the_rare_words_of_a_task_comes_first():
    specs = [
        operation(name="list_files", description="List the files of a repository.").spec,
        operation(name="create_file", description="Create or update one file in a repository.").spec,
        operation(name="create_issue", description="Create an issue in a repository.").spec,
    ]
    finder = OperationFinder()
    assert [spec.local_name for spec in finder.rank(specs, "create a file")] == [
        "create_file",
        "create_issue",
        "list_files",
    ]
    assert finder.rank(specs, "open an issue about the roof")[0].local_name == "create_issue"
    assert finder.rank(specs, "list_files")[0].local_name == "list_files"


def test_a_task_of_thousands_of_words_takes_as_much_work_as_a_short_one():
    specs = list(visible_specs(HELD, None))
    finder = OperationFinder()
    assert finder.rank(specs, " ".join(f"word{n}" for n in range(5000)) + " open") == []
    assert ids(finder.rank(specs, "open " + " ".join(f"word{n}" for n in range(5000)))) == ["ns/open"]


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
