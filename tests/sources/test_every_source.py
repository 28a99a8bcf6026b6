"""What holds for every built-in source: a golden test, hostile variants, twice is once, and a kill in the middle.

A source that is added to the registry and not here fails the first test.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from headgate.errors import InvalidRequest
from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.plan import PagePlan, Reach
from headgate.schema.declare import read_declaration
from headgate.sources import (
    declaring,
    file_source,
    git as git_source,
    importing,
    parts as parts_module,
    registry,
)
from headgate.sources.importing import Importer, ImportJob, job_of
from headgate.sources.inputs.disk import tree_of
from headgate.sources.parsers import FileChoice, FileParser
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item, Mark, Reject, Row
from headgate.wiring import live_sources
from tests.sources import (
    test_calendar as calendars,
    test_chat_meta as meta,
    test_chat_whatsapp as whatsapp,
    test_contacts as contacts,
    test_conversations as conversations,
)
from tests.sources.documents.made import RTF, docx, epub, pdf
from tests.sources.git.repositories import canal
from tests.sources.history import exports
from tests.sources.mail.mails import ANSWER, LETTER, mbox
from tests.sources.mail.outlook_files import MSG
from tests.sources.money.test_money import CAMT, GERMAN, SGML
from tests.sources.money.test_qif_mt940 import MT940, QIF
from tests.sources.notes import test_note_exports as exported_notes
from tests.sources.notes.test_notes import MARKDOWN
from tests.sources.reading import check_rows, tree_from
from tests.sources.workbooks import STATEMENT_XLS, ods, ods_row
from tests.store.engines import NOW, Driven

TABLE = "id,name,joined,points\n" + "".join(f"{n},Name {n},2026-03-{n:02d},{n * 3}\n" for n in range(1, 29))
#: Files of each source; those of git are made by git.
FILES: Mapping[str, Mapping[str, bytes | str]] = {
    "calendar": {"calendar.ics": calendars.WHOLE},
    "chat": {"WhatsApp Chat with Garden.txt": whatsapp.ANDROID, **meta.FILES},
    "contacts": {"contacts.vcf": contacts.BOOK},
    "conversations": conversations.FILES,
    "git": {},
    "history": exports.FILES,
    "mail": {"Inbox.mbox": mbox(LETTER, ANSWER), "letter.msg": MSG},
    "documents": {
        "gate.pdf": pdf(b"The lock is closed."),
        "report.docx": docx(),
        "canal.epub": epub(),
        "weir.rtf": RTF,
    },
    "money": {
        "a.ofx": SGML,
        "b.xml": CAMT,
        "c.csv": GERMAN,
        "d.qif": QIF,
        "e.sta": MT940,
        "f.xls": STATEMENT_XLS,
        "g.xml": CAMT.replace(b"Stmt>", b"Rpt>"),
    },
    "notes": {"bridge.md": MARKDOWN, "gate.txt": "Closed.", "a/lock.md": "# Lock", "b.html": "<p>Hi</p>"}
    | exported_notes.FILES,
    "tables": {
        "people.csv": TABLE,
        "planks.ods": ods(ods_row("id", "length") + "".join(ods_row(n, n * 2.5) for n in range(1, 9))),
        "nested.json": '{"version": 1, "planks": [{"id": 1, "name": "oak"}, {"id": 2, "name": "elm"}], "nails": [{"id": 1, "n": 3}]}',
    },
}
#: The tests that compare what is read with values written by hand or by another program.
GOLDEN = {
    "calendar": "tests.sources.test_calendar",
    "chat": "tests.sources.test_chat_whatsapp",
    "contacts": "tests.sources.test_contacts",
    "conversations": "tests.sources.test_conversations",
    "git": "tests.sources.git.test_git",
    "history": "tests.sources.history.test_history",
    "mail": "tests.sources.mail.test_messages",
    "documents": "tests.sources.documents.test_documents",
    "money": "tests.sources.money.test_money",
    "notes": "tests.sources.notes.test_notes",
    "tables": "tests.sources.tables.test_tables",
}
#: Live sources have all four in one module each, against a real server.
LIVE = {
    "imap": "tests.sources.mail.test_imap",
    "mcp": "tests.sources.remote.test_remote",
    "calendar": "tests.sources.calendar.test_calendar_account",
    "contacts": "tests.sources.test_contacts_account",
}


def test_every_source_is_in_the_tables_of_this_file(tmp_path):
    built_in = {source.name for source in registry.BUILT_IN}
    assert FILES.keys() == built_in
    assert GOLDEN.keys() == built_in
    assert LIVE.keys() == live_sources(tmp_path, {}).keys()
    for module in {*GOLDEN.values(), *LIVE.values()}:
        assert any(name.startswith("test_") for name in vars(importlib.import_module(module)))


@pytest.mark.parametrize(
    "source",
    [source for source in registry.BUILT_IN if getattr(source, "streams", ())],
    ids=lambda source: source.name,
)
def test_who_wrote_most_can_be_asked_of_every_stream_that_names_its_writers(source: Any):
    declared = read_declaration(declaring.declaration(source.name, source.title, source.streams))
    groups = {spec.name: spec.groups for spec in source.streams}
    for stream in declared.streams.values():
        people = [name for name in stream.line.who if stream.fields[name].kind is FieldKind.TEXT]
        if stream.line.time is not None:
            assert set(people) <= set(groups[stream.name]), stream.name


def as_bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def written(directory: Path, name: str) -> Path:
    """Write the files of a source to a directory."""
    if name == "git":
        return canal(directory)
    place = directory / "export"
    for path, content in FILES[name].items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(as_bytes(content))
    return place


def jobs_of(name: str, place: Path) -> list[ImportJob]:
    source = registry.sources()[name]
    return [job_of(source, found) for found in source.detect(tree_of(place))]


def stored(store: Driven) -> dict[tuple[str, str, str], Any]:
    """Everything that a store holds: by connection, stream and id."""
    found: dict[tuple[str, str, str], Any] = {}
    declared = store.run(store.bare.declarations())
    for connection in store.connections():
        for stream, about in declared[connection.connector_key].streams.items():
            fields = tuple(FieldName(name) for name in about.fields)
            page = store.page(PagePlan(Reach(stream, (connection.id,), fields), limit=1000))
            for record in page.records:
                key = (connection.display_name, str(stream), str(record.id))
                found[key] = msgspec.json.decode(record.body)
    return found


def run_all(store: Driven, jobs: list[ImportJob]) -> list[importing.ImportReport]:
    return [store.run(Importer(store.bare, clock=lambda: NOW).run(job)) for job in jobs]


@pytest.fixture
def store(tmp_path):
    driven = Driven("sqlite", made(tmp_path / "store"))
    yield driven
    driven.close()


@pytest.mark.parametrize("name", FILES)
def test_importing_twice_is_importing_once(store, tmp_path, name):
    place = written(tmp_path, name)
    first = run_all(store, jobs_of(name, place))
    once = stored(store)
    assert once
    assert sum(report.accepted for report in first) >= len(once)
    again = [count for report in run_all(store, jobs_of(name, place)) for count in report.streams.values()]
    assert [count for count in again if count.added] == []
    # Several rows may be of one record: it is the records that are counted.
    assert sum(count.known for count in again) == len(once)
    assert stored(store) == once


def test_every_find_of_an_export_declares_a_source_that_no_other_connector_has(tmp_path):
    """A grant names a source: two connectors with one source could not both be granted."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").write_text("id,name\n1,x\n")
    (tmp_path / "tables" / "b.csv").write_text("id,day\n1,2026-03-01\n")
    jobs = [*jobs_of("tables", tmp_path / "tables"), *jobs_of("history", written(tmp_path, "history"))]
    keys = {job.document["source"]["id"]: job.connector_key for job in jobs}
    assert len(keys) == len(jobs) == 2 + 7


class Killed(Exception):
    pass


def killed_after(job: ImportJob, count: int) -> ImportJob:
    """Read with a job until so many items came, rows and marks, and end there."""

    def read(resume: Mapping[str, Any], form: int) -> Iterator[Item]:
        for number, item in enumerate(job.read(resume, form), 1):
            yield item
            if number == count:
                raise Killed

    return replace(job, read=read)


@pytest.mark.parametrize("name", FILES)
def test_an_import_that_is_killed_and_run_again_stores_everything_once(tmp_path, name, monkeypatch):
    monkeypatch.setattr(parts_module, "PART_LINES", 1)
    monkeypatch.setattr(file_source, "_STEP", 1)
    monkeypatch.setattr(git_source, "_STEP", 1)
    place = written(tmp_path, name)
    whole, cut = (Driven("sqlite", made(tmp_path / one)) for one in ("whole", "cut"))
    try:
        run_all(whole, jobs_of(name, place))
        for job in jobs_of(name, place):
            for count in (2, 1):
                with pytest.raises(Killed):
                    run_all(cut, [killed_after(job, count)])
            run_all(cut, [job])
        assert stored(cut) == stored(whole)
    finally:
        whole.close()
        cut.close()


def made(directory: Path) -> Path:
    directory.mkdir(mode=0o700)
    return directory


@st.composite
def broken(draw, content: bytes) -> bytes:
    """Cut, overwrite, repeat or recode a file."""
    at = draw(st.integers(0, len(content)))
    end = draw(st.integers(at, min(len(content), at + 300)))
    noise = draw(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from([b"\0" * 8, b"\xff\xfe", b"9" * 500, b"a" * 20_000, b"[" * 300, b"<a>" * 300]),
        )
    )
    variants = [content[:at], content[:at] + noise + content[end:], content[:end] + content[at:end] * 40]
    recoded = content.decode("utf-8", "replace").encode("utf-16")
    return draw(st.sampled_from([*variants, recoded]))


HOSTILE = sorted((name, path) for name, files in FILES.items() for path in files)
#: What is read by a library that takes as much memory as a damaged file says; only the limits of the process end it.
LIMITED = [(name, path) for name, path in HOSTILE if path.endswith((".xls", ".ods"))]


@pytest.mark.parametrize(("name", "path"), LIMITED)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_hostile_workbook_ends_at_most_the_process_that_reads_it(tmp_path_factory, name, path, data):
    place = tmp_path_factory.mktemp("hostile") / path
    place.write_bytes(data.draw(broken(as_bytes(FILES[name][path]))))
    with FileParser(FileChoice(paths=[place], given_at=NOW)) as parser, suppress(InvalidRequest):
        for planned in parser.plan().imports:
            assert {type(part) for part in planned.job.read({}, planned.job.form)} <= {ImportPart}


@pytest.mark.parametrize(("name", "path"), [one for one in HOSTILE if one not in LIMITED])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_hostile_variants_give_rows_and_rejects_and_never_an_exception(name, path, data):
    items_with(name, path, data.draw(broken(as_bytes(FILES[name][path]))))


def items_with(name: str, path: str, content: bytes) -> list[Any]:
    """Read the files of a source, one of them with other content, as an import does."""
    source = registry.sources()[name]
    files = {one: as_bytes(its) for one, its in FILES[name].items()} | {path: content}
    items: list[Any] = []
    for found in source.detect(tree_from(files)):
        with suppress(InvalidRequest):
            items += _items_of(source, found)
    return items


def _items_of(source: Any, found: Any) -> list[Any]:
    prepared = source.prepared(found)
    items = list(source.read(prepared, {}))
    assert {type(item) for item in items} <= {Row, Reject, Mark, Covered}
    check_rows(
        source.declare(prepared), [item for item in items if isinstance(item, Row) and is_storable(item)]
    )
    return items


@pytest.mark.parametrize(("name", "path"), [one for one in HOSTILE if one not in LIMITED])
def test_a_file_with_megabytes_in_one_field_gives_rows_that_can_be_stored_or_rejects(name, path):
    content = as_bytes(FILES[name][path])
    # In the middle of the longest word, so that most formats have it in a value.
    at = max(re.finditer(rb"[A-Za-z]+", content), key=lambda word: len(word[0])).start() + 1
    items_with(name, path, content[:at] + b"a" * 3_000_000 + content[at:])


DOCUMENT_TYPES = {
    "from a file": b'<!DOCTYPE x [<!ENTITY leak SYSTEM "file:///etc/passwd">]>',
    "from a server": b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY leak SYSTEM "http://127.0.0.1:9/">]>',
    "of itself": b"<!DOCTYPE x [<!ENTITY a 'leaked'>"
    + b"".join(
        b"<!ENTITY a%d '%s'>" % (n, b"&a%s;" % (b"%d" % (n - 1) if n else b"") * 10) for n in range(12)
    )
    + b"<!ENTITY leak '&a1;'>]>",
}
MARKED = [(name, path) for name, path in HOSTILE if as_bytes(FILES[name][path]).lstrip().startswith(b"<")]


@pytest.mark.parametrize(("name", "path"), MARKED)
@pytest.mark.parametrize("document_type", DOCUMENT_TYPES.values(), ids=DOCUMENT_TYPES.keys())
def test_entities_of_a_file_are_not_followed(name, path, document_type):
    content = re.sub(rb"<!DOCTYPE[^>]*>", b"", as_bytes(FILES[name][path]))
    declaration = re.match(rb"\s*(?:<\?[^>]*\?>\s*)*", content)
    at = declaration.end() if declaration else 0
    # Behind every text in words.
    filled = re.sub(rb">([^<>\d]*[a-z][^<>\d]*)<", rb">\1&leak;<", content[at:])
    items = items_with(name, path, content[:at] + document_type + filled)
    shown = msgspec.json.encode([item.data for item in items if isinstance(item, Row)], enc_hook=str)
    assert b"root:" not in shown
    assert b"leakedleaked" not in shown


def is_storable(row: Row) -> bool:
    """Leave out rows with text that the importer repairs before it stores them."""
    line = msgspec.json.encode({"data": row.data}, enc_hook=str) if is_text(row.data) else b"\\u0000"
    return b"\\u0000" not in line


def is_text(data: Mapping[str, Any]) -> bool:
    try:
        msgspec.json.encode(data)
    except UnicodeEncodeError:
        return False
    return True
