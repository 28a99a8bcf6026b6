"""What a read shows, grouped for the log."""

from __future__ import annotations

from headgate.audit.journal import Disclosed, disclosed
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.record import Record, Tombstone

HOME, MAIL = ConnectionId("cin_home"), StreamName("messages")
FIELDS = (FieldName("id"), FieldName("subject"))


def record(key: str, connection: ConnectionId = HOME) -> Record:
    return Record(connection, MAIL, RecordId(key), b"{}", 1)


def tombstone(key: str) -> Tombstone:
    return Tombstone(HOME, MAIL, RecordId(key), 1, 1)


def test_records_are_grouped_by_connection_and_stream():
    work = ConnectionId("cin_work")
    found = disclosed([record("a"), record("b", work), record("c")], FIELDS)
    assert found == (Disclosed(HOME, MAIL, FIELDS, ("a", "c")), Disclosed(work, MAIL, FIELDS, ("b",)))


def test_of_a_deleted_record_no_field_is_shown():
    found = disclosed([record("a"), tombstone("b")], FIELDS)
    assert found == (Disclosed(HOME, MAIL, FIELDS, ("a",)), Disclosed(HOME, MAIL, (), ("b",)))
    assert disclosed([tombstone("b")], FIELDS) == (Disclosed(HOME, MAIL, (), ("b",)),)
