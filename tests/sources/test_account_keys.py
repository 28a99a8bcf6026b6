"""Keys of live accounts: every id can carry those of a new connection, and an older connection keeps its own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headgate.model.ids import RecordRef, StreamName, format_result_id
from headgate.model.plan import PagePlan, Reach
from headgate.sources.accounts import Accounts, account_job, add_account
from headgate.sources.importing import Importer, ImportReport, job_of
from headgate.sources.mail.imap import ImapSource
from headgate.sources.mail.source import MAIL
from headgate.sources.protocol import LiveSource
from headgate.sources.secrets import Secrets
from headgate.wiring import live_sources
from tests.sources.calendar.caldav import (
    PASSWORD as CALENDAR_PASSWORD,
    USER,
    CalDavServer,
    caldav_server,
    ics,
)
from tests.sources.mail.dovecot import PASSWORD, account as imap_account
from tests.sources.mail.mails import LETTER
from tests.sources.reading import only
from tests.store.engines import NOW, Driven

UID = "a/b\\..~~2F c"
THREAD = b"X-GM-THRID: ../x/\xe2\x80\xaey\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Driven]:
    store = Driven("sqlite", tmp_path / "store")
    yield store
    store.close()


@pytest.fixture
def calendars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CalDavServer]:
    monkeypatch.setenv("CALENDAR_PASSWORD", CALENDAR_PASSWORD)
    (tmp_path / "dav").mkdir()
    with caldav_server(tmp_path / "dav") as server:
        server.make_calendar("work")
        server.send("PUT", f"/{USER}/work/odd.ics", ics(UID, RRULE="FREQ=WEEKLY;COUNT=3"))
        server.put("work", "usual")
        yield server


def fetch(store: Driven, source: LiveSource, settings: Mapping[str, str]) -> ImportReport:
    job = account_job(source, settings)
    connection = store.run(add_account(store.bare, job))
    accounts = Accounts(store.bare, {source.name: source}, lambda: NOW, 0)
    return store.run(accounts.fetch(connection))


def keys(store: Driven, stream: str, report: ImportReport) -> list[str]:
    declared = store.declarations()[report.connector_key].streams[StreamName(stream)]
    plan = PagePlan(Reach(StreamName(stream), (report.connection_id,), tuple(declared.fields)), 100)
    return [record.id for record in store.page(plan).records]


def carried(store: Driven, stream: str, report: ImportReport) -> bool:
    refs = [RecordRef(report.connection_id, StreamName(stream), key) for key in keys(store, stream, report)]
    return all(format_result_id(ref) is not None for ref in refs)


def test_a_new_calendar_account_has_keys_that_every_id_carries_and_removes_by_them(
    store: Driven, calendars: CalDavServer, tmp_path: Path
):
    source = live_sources(tmp_path, os.environ)["calendar"]
    settings = {"url": calendars.url, "user": USER, "secret": "env:CALENDAR_PASSWORD"}
    report = fetch(store, source, settings)
    assert report.failure == ""
    assert len(keys(store, "events", report)) == 4
    assert carried(store, "events", report)
    calendars.put("work", "usual", SUMMARY="Moved")
    again = fetch(store, source, settings)
    assert again.streams["events"].added == 0
    calendars.send("DELETE", f"/{USER}/work/odd.ics")
    gone = fetch(store, source, settings)
    assert (gone.streams["events"].removed, keys(store, "events", gone)) == (3, ["usual"])


def test_an_account_of_an_older_version_keeps_its_keys_and_removes_by_them(
    store: Driven, calendars: CalDavServer, tmp_path: Path
):
    source = live_sources(tmp_path, os.environ)["calendar"]
    settings = {"url": calendars.url, "user": USER, "secret": "env:CALENDAR_PASSWORD"}
    job = account_job(source, settings)
    connection = store.run(add_account(store.bare, job))
    # As a version left it that knew of no forms.
    older = {"sync": {"source": "calendar", "settings": settings}}
    store.put_state(connection.id, json.dumps(older).encode())
    report = fetch(store, source, settings)
    assert not carried(store, "events", report)
    calendars.put("work", "usual", SUMMARY="Moved")
    assert fetch(store, source, settings).streams["events"].added == 0
    calendars.send("DELETE", f"/{USER}/work/odd.ics")
    assert fetch(store, source, settings).streams["events"].removed == 3


def test_a_mail_names_its_thread_as_it_likes_and_the_key_of_a_new_account_can_be_carried(
    store: Driven, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    source = ImapSource(secrets=Secrets(os.environ))
    with tempfile.TemporaryDirectory(prefix="imap") as directory:
        Path(directory).chmod(0o755)
        with imap_account(Path(directory)) as server:
            server.deliver("INBOX", THREAD + LETTER)
            report = fetch(store, source, server.settings)
    assert report.failure == ""
    (thread,) = keys(store, "threads", report)
    assert "~~2F" in thread
    assert carried(store, "threads", report)
    (message,) = store.page(
        PagePlan(Reach(StreamName("messages"), (report.connection_id,), (StreamName("thread_id"),)), 1)
    ).records
    assert thread in message.body.decode()


def test_an_account_names_records_as_files_of_the_same_mail_do(
    store: Driven, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    job = job_of(MAIL, only(MAIL, {"a.mbox": b"From x\n" + THREAD + LETTER}))
    read = store.run(Importer(store.bare, clock=lambda: NOW).run(job))
    source = ImapSource(secrets=Secrets(os.environ))
    with tempfile.TemporaryDirectory(prefix="imap") as directory:
        Path(directory).chmod(0o755)
        with imap_account(Path(directory)) as server:
            server.deliver("INBOX", THREAD + LETTER)
            fetched = fetch(store, source, server.settings)
    assert keys(store, "threads", read) == keys(store, "threads", fetched)
