from __future__ import annotations

import dataclasses

import pytest

from headgate.errors import GrantInvalid, UnsupportedVersion
from headgate.model.grant import Access, AccessMode, Grant, StreamGrant, TimeConstraint, TokenKind
from headgate.model.ids import ClientId, ConnectionId, FieldName, GrantId, SourceId, StreamName, SubjectId

MESSAGES = StreamGrant(StreamName("messages"), (ConnectionId("cin_a"),), (FieldName("id"), FieldName("text")))
GRANT = Grant(
    id=GrantId("grt_1"),
    subject_id=SubjectId("owner"),
    client_id=ClientId("agent"),
    source_id=SourceId("https://registry.example/connectors/slack"),
    source_kind="connector",
    declaration_version="1",
    purpose_code="https://pdpp.dev/purpose/agent_context",
    access_mode=AccessMode.CONTINUOUS,
    streams=(MESSAGES,),
    issued_at=0,
)


def test_a_grant_knows_its_streams_and_no_other():
    assert GRANT.stream(StreamName("messages")) is MESSAGES
    assert GRANT.stream(StreamName("Messages")) is None


def test_a_grant_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        GRANT.expires_at = 1  # type: ignore[misc]  # that is the point


@pytest.mark.parametrize(
    "change",
    [
        {"name": StreamName("*")},
        {"connection_ids": ()},
        {"connection_ids": (ConnectionId("a"), ConnectionId("a"))},
        {"fields": ()},
        {"fields": (FieldName("a"), FieldName("a"))},
    ],
)
def test_a_stream_grant_in_vague_terms_cannot_be_made(change: dict[str, object]):
    with pytest.raises(GrantInvalid):
        dataclasses.replace(MESSAGES, **change)  # type: ignore[arg-type]  # built from the table above


def test_a_grant_names_each_stream_once():
    with pytest.raises(GrantInvalid):
        dataclasses.replace(GRANT, streams=(MESSAGES, MESSAGES))


def test_a_time_constraint_has_a_bound():
    with pytest.raises(GrantInvalid):
        TimeConstraint(FieldName("sent_at"))


def test_a_grant_of_another_version_is_refused():
    with pytest.raises(UnsupportedVersion):
        dataclasses.replace(GRANT, version="0.2.0")


def test_only_an_owner_token_speaks_for_the_owner():
    for kind in TokenKind:
        access = Access(kind, SubjectId("owner"), None, ())
        assert access.is_owner == (kind is TokenKind.OWNER)
