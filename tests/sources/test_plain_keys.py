"""Keys that every id can carry: in new connections, whatever the files hold, and never in older ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from headgate.model.ids import ConnectionId, RecordId, RecordRef, StreamName, format_result_id, is_unicode
from headgate.model.plan import PagePlan, Reach
from headgate.sources.calendar.source import CALENDAR
from headgate.sources.contacts import CONTACTS
from headgate.sources.documents.source import DOCUMENTS
from headgate.sources.formats.values import original_id, path_key, plain_id
from headgate.sources.importing import Importer, ImportReport, job_of
from headgate.sources.mail.source import MAIL
from headgate.sources.notes import NOTES
from headgate.sources.protocol import Source
from headgate.sources.registry import BUILT_IN, CHAT, CONVERSATIONS
from headgate.sources.tables.source import TABLES
from tests.on_socket import headgate
from tests.sources.reading import only, tree_from
from tests.store.engines import NOW, Driven

EVENT = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:a/b ~~2F c\r\nSUMMARY:x\r\nDTSTART:20260302T090000Z\r\n{}END:VEVENT\r\nEND:VCALENDAR\r\n"
CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:urn:x/y\\\\..z\r\nFN:Ann\r\nEND:VCARD\r\n"
SLACK = {
    "channels.json": b'[{"id": "C/1", "name": "hall"}]',
    "users.json": b'[{"id": "U/1", "name": "ann"}]',
    "hall/2026-03-02.json": b'[{"type": "message", "user": "U/1", "text": "x", "ts": "1700000170.000000"}]',
}
CHATGPT = {
    "conversations.json": json.dumps(
        [
            {
                "id": "c/1",
                "title": "t",
                "create_time": 1.7e9,
                "current_node": "n/1",
                "mapping": {
                    "n/1": {
                        "id": "n/1",
                        "message": {
                            "id": "n/1",
                            "author": {"role": "user"},
                            "create_time": 1.7e9,
                            "content": {"content_type": "text", "parts": ["hello"]},
                        },
                        "children": [],
                    }
                },
            }
        ]
    ).encode()
}
#: Files whose ids, in the first form, cannot be part of the id of a result.
FILES: dict[str, tuple[Source, dict[str, bytes]]] = {
    "notes": (
        NOTES,
        {"House/Insurance: what to ask.md": b"Storm?", "boat.md": b"Oars", "House/boat.md": b"x"},
    ),
    "documents": (DOCUMENTS, {"Papers/The lease.pdf": b"%PDF-1.4 broken"}),
    "calendar": (CALENDAR, {"c.ics": EVENT.format("RRULE:FREQ=WEEKLY;COUNT=3\r\n").encode()}),
    "contacts": (CONTACTS, {"c.vcf": CARD.encode()}),
    "slack": (CHAT, SLACK),
    "chatgpt": (CONVERSATIONS, CHATGPT),
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Driven]:
    store = Driven("sqlite", tmp_path / "home")
    yield store
    store.close()


def run(store: Driven, name: str, form: int | None = None) -> ImportReport:
    source, files = FILES[name]
    found = only(source, files)
    job = job_of(source, found if form is None else replace(found, form=form))
    return store.run(Importer(store.bare, clock=lambda: NOW).run(job))


def ids_of(store: Driven, report: ImportReport) -> dict[str, list[str]]:
    declared = store.declarations()[report.connector_key]
    return {
        name: [
            record.id
            for record in store.page(
                PagePlan(Reach(name, (report.connection_id,), tuple(stream.fields)), 100)
            ).records
        ]
        for name, stream in declared.streams.items()
    }


def carried(key: str) -> bool:
    return format_result_id(RecordRef(ConnectionId("c"), StreamName("s"), RecordId(key))) is not None


@pytest.mark.parametrize("name", FILES)
def test_a_new_connection_has_keys_that_every_id_can_carry(store: Driven, name: str):
    ids = ids_of(store, run(store, name))
    assert [key for keys in ids.values() for key in keys]
    assert [key for keys in ids.values() for key in keys if not carried(key)] == []
    again = run(store, name)
    assert sum(count.added for count in again.streams.values()) == 0
    assert ids_of(store, again) == ids


@pytest.mark.parametrize("name", FILES)
def test_importing_again_into_a_connection_of_an_older_form_adds_nothing(store: Driven, name: str):
    first = run(store, name, form=1)
    ids = ids_of(store, first)
    assert [key for keys in ids.values() for key in keys if not carried(key)]
    # As a version left it that knew of no forms.
    store.put_state(first.connection_id, b'{"import": {"resume": {}}}')
    again = run(store, name)
    assert again.connection_id == first.connection_id
    assert sum(count.added for count in again.streams.values()) == 0
    assert ids_of(store, again) == ids


def test_notes_are_named_by_the_words_of_their_files(store: Driven):
    ids = ids_of(store, run(store, "notes"))["notes"]
    assert "boat" in ids
    assert sorted(re.sub(r"-0[a-z2-7]{11}$", "-*", key) for key in ids) == [
        "boat", "boat-*", "insurance-what-to-ask-*",
    ]  # fmt: skip


def test_what_was_escaped_leaves_as_it_came(tmp_path: Path):
    for name, content in (("c.ics", EVENT.format("")), ("c.vcf", CARD)):
        (tmp_path / name).write_text(content, newline="")
        run_command = partial(headgate, tmp_path, "--home", "home")
        assert run_command("import", "--yes", "--connection", name, name).code == 0
        assert run_command("export", name, f"out-{name}", "--format", name[2:]).code == 0
        (written,) = [path for path in (tmp_path / f"out-{name}").iterdir() if path.suffix == f".{name[2:]}"]
        uid = re.search(r"^UID:.*$", content, re.MULTILINE)
        assert uid is not None
        assert uid[0].strip() in written.read_text()


def test_every_built_in_source_has_plain_keys_or_none_of_its_own():
    # Rows of tables are named by their own values; of history and of Git by digests.
    assert {source.name for source in BUILT_IN if not source.plain_form} == {"git", "history", "tables"}


@given(st.text(min_size=1).filter(is_unicode))
def test_an_escaped_id_is_carried_and_can_be_undone(text: str):
    key = plain_id(text)
    assert carried(key)
    assert plain_id(key) == key or "~~" in key
    if "~~" in key and len(key) <= 400:
        assert original_id(key) == text


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_what_begins_alike_is_escaped_alike(series: str, rest: str):
    assert plain_id(f"{series}_{rest}").startswith(plain_id(f"{series}_")[:-1])


@given(st.lists(st.text("aA-/ .é", min_size=1, max_size=12), unique=True, max_size=30))
def test_files_that_differ_have_different_keys(paths: list[str]):
    keys = {path_key(path, ".md") for path in paths}
    assert len(keys) == len(paths)
    assert all(carried(key) and len(key) <= 60 for key in keys)


def test_a_file_cannot_be_named_like_the_key_of_another():
    key = path_key("House/boat.md", ".md")
    assert path_key(f"{key}.md", ".md") != key


#: Files, and how their connections were called in earlier versions.
RENAMED: dict[str, tuple[Source, dict[str, bytes], str, str, str]] = {
    "notes": (NOTES, {"a.md": b"x"}, "notes", "Notes", "Notes notes"),
    "documents": (
        DOCUMENTS,
        {"a.pdf": b"%PDF-1.4 broken"},
        "Papers",
        "Documents: Papers",
        "Documents Papers",
    ),
    "slack": (CHAT, SLACK, "slack", "Slack", "Slack: slack"),
    "mail": (
        MAIL,
        {
            f"{to}.eml": f"Delivered-To: {to}@x.example\nSubject: {to}\n\nHi".encode()
            for to in ("a", "b", "c")
        },
        "letters",
        "Mail from letters",
        "Mail of a@x.example",
    ),
    "tables": (
        TABLES,
        {f"Habits {'0f' * 16}.csv": b"name,day\nrun,2026-03-01\n"},
        f"Habits {'0f' * 16}",
        "Habits",
        f"Habits {'0f' * 16}",
    ),
}


@pytest.mark.parametrize("name", RENAMED)
def test_a_connection_that_was_named_by_an_earlier_version_is_used_again(store: Driven, name: str):
    source, files, label, title, older = RENAMED[name]
    (found,) = source.detect(tree_from(files, label))
    assert found.title == title
    importer = Importer(store.bare, clock=lambda: NOW)
    first = store.run(importer.run(job_of(source, found, name=older)))
    again = store.run(importer.run(job_of(source, found)))
    assert (again.connection_id, again.accepted > 0) == (first.connection_id, True)
    assert all(count.added == 0 for count in again.streams.values())
    named = store.run(importer.run(job_of(source, found, name="Mine")))
    assert named.connection_id != first.connection_id


def test_a_table_of_notion_is_read_into_the_connection_that_an_earlier_version_made(store: Driven):
    source, files, label, _, _ = RENAMED["tables"]
    (found,) = source.detect(tree_from(files, label))
    (stream,) = source.declare(source.prepared(found))["streams"]
    assert stream["name"] == "habits"
    job = job_of(source, found)
    older = replace(source.prepared(found), form=1)
    document = source.declare(replace(older, variant=older.older_variant))
    assert [stream["name"] for stream in document["streams"]] == [f"habits_{'0f' * 16}"]
    assert str(job.older_key).startswith(f"tables-habits-{'0f' * 16}-")
