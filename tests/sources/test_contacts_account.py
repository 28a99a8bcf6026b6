"""Contacts of an account: a real CardDAV server."""

from __future__ import annotations

import os

import pytest

from headgate.errors import UpstreamAuthFailed, UpstreamProtocolError
from headgate.model.ids import StreamName
from headgate.model.plan import Reach
from headgate.sources.accounts import account_job
from headgate.sources.contacts_account import ContactsAccount
from headgate.sources.importing import Importer
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Mark, Reject, Removal, Row
from headgate.wiring import live_sources
from tests.sources.calendar.caldav import PASSWORD, USER, caldav_server
from tests.sources.reading import check_rows
from tests.sources.reading_out import read_out
from tests.store.engines import NOW, Driven

PHOTO = "PHOTO;ENCODING=b;TYPE=PNG:iVBORw0KGgo="


@pytest.fixture
def account(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTACTS_PASSWORD", PASSWORD)
    found = live_sources(tmp_path, os.environ)["contacts"]
    assert isinstance(found, ContactsAccount)
    return found


@pytest.fixture
def server(tmp_path):
    (tmp_path / "dav").mkdir()
    with caldav_server(tmp_path / "dav") as found:
        found.make_calendar("work")
        found.put("work", "event")
        found.make_address_book("people")
        found.make_address_book("club")
        found.put_card("people", "ada", "Lovelace", "TEL;TYPE=WORK:+44 20 7946 0000", PHOTO)
        found.put_card("people", "zoe", "Wójcik", "EMAIL:zoe@example.org")
        found.put_card("club", "sam", "Okafor", "ORG:Boats")
        found.seen.clear()
        yield found


def settings_of(server, path=""):
    return {"url": f"{server.url}{path}", "user": USER, "secret": "env:CONTACTS_PASSWORD"}


def synced(account, settings, state):
    return list(read_out(account.sync(settings, state)))


def rows(items):
    return {item.data["id"]: dict(item.data) for item in items if isinstance(item, Row)}


def marks(items):
    return {item.file: item.resume for item in items if isinstance(item, Mark)}


def removed(items):
    return [item.key[0] for item in items if isinstance(item, Removal)]


@pytest.mark.parametrize("path", ["", f"/{USER}/"])
def test_the_address_books_of_a_server_are_found_and_read_and_no_calendar_is(server, account, path):
    settings = settings_of(server, path)
    items = synced(account, settings, {})
    check_rows(account.declare(settings), [item for item in items if isinstance(item, Row)])
    found = rows(items)
    assert {row["name"] for row in found.values()} == {"Lovelace", "Wójcik", "Okafor"}
    assert found["ada"]["labelled_phones"] == ["work: +44 20 7946 0000"]
    assert found["zoe"]["emails"] == ["zoe@example.org"]
    assert set(marks(items)) == {f"/{USER}/people/", f"/{USER}/club/"}
    assert account.label(settings) == "Contacts of ada"


def test_a_photo_comes_with_its_contact(server, account):
    parts = [part for part in account.sync(settings_of(server), {}) if isinstance(part, ImportPart)]
    assert [one.mime_type for part in parts for one in part.attachments] == ["image/png"]


def test_one_address_book_is_read_by_its_address(server, account):
    assert set(rows(synced(account, settings_of(server, f"/{USER}/club/"), {}))) == {"sam"}


def test_nothing_on_the_server_is_changed_and_only_what_changed_is_fetched(server, account):
    settings = settings_of(server)
    state = marks(synced(account, settings, {}))
    assert {method for method, _ in server.seen} == {"PROPFIND", "REPORT"}
    assert rows(synced(account, settings, state)) == {}
    server.put_card("people", "ada", "King")
    server.put_card("club", "new", "Noether")
    server.delete("people", "zoe.vcf")
    items = synced(account, settings, state)
    assert {key: row["name"] for key, row in rows(items).items()} == {"ada": "King", "new": "Noether"}
    assert removed(items) == ["zoe"]
    assert rows(synced(account, settings, state | marks(items))) == {}


def test_a_person_who_stands_in_another_address_book_as_well_stays(server, account):
    server.put_card("club", "ada", "Lovelace")
    state = marks(synced(account, settings_of(server), {}))
    server.delete("club", "ada.vcf")
    assert removed(synced(account, settings_of(server), state)) == []


def test_a_card_that_cannot_be_read_stops_no_other(server, account):
    server.put_card("club", "empty", "", "NOTE:none")
    items = synced(account, settings_of(server), {})
    assert {"ada", "zoe", "sam"} <= set(rows(items))
    (reject,) = (item for item in items if isinstance(item, Reject))
    assert "card 1" in reject.place


def test_the_store_has_everything_once_and_after_a_kill_in_the_middle_too(server, account, tmp_path):
    settings = settings_of(server)
    store = Driven("sqlite", tmp_path)

    def run(found):
        return store.run(Importer(store.bare, clock=lambda: NOW).run(account_job(found, settings)))

    class Killed(Exception):
        pass

    class Cut(ContactsAccount):
        def sync(self, settings, state):
            for number, item in enumerate(super().sync(settings, state)):
                if number == 2:
                    raise Killed
                yield item

    try:
        with pytest.raises(Killed):
            run(Cut(account._clock, secrets=account._secrets))
        assert run(account).failure == ""
        again = run(account)
        assert (again.accepted, again.streams["contacts"].added) == (0, 0)
        server.delete("club", "sam.vcf")
        assert run(account).streams["contacts"].removed == 1
        ids = tuple(one.id for one in store.connections())
        (shelf,) = store.summaries([Reach(StreamName("contacts"), ids, ())])
        assert shelf.record_count == 2
    finally:
        store.close()


def test_a_wrong_password_and_a_server_without_address_books_are_errors_of_ours(server, account, monkeypatch):
    for book in ("people", "club"):
        server.send("DELETE", f"/{USER}/{book}/")
    with pytest.raises(UpstreamProtocolError, match="no address book"):
        synced(account, settings_of(server), {})
    monkeypatch.setenv("CONTACTS_PASSWORD", "wrong")
    with pytest.raises(UpstreamAuthFailed):
        synced(account, settings_of(server), {})
