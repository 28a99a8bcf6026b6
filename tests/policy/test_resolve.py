"""Requests are made concrete once, against what is there, and nothing in them can widen later."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.auth.grants import Choice, selections
from headgate.errors import AmbiguousConnection, InvalidAuthorizationDetails
from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName, RecordId, SourceId, StreamName
from headgate.policy.allowance import SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.policy.resolve import SelectionRequest, StreamRequest, resolve
from headgate.schema.declare import read_declaration
from tests.policy.worlds import HOME, MAIL, SHOP, WORK, catalog, client, grant
from tests.schema.declarations import declaration

SOURCE = catalog().declarations[MAIL].source_id


def asked(*streams: StreamRequest, preset: str | None = None) -> SelectionRequest:
    return SelectionRequest(SOURCE, streams, preset)


def test_a_view_becomes_its_fields_with_the_key_and_what_is_required():
    terms = resolve(asked(StreamRequest("messages", (HOME,), view="subjects")), catalog())
    (stream,) = terms.streams
    assert stream.fields == ("id", "subject", "sent_at")
    assert stream.connection_ids == (HOME,)


def test_fields_come_in_the_declared_order_with_the_key_and_what_is_required():
    terms = resolve(
        asked(StreamRequest("messages", (WORK,), fields=(FieldName("size"), FieldName("body")))), catalog()
    )
    assert set(terms.streams[0].fields) == {"id", "sent_at", "size", "body"}


def test_a_star_becomes_every_stream_by_name_and_with_times_only_those_that_have_them():
    everything = resolve(asked(StreamRequest("*", (HOME,))), catalog())
    assert [stream.name for stream in everything.streams] == ["messages", "attachments"]
    timed = resolve(asked(StreamRequest("*", (HOME,), since=5)), catalog())
    assert [(stream.name, stream.time) for stream in timed.streams] == [
        ("messages", TimeConstraint(FieldName("sent_at"), 5))
    ]


def test_one_connection_is_taken_and_several_are_asked_about():
    shop = catalog().declarations[catalog().connections[SHOP].connector_key].source_id
    terms = resolve(SelectionRequest(shop, (StreamRequest("orders"),)), catalog())
    assert terms.streams[0].connection_ids == (SHOP,)
    with pytest.raises(AmbiguousConnection) as refused:
        resolve(asked(StreamRequest("messages")), catalog())
    assert [one["connection_id"] for one in refused.value.data["available_connections"]] == [HOME, WORK]


@pytest.mark.parametrize(
    "request_made",
    [
        asked(),
        asked(StreamRequest("messages", (HOME,)), preset="light"),
        asked(preset="heavy"),
        asked(StreamRequest("nothing", (HOME,))),
        asked(StreamRequest("*", (HOME,)), StreamRequest("messages", (HOME,))),
        asked(StreamRequest("messages", (HOME,)), StreamRequest("messages", (WORK,))),
        asked(StreamRequest("messages", (SHOP,))),
        asked(StreamRequest("messages", (HOME,), fields=(FieldName("nope"),))),
        asked(StreamRequest("messages", (HOME,), fields=(FieldName("id"),), view="subjects")),
        asked(StreamRequest("messages", (HOME,), view="nope")),
        asked(StreamRequest("messages", (HOME,), since=9, until=9)),
        asked(StreamRequest("attachments", (HOME,), since=9)),
        asked(StreamRequest("attachments", (HOME,), fields=(FieldName("id"),))),
        asked(StreamRequest("attachments", (HOME,), resources=frozenset({RecordId("a")}))),
        SelectionRequest(SourceId("https://nobody.example"), (StreamRequest("messages"),)),
    ],
)
def test_a_request_for_what_is_not_there_or_contradicts_itself_is_refused(request_made: SelectionRequest):
    with pytest.raises(InvalidAuthorizationDetails):
        resolve(request_made, catalog())


def test_an_owners_choice_of_nothing_in_particular_is_everything_one_request_for_each_source():
    made = selections(Choice(), catalog())
    assert [(one.source_id, one.streams[0].name, one.streams[0].connection_ids) for one in made] == [
        (SOURCE, "*", (HOME, WORK)),
        ("https://registry.example/connectors/shop", "*", (SHOP,)),
    ]


def test_an_owners_choice_of_a_stream_touches_only_sources_that_have_it():
    (only,) = selections(Choice(streams=(StreamName("orders"),)), catalog())
    assert only.streams[0].connection_ids == (SHOP,)
    with pytest.raises(InvalidAuthorizationDetails, match="no stream 'nothing'"):
        selections(Choice(streams=(StreamName("nothing"),)), catalog())
    with pytest.raises(InvalidAuthorizationDetails, match="no connection"):
        selections(Choice(connection_ids=(StreamName("cin_none"),)), catalog())


@pytest.mark.hostile("T20")
def test_fields_and_streams_that_come_later_do_not_widen_a_grant():
    terms = resolve(asked(StreamRequest("*", (HOME,))), catalog())
    held = grant(*terms.streams)
    document = declaration()
    document["declaration_version"] = "later"
    document["streams"][0]["schema"]["properties"]["fresh"] = {"type": "string"}
    document["streams"].append(document["streams"][1] | {"name": "fresh"})
    later = SourceCatalog({MAIL: read_declaration(document)}, catalog().connections)
    scopes = allow(client(held), later, Rules()).scopes
    assert {scope.stream for scope in scopes} == {"messages", "attachments"}
    assert all("fresh" not in scope.capability.fields for scope in scopes)


def test_what_is_gone_is_no_longer_reached():
    terms = resolve(asked(StreamRequest("*", (HOME, WORK))), catalog())
    without = {name: one for name, one in catalog().connections.items() if name != HOME}
    scopes = allow(
        client(grant(*terms.streams)), dataclasses.replace(catalog(), connections=without), Rules()
    ).scopes
    assert {one.id for scope in scopes for one in scope.connections} == {WORK}
    nothing = allow(client(grant(*terms.streams)), SourceCatalog({}, {}), Rules())
    assert nothing.scopes == ()
