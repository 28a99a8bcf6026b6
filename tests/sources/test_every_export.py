"""Whatever a source stores leaves in every format that fits it, and other programs read the same values."""

from __future__ import annotations

import json
import mailbox
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from email.header import decode_header, make_header
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import icalendar
import msgspec
import pandas as pd
import pytest
import vobject

from headgate.model.ids import FieldName
from headgate.model.plan import PagePlan, Reach
from headgate.model.record import Connection
from headgate.sources.demo import filling
from headgate.sources.demo.filling import invented
from headgate.sources.exporting import ExportFormat, export_connection
from tests.sources.test_every_source import FILES, jobs_of, made, run_all, written
from tests.store.engines import NOW, Driven

_TABLES = (ExportFormat.JSONL, ExportFormat.CSV, ExportFormat.SQLITE)
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module", params=[*FILES, "demo"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    """A store with what the files of one source bring, or with a part of the demonstration."""
    place = tmp_path_factory.mktemp(request.param)
    driven = Driven("sqlite", made(place / "store"))
    if request.param == "demo":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(filling, "invented", lambda: islice(invented(), None, None, 15))
            driven.run(filling.fill(driven.bare))
    else:
        run_all(driven, jobs_of(request.param, written(place, request.param)))
    yield driven
    driven.close()


def streams_of(store: Driven, connection: Connection) -> dict[str, Rows]:
    declared = store.run(store.bare.declarations())[connection.connector_key].streams
    streams: dict[str, Rows] = {}
    for name, stream in declared.items():
        fields = tuple(map(FieldName, stream.fields))
        page = store.page(PagePlan(Reach(name, (connection.id,), fields), limit=10_000))
        streams[name] = [msgspec.json.decode(record.body) for record in page.records]
    return streams


def exported(store: Driven, connection: Connection, place: Path, how: ExportFormat) -> Path:
    store.run(export_connection(store.bare, connection, place, how, now=NOW))
    return place


def by_id(rows: Rows) -> dict[str, dict[str, Any]]:
    """Return the values that rows have, what is nested as JSON."""
    return {
        str(row["id"]): {
            name: json.loads(value)
            if isinstance(value, str) and value[:1] in "[{" and value[-1:] in "]}"
            else value
            for name, value in row.items()
            if value is not None
        }
        for row in rows
    }


def read_json(place: Path, stream: str) -> Rows:
    return [json.loads(line) for line in (place / f"{stream}.jsonl").read_text(encoding="utf-8").splitlines()]


def read_pandas(place: Path, stream: str) -> Rows:
    table = pd.read_csv(place / f"{stream}.csv", dtype=str, keep_default_na=False)
    return [
        {name: value.removeprefix("'") for name, value in row.items() if value != ""}
        for row in table.to_dict("records")
    ]


def read_sqlite(place: Path, stream: str) -> Rows:
    with closing(sqlite3.connect(place / "records.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(f'SELECT * FROM "{stream}"')]


def as_text(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Write values as a table of texts does; an empty text is no value there."""
    return {
        key: {
            name: value.removeprefix("'") if isinstance(value, str) else str(value)
            for name, value in row.items()
            if value != ""
        }
        for key, row in rows.items()
    }


def test_tables_hold_the_values_of_the_records(store: Driven, tmp_path: Path):
    for number, connection in enumerate(store.connections()):
        places = {how: exported(store, connection, tmp_path / f"{number}.{how}", how) for how in _TABLES}
        for stream, rows in streams_of(store, connection).items():
            records = by_id(rows)
            assert by_id(read_json(places[ExportFormat.JSONL], stream)) == records
            assert by_id(read_pandas(places[ExportFormat.CSV], stream)).keys() == records.keys()
            table = as_text(by_id(read_pandas(places[ExportFormat.CSV], stream)))
            assert table == as_text(records)
            booleans = {True: 1, False: 0}
            flat = {
                key: {
                    name: booleans[value] if isinstance(value, bool) else value for name, value in row.items()
                }
                for key, row in records.items()
            }
            assert by_id(read_sqlite(places[ExportFormat.SQLITE], stream)) == flat


def test_mail_calendars_and_contacts_are_read_by_other_programs(store: Driven, tmp_path: Path):
    for number, connection in enumerate(store.connections()):
        streams = streams_of(store, connection)
        place = tmp_path / str(number)
        if connection.connector_key == "mail":
            exported(store, connection, place, ExportFormat.MBOX)
            letters = [subject for path in place.rglob("*.mbox") for subject in subjects_in(path)]
            subjects = sorted(" ".join((row.get("subject") or "").split()) for row in streams["messages"])
            assert sorted(letters) == subjects
        elif connection.connector_key == "calendar":
            exported(store, connection, place, ExportFormat.ICS)
            calendars = [icalendar.Calendar.from_ical(path.read_bytes()) for path in place.glob("*.ics")]
            titles = {str(event.get("SUMMARY", "")) for calendar in calendars for event in calendar.events}
            assert titles == {row.get("title") or "" for row in streams["events"]}
            assert not [tzid for calendar in calendars for tzid in calendar.get_missing_tzids()]
            assert list(place.iterdir()) == list(place.glob("*.ics"))
        elif connection.connector_key == "contacts":
            exported(store, connection, place, ExportFormat.VCF)
            text = "".join(path.read_text(encoding="utf-8") for path in place.glob("*.vcf"))
            cards = list(vobject.readComponents(text))
            assert sorted(card.fn.value for card in cards) == sorted(
                row["name"] for row in streams["contacts"]
            )


def subjects_in(path: Path) -> list[str]:
    with closing(mailbox.mbox(path, create=False)) as box:
        return [header(letter["Subject"]) for letter in box]


def header(text: Any) -> str:
    return " ".join(str(make_header(decode_header(str(text or "")))).split())


_MAIL = "subject from_address to cc bcc sent_at body quoted is_read is_flagged has_attachments in_reply_to"
_EVENT = """title starts_at ends_at all_day time_zone location description organizer attendees status is_busy
visibility categories url"""
_PERSON = """name given_name family_name kind emails phones labelled_phones accounts organisation job birthday
anniversary related phonetic_name addresses websites groups notes updated_at"""
#: How records leave for programs of their kind, and the fields that come back as they were.
NATIVE = {
    "mail": (ExportFormat.MBOX, "messages", _MAIL.split()),
    "calendar": (ExportFormat.ICS, "events", _EVENT.split()),
    "contacts": (ExportFormat.VCF, "contacts", _PERSON.split()),
}


def test_what_leaves_for_another_program_comes_back_with_equal_values(store: Driven, tmp_path: Path):
    for number, connection in enumerate(store.connections()):
        if connection.connector_key not in NATIVE:
            continue
        how, stream, fields = NATIVE[connection.connector_key]
        place = exported(store, connection, tmp_path / str(number), how)
        again = Driven("sqlite", made(tmp_path / f"{number}.store"))
        run_all(again, jobs_of(connection.connector_key, place))
        came = [
            row
            for other in again.connections()
            for row in read_json(
                exported(again, other, tmp_path / f"{number}.{other.id}", ExportFormat.JSONL), stream
            )
        ]
        left = read_json(exported(store, connection, tmp_path / f"{number}.left", ExportFormat.JSONL), stream)
        assert sorted(map(partial(values_of, fields), came)) == sorted(map(partial(values_of, fields), left))
        if stream == "messages":
            folders = {row["folder"] for row in left} - {None}
            assert folders <= {row["folder"] for row in came} <= folders | {"mail"}
        again.close()


def values_of(fields: list[str], row: dict[str, Any]) -> str:
    return json.dumps([row.get(name) or None for name in fields], sort_keys=True)
