"""A refusal names what would work, of what the grant shows: hidden names and names that do not exist read alike."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from headgate.errors import ConnectionNotFound, HeadgateError
from headgate.model.declaration import RangeOperator
from headgate.model.grant import StreamGrant
from headgate.model.ids import ConnectionId
from headgate.model.query import (
    AggregateQuery,
    ExactFilter,
    ExpandRequest,
    ListQuery,
    Metric,
    Query,
    RangeFilter,
    RecordQuery,
    SearchQuery,
)
from headgate.nearest import nearest
from headgate.policy.allowance import SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.schema.declare import read_declaration
from tests.policy.worlds import HOME, MAIL, WORK, catalog, client, decide, grant, seals
from tests.schema.declarations import declaration

SEEN = ("id", "subject", "sent_at", "size")


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("start", ["id", "starts_at", "ends_at"], ["starts_at"]),
        ("from_adress", ["from", "from_address", "subject"], ["from_address", "from"]),
        ("STARTS_AT", ["starts_at"], ["starts_at"]),
        ("address", ["to_address", "name"], ["to_address"]),
        ("zzz", ["id", "name"], []),
        ("", ["id"], []),
    ],
)
def test_the_nearest_names_are_alike_in_spelling_beginning_or_words(
    name: str, names: list[str], expected: list[str]
):
    assert nearest(name, names) == expected


def refusal(query: Query, known: SourceCatalog) -> tuple[str, str, str | None, str]:
    access = client(grant(StreamGrant("messages", (HOME,), SEEN)))
    with pytest.raises(HeadgateError) as raised:
        decide(allow(access, known, Rules()), query, seals())
    error = raised.value
    return error.code, error.message, error.param, error.hint


def queries(name: Any) -> dict[str, Query]:
    return {
        "fields": ListQuery("messages", fields=(name,)),
        "exact": ListQuery("messages", filters=(ExactFilter(name, "x"),)),
        "range": ListQuery("messages", filters=(RangeFilter(name, RangeOperator.GTE, "2026-01-01"),)),
        "sort": ListQuery("messages", sort=name),
        "expand": ListQuery("messages", expand=(ExpandRequest(name),)),
        "group_by": AggregateQuery("messages", Metric.COUNT, group_by=name),
        "field": AggregateQuery("messages", Metric.SUM, field=name),
        "in": SearchQuery("x", in_fields=(name,)),
        "search": SearchQuery("x", streams=("messages",), filters=(ExactFilter(name, "x"),)),
        "stream": ListQuery(name),
        "searched stream": SearchQuery("x", streams=(name,)),
        "record": RecordQuery("messages", "m1", fields=(name,)),
        "connection": ListQuery("messages", connection_id=name),
        "connector": ListQuery("messages", connector_key=name),
    }


def without_hidden() -> SourceCatalog:
    """Declare and connect no more than the grant shows."""
    document = copy.deepcopy(declaration())
    document["selection_presets"] = []
    document["streams"] = [stream for stream in document["streams"] if stream["name"] == "messages"]
    (messages,) = document["streams"]
    properties = messages["schema"]["properties"]
    hidden = [name for name in properties if name not in SEEN]
    for name in hidden:
        del properties[name]
    messages["schema"]["required"] = [name for name in messages["schema"].get("required", ()) if name in SEEN]
    return _pruned(document, messages, hidden)


def _pruned(document: dict[str, Any], messages: dict[str, Any], hidden: list[str]) -> SourceCatalog:
    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(entry) for entry in value if entry not in hidden]
        if isinstance(value, dict):
            return {key: without(member) for key, member in value.items() if key not in hidden}
        return value

    messages["query"] = without({**messages["query"], "expand": []})
    messages |= {"views": [], "relationships": []}
    source = read_declaration(document)
    whole = catalog()
    return SourceCatalog({MAIL: source}, {HOME: whole.connections[HOME]})


@pytest.mark.parametrize("place", list(queries("x")))
@pytest.mark.parametrize("name", ["sender", "body", "attachments", "orders", WORK, "cin_shop", "shop"])
def test_a_hidden_name_reads_like_one_that_does_not_exist(place: str, name: str):
    query = queries(name)[place]
    assert refusal(query, catalog()) == refusal(query, without_hidden())


def test_the_nearest_field_and_those_with_a_range_are_named():
    code, message, param, _ = refusal(queries("sent")["exact"], catalog())
    assert (code, param) == ("field_not_granted", "filter")
    assert (
        message
        == 'messages has no field "sent" that you may read. Near: sent_at. Range fields: sent_at, size.'
    )


def test_without_a_near_name_the_fields_that_can_be_filtered_so_are_named():
    exact = refusal(queries("payee")["exact"], catalog())[1]
    assert exact.startswith('messages has no field "payee" that you may read. Filter fields: ')
    assert "subject" in exact


@pytest.mark.parametrize(
    ("place", "name", "words"),
    [
        ("stream", "message", 'There is no stream "message" that you may read. Near: messages.'),
        ("stream", "zzz", 'There is no stream "zzz" that you may read. Streams: messages.'),
        ("connection", "home", f"No connection that you may read has this id. By that name: {HOME}."),
        ("connector", "mial", 'There is no connector "mial" that you may read. Near: mail.'),
        ("sort", "subject", 'messages is not ordered by "subject".'),
    ],
)
def test_streams_connections_and_orders_are_named_as_well(place: str, name: str, words: str):
    assert refusal(queries(name)[place], catalog())[1] == words


def test_connections_are_found_by_what_the_owner_calls_them():
    whole = client(grant(StreamGrant("messages", (WORK, HOME), SEEN)))
    for name, ids in (("home", f"{HOME}, {WORK}"), ("cin_work", f"{WORK}, {HOME}"), ("?", f"{WORK}, {HOME}")):
        query = ListQuery("messages", connection_id=ConnectionId(name + " "))
        with pytest.raises(ConnectionNotFound) as raised:
            decide(allow(whole, catalog(), Rules()), query, seals())
        assert raised.value.message.endswith(f"Connections: {ids}.")


def test_the_connection_of_a_name_is_offered_alone_and_the_nearest_comes_first():
    whole, known = client(grant(StreamGrant("messages", (WORK, HOME), SEEN))), catalog()
    named = {
        WORK: replace(known.connections[WORK], display_name="Work mail"),
        HOME: replace(known.connections[HOME], display_name="Home mail"),
    }
    allowance = allow(whole, SourceCatalog(known.declarations, {**known.connections, **named}), Rules())
    for name, words in (
        ("home MAIL", f"By that name: {HOME}."),
        ("work mail", f"By that name: {WORK}."),
        ("hom mail", f"Connections: {HOME}, {WORK}."),
        ("wrk mail", f"Connections: {WORK}, {HOME}."),
    ):
        with pytest.raises(ConnectionNotFound) as raised:
            decide(allowance, ListQuery("messages", connection_id=ConnectionId(name)), seals())
        assert raised.value.message == f"No connection that you may read has this id. {words}"
