"""Calendars of an account: a real CalDAV server, and files at an address."""

import os
import socketserver
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from headgate.errors import (
    AddressBlocked,
    ConfigInvalid,
    HeadgateError,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamUnreachable,
)
from headgate.model.ids import StreamName
from headgate.model.instants import instant
from headgate.model.plan import Reach
from headgate.sources import accounts, parser_process, web_account
from headgate.sources.accounts import account_job
from headgate.sources.calendar.account import CalendarAccount
from headgate.sources.dav import parts_of
from headgate.sources.formats.xml_events import XmlRefused
from headgate.sources.importing import Importer
from headgate.sources.protocol import Mark, Reject, Removal, Row
from headgate.sources.web_account import HttpAnswer, WebAccess, WebAccount
from headgate.wiring import live_sources
from tests.sources.calendar.caldav import PASSWORD, USER, caldav_server, ics
from tests.sources.reading import check_rows
from tests.sources.reading_out import read_out
from tests.store.engines import NOW, Driven

TODAY = instant("2026-03-10T08:00:00Z")


@pytest.fixture
def account(tmp_path):
    found = live_sources(tmp_path, os.environ)["calendar"]
    assert isinstance(found, CalendarAccount)
    found._clock = lambda: TODAY
    return found


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("CALENDAR_PASSWORD", PASSWORD)


@pytest.fixture
def server(tmp_path):
    (tmp_path / "dav").mkdir()
    with caldav_server(tmp_path / "dav") as found:
        found.make_calendar("work")
        found.make_calendar("home")
        found.put("work", "one")
        found.put("work", "weekly", RRULE="FREQ=WEEKLY;COUNT=4", SUMMARY="Rounds")
        found.put("home", "three", SUMMARY="Dinner")
        found.seen.clear()
        yield found


def settings_of(server, path=""):
    return {"url": f"{server.url}{path}", "user": USER, "secret": "env:CALENDAR_PASSWORD"}


def synced(account, settings, state):
    return read_out(account.sync(settings, state))


def rows(items):
    return {item.data["id"]: dict(item.data) for item in items if isinstance(item, Row)}


def removed(items):
    return {item.key[0] for item in items if isinstance(item, Removal)}


def marks(items):
    return {item.file: item.resume for item in items if isinstance(item, Mark)}


@pytest.mark.parametrize("path", ["", f"/{USER}/"])
def test_the_calendars_of_a_server_are_found_and_read(server, account, path):
    settings = settings_of(server, path)
    items = list(synced(account, settings, {}))
    check_rows(account.declare(settings), [item for item in items if isinstance(item, Row)])
    found = rows(items)
    assert {row["title"] for row in found.values()} == {"Lock inspection", "Rounds", "Dinner"}
    assert sum(row.get("series_id") == "weekly" for row in found.values()) == 4
    assert found["three"]["calendar"] == "home"
    assert set(marks(items)) == {f"/{USER}/work/", f"/{USER}/home/"}


def test_one_calendar_is_read_by_its_address(server, account):
    assert set(rows(synced(account, settings_of(server, f"/{USER}/home/"), {}))) == {"three"}


def test_nothing_on_the_server_is_changed_and_what_is_known_is_not_fetched_again(server, account):
    settings = settings_of(server)
    state = marks(synced(account, settings, {}))
    assert {method for method, _ in server.seen} == {"PROPFIND", "REPORT"}
    server.seen.clear()
    assert list(synced(account, settings, state)) == []
    assert {method for method, _ in server.seen} == {"PROPFIND"}


def test_what_changed_is_fetched_and_what_was_deleted_is_removed(server, account):
    settings = settings_of(server)
    state = marks(synced(account, settings, {}))
    server.put("work", "one", SUMMARY="Moved")
    server.put("work", "weekly", RRULE="FREQ=WEEKLY;COUNT=2", SUMMARY="Rounds")
    server.put("work", "four", SUMMARY="New")
    server.delete("home", "three")
    items = list(synced(account, settings, state))
    assert {row["title"] for row in rows(items).values()} == {"Moved", "Rounds", "New"}
    assert "three" in removed(items)
    assert len([key for key in removed(items) if key.startswith("weekly")]) == 2
    state = {**state, **marks(items)}
    assert list(synced(account, settings, state)) == []


def test_an_event_that_another_calendar_has_as_well_stays(server, account):
    settings = settings_of(server)
    server.put("home", "one")
    state = marks(synced(account, settings, {}))
    server.delete("home", "one")
    assert removed(synced(account, settings, state)) == set()


def test_series_go_on_when_time_goes_on(server, account):
    settings = settings_of(server)
    server.put("work", "daily", RRULE="FREQ=DAILY")
    state = marks(synced(account, settings, {}))
    account._clock = lambda: TODAY + 20 * 86_400_000_000
    assert list(synced(account, settings, state)) == []
    account._clock = lambda: TODAY + 400 * 86_400_000_000
    later = rows(synced(account, settings, state))
    assert max(row["starts_at"] for row in later.values()) > "2029-03-01"


def test_the_store_has_everything_once_and_after_a_kill_in_the_middle_too(server, account, tmp_path):
    settings = settings_of(server)
    store = Driven("sqlite", tmp_path)

    def run(found):
        job = account_job(found, settings)
        return store.run(Importer(store.bare, clock=lambda: NOW).run(job))

    class Killed(Exception):
        pass

    class Cut(CalendarAccount):
        def sync(self, settings, state):
            for number, item in enumerate(super().sync(settings, state)):
                if number == 3:
                    raise Killed
                yield item

    try:
        with pytest.raises(Killed):
            run(Cut(account._clock, secrets=account._secrets))
        assert run(account).failure == ""
        again = run(account)
        assert (again.accepted, again.streams["events"].added) == (0, 0)
        server.delete("home", "three")
        gone = run(account)
        assert (gone.streams["events"].added, gone.streams["events"].removed) == (0, 1)
        ids = tuple(one.id for one in store.connections())
        (shelf,) = store.summaries([Reach(StreamName("events"), ids, ())])
        assert shelf.record_count == 5
    finally:
        store.close()


def test_a_wrong_password_and_a_server_that_is_away_are_errors_of_ours(server, account, monkeypatch):
    monkeypatch.setenv("CALENDAR_PASSWORD", "wrong")
    with pytest.raises(UpstreamAuthFailed) as caught:
        list(synced(account, settings_of(server), {}))
    assert "wrong" not in str(caught.value)
    with pytest.raises(UpstreamUnreachable):
        list(synced(account, {"url": "http://127.0.0.1:9/a.ics"}, {}))


@pytest.mark.parametrize(
    "url", ["http://calendar.example/a.ics", "ftp://x/a", "https://a:b@x.example/", "file:///etc/passwd", "x"]
)
def test_addresses_that_would_be_unsafe_are_refused(account, url):
    with pytest.raises(ConfigInvalid):
        list(synced(account, {"url": url}, {}))


def test_private_addresses_are_called_only_if_the_owner_allows_it(account, monkeypatch):
    dialled = []
    monkeypatch.setattr(
        "httpcore2.SyncBackend.connect_tcp", lambda *arguments, **_: dialled.append(arguments[1]) or 1 / 0
    )
    for url in ("https://10.0.0.1/a.ics", "https://169.254.169.254/a.ics"):
        with pytest.raises(AddressBlocked):
            list(synced(account, {"url": url}, {}))
    with pytest.raises(AddressBlocked):
        list(synced(account, {"url": "https://169.254.169.254/a.ics", "allow_private": "true"}, {}))
    assert dialled == []
    with pytest.raises(ZeroDivisionError):
        list(synced(account, {"url": "https://10.0.0.1/a.ics", "allow_private": "true"}, {}))
    assert dialled == ["10.0.0.1"]


class Files:
    """What a plain server has, by path: status, headers and body."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, str | None, str | None]] = []
        self.url = ""


@contextmanager
def served_files():
    files = Files()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            files.seen.append((self.path, self.headers["If-None-Match"], self.headers["Authorization"]))
            status, headers, body = files.answers[self.path]
            if self.headers["If-None-Match"] and self.headers["If-None-Match"] == headers.get("ETag"):
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        files.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            thread.join(20)


@pytest.fixture
def files():
    with served_files() as found:
        yield found


def feed(*uids: str, etag: str = '"1"') -> tuple[int, dict[str, str], bytes]:
    return 200, {"ETag": etag}, ics(*uids).encode()


def test_a_file_is_fetched_again_only_when_it_changed(files, account):
    settings = {"url": f"{files.url}/team%20plan.ics"}
    files.answers["/team%20plan.ics"] = feed("a", "b")
    items = list(synced(account, settings, {}))
    assert rows(items)["a"]["calendar"] == "team plan"
    state = marks(items)
    assert list(synced(account, settings, state)) == []
    assert files.seen[-1][1] == '"1"'
    files.answers["/team%20plan.ics"] = feed("b", "c", etag='"2"')
    items = list(synced(account, settings, state))
    assert (set(rows(items)), removed(items)) == ({"b", "c"}, set())


def test_events_that_left_a_file_are_removed_if_it_is_the_whole(files, account):
    settings = {"url": f"{files.url}/a.ics", "whole": "true"}
    files.answers["/a.ics"] = feed("a", "b")
    state = marks(synced(account, settings, {}))
    files.answers["/a.ics"] = feed("b", etag='"2"')
    assert removed(synced(account, settings, state)) == {"a"}


def test_a_file_that_ends_its_parser_removes_nothing(files, account, monkeypatch):
    settings = {"url": f"{files.url}/a.ics", "whole": "true"}
    files.answers["/a.ics"] = feed("a", "b")
    state = marks(synced(account, settings, {}))
    # The parser reads its request, and no more fits.
    monkeypatch.setattr(parser_process, "MEMORY_BYTES", 160 * 1024**2)
    lines = b"BEGIN:VCALENDAR\r\n" + b"X-A:" + b"\r\n a" * 15_000_000
    files.answers["/a.ics"] = (200, {"ETag": '"2"'}, lines)
    items = list(synced(account, settings, state))
    assert [type(item) for item in items] == [Reject, Mark]
    assert marks(items)["file"]["ids"] == state["file"]["ids"]


def test_a_file_of_a_calendar_that_would_store_too_much_is_cut(files, account):
    event = ics("a", RRULE="FREQ=HOURLY", DESCRIPTION="word " * 4000)
    files.answers["/a.ics"] = (200, {}, event.encode())
    items = list(synced(account, {"url": f"{files.url}/a.ics"}, {}))
    assert 1000 < len(rows(items)) < 10_000
    assert "too much for its size" in next(item.reason for item in items if isinstance(item, Reject))


def test_a_redirect_is_followed_without_the_password(files, account):
    with served_files() as other:
        files.answers["/a.ics"] = (302, {"Location": f"{other.url}/b.ics"}, b"")
        other.answers["/b.ics"] = feed("a")
        settings = {
            "url": f"{files.url}/a.ics",
            "user": USER,
            "secret": "env:CALENDAR_PASSWORD",
            "kind": "ics",
        }
        assert set(rows(synced(account, settings, {}))) == {"a"}
        assert files.seen[0][2].startswith("Basic ")
        assert other.seen[0][2] is None


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:{port}/a.ics",
        "http://localhost:{port}/admin?delete=1",
        "https://localhost.:{port}/a.ics",
        "https://app.localhost:{port}/a.ics",
        "https://127.9.9.9:{port}/a.ics",
        "https://[::1]:{port}/a.ics",
        "//127.0.0.1:{port}/a.ics",
    ],
)
def test_a_server_elsewhere_leads_to_no_service_of_this_machine(files, account, monkeypatch, status, target):
    send, location = WebAccount._send, target.format(port=files.url.rpartition(":")[2])

    def answer(self, method, url, headers, body):
        # No server elsewhere can be had in a test: its answer is made here, what follows is real.
        if url.startswith("https://calendar.example"):
            return HttpAnswer(status, {"location": location}, b"", url)
        return send(self, method, url, headers, body)

    monkeypatch.setattr(WebAccount, "_send", answer)
    with pytest.raises(AddressBlocked):
        list(account.sync({"url": "https://calendar.example/a.ics", "kind": "ics"}, {}))
    assert files.seen == []


def test_a_server_that_sends_a_byte_at_a_time_is_left_when_the_time_of_an_account_is_over(
    account, monkeypatch
):
    class Dribble(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")
                for _ in range(500):
                    self.request.sendall(b"x")
                    left.wait(0.01)

    monkeypatch.setattr(accounts, "ACCOUNT_SECONDS", 0.3)
    left = threading.Event()
    with socketserver.TCPServer(("127.0.0.1", 0), Dribble) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(UpstreamUnreachable):
            list(account.sync({"url": f"http://127.0.0.1:{server.server_address[1]}/a.ics"}, {}))
        left.set()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((200, {}, b"<html>sign in</html>"), UpstreamProtocolError),
        ((404, {}, b""), UpstreamProtocolError),
        ((403, {}, b""), UpstreamAuthFailed),
        ((302, {"Location": "/a.ics"}, b""), UpstreamProtocolError),
        ((302, {"Location": "http://169.254.169.254/"}, b""), ConfigInvalid),
        ((302, {"Location": "https://169.254.169.254/"}, b""), AddressBlocked),
    ],
)
def test_an_answer_that_is_no_calendar_is_an_error(files, account, answer, error):
    files.answers["/a.ics"] = answer
    with pytest.raises(error):
        list(synced(account, {"url": f"{files.url}/a.ics"}, {}))


def test_an_answer_without_end_is_refused(files, account, monkeypatch):
    monkeypatch.setattr(web_account, "MAX_ANSWER_BYTES", 1000)
    files.answers["/a.ics"] = (200, {}, ics("a").encode() + b" " * 2000)
    with pytest.raises(UpstreamProtocolError, match="more than"):
        list(synced(account, {"url": f"{files.url}/a.ics"}, {}))


ANSWER = (
    b'<multistatus xmlns="DAV:"><response><href>/a/</href><propstat><prop><displayname>A</displayname>'
    b"<resourcetype><collection/><calendar/></resourcetype><sync-token>7</sync-token></prop></propstat>"
    b"</response></multistatus>"
)


def test_an_answer_with_entities_is_refused():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><multistatus>&a;</multistatus>'
    with pytest.raises(XmlRefused):
        list(parts_of(bomb))
    (part,) = parts_of(ANSWER)
    assert (part.path, part.version, "calendar" in part.kinds) == ("/a/", "7", True)


class Scripted:
    """An account whose server answers with the same bytes to everything."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def request(self, _method, url, _headers=None, _body=b""):
        return HttpAnswer(207, {}, self._body, url)


DAMAGES = given(at=st.integers(0, len(ANSWER)), noise=st.binary(max_size=30), cut=st.booleans())


def sync_damaged(at: int, noise: bytes, *, cut: bool) -> None:
    body = ANSWER[:at] + noise + (b"" if cut else ANSWER[at:])
    found = CalendarAccount(lambda: TODAY)

    @contextmanager
    def scripted(_url: str, _access: WebAccess):
        yield Scripted(body)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.sources.dav.web_account", scripted)
        try:
            items = list(synced(found, {"url": "https://x.example/", "kind": "caldav"}, {}))
        except HeadgateError:
            return
    assert {type(item) for item in items} <= {Mark}


# Each answer is read in a new process.
@hypothesis_settings(max_examples=15, deadline=None)
@DAMAGES
def test_damaged_answers_are_errors_of_ours(at, noise, cut):
    sync_damaged(at, noise, cut=cut)


@pytest.mark.soak
@hypothesis_settings(max_examples=200, deadline=None)
@DAMAGES
def test_many_damaged_answers_are_errors_of_ours(at, noise, cut):
    sync_damaged(at, noise, cut=cut)
