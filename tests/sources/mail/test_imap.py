"""A live account: read without changing it, once each message, from the last mark on."""

import imaplib
import os
import socketserver
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from headgate.errors import (
    ConfigInvalid,
    HeadgateError,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamUnreachable,
)
from headgate.sources import accounts, parser_process
from headgate.sources.accounts import account_job
from headgate.sources.importing import Importer
from headgate.sources.mail import imap, imap_clients
from headgate.sources.mail.imap import ImapSource
from headgate.sources.mail.imap_clients import FetchedMessage, fetched, folder_name, listed_folders
from headgate.sources.protocol import Covered, Mark, Reject, Row
from headgate.sources.secrets import Secrets
from headgate.wiring import live_sources
from tests.sources.mail.dovecot import PASSWORD, USER, account
from tests.sources.mail.mails import ANSWER, LETTER, check_items, state_of
from tests.sources.reading_out import read_out
from tests.store.engines import NOW, Driven


def letter(number: int) -> bytes:
    return LETTER.replace(b"<one@", b"<%d@" % number).replace(b"The bridge", b"Letter %d" % number)


@pytest.fixture(scope="module")
def server():
    # Not below the directory of pytest: the server's other user must enter it, and every pytest closes that again.
    with tempfile.TemporaryDirectory(prefix="imap") as directory:
        Path(directory).chmod(0o755)
        yield from delivered(Path(directory))


def delivered(root: Path):
    with account(root) as found:
        found.deliver("INBOX", letter(1), letter(2))
        found.deliver("INBOX", ANSWER, flags="FS")
        found.deliver("Gr&APwA3w-e", letter(3))
        found.deliver("Trash", letter(4))
        yield found


@pytest.fixture(autouse=True)
def password(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)


IMAP = ImapSource(secrets=Secrets(os.environ))


def synced(settings, state):
    return read_out(IMAP.sync(settings, state))


def messages(items):
    return [item.data for item in items if isinstance(item, Row) and item.stream == "messages"]


def marks(items):
    return {item.file: item.resume for item in items if isinstance(item, Mark)}


def test_the_messages_of_an_account_are_read_with_folder_and_flags(server):
    items = list(synced(server.settings, {}))
    check_items(items)
    found = {(row["folder"], row["subject"], row["is_read"], row["is_flagged"]) for row in messages(items)}
    assert found >= {
        ("INBOX", "Letter 1", False, False),
        ("INBOX", "Re: The bridge", True, True),
        ("Grüße", "Letter 3", False, False),
    }
    assert "Letter 4" not in {row["subject"] for row in messages(items)}


def test_an_account_is_covered_up_to_now_unless_folders_are_chosen(server):
    def covered(settings):
        return {item.stream for item in IMAP.sync(settings, {}) if isinstance(item, Covered)}

    assert covered(server.settings) == {"messages", "attachments"}
    # What the others have is not known.
    assert covered({**server.settings, "folders": "INBOX"}) == set()


def test_reading_marks_nothing_as_read(server):
    before = sorted(path.name for path in server.mail.rglob("*:2,*"))
    list(synced(server.settings, {}))
    assert sorted(path.name for path in server.mail.rglob("*:2,*")) == before


def test_only_new_messages_are_fetched_the_next_time(server):
    state = marks(synced(server.settings, {}))
    assert messages(synced(server.settings, state)) == []
    server.deliver("INBOX", letter(5))
    again = list(synced(server.settings, state))
    assert [row["subject"] for row in messages(again)] == ["Letter 5"]
    assert marks(again)["INBOX"]["uid"] == state["INBOX"]["uid"] + 1


def test_a_message_that_was_read_since_is_fetched_again(server):
    server.deliver("Seen", letter(6), letter(7))
    settings = {**server.settings, "folders": "Seen"}
    state = marks(synced(settings, {}))
    with imaplib.IMAP4("127.0.0.1", server.port) as reader:
        reader.authenticate("PLAIN", lambda _: f"\0{USER}\0{PASSWORD}".encode())
        reader.select("Seen")
        reader.store("1", "+FLAGS", "\\Seen")
    again = list(synced(settings, state))
    assert [(row["subject"], row["is_read"]) for row in messages(again)] == [("Letter 6", True)]
    assert messages(synced(settings, marks(again))) == []


def test_a_folder_with_another_validity_is_read_from_its_start(server):
    state = marks(synced(server.settings, {}))
    state["INBOX"] = {**state["INBOX"], "uidvalidity": 1}
    assert "Letter 1" in {row["subject"] for row in messages(synced(server.settings, state))}


def test_going_on_from_every_mark_gives_what_reading_once_gives(server, monkeypatch):
    monkeypatch.setattr(imap, "_LISTED_MESSAGES", 2)
    monkeypatch.setattr(imap, "_FETCHED_BYTES", 1)
    monkeypatch.setattr(imap, "_SEARCHED_UIDS", 3)
    items = list(synced(server.settings, {}))
    whole, state, places = state_of(items), {}, 0
    for at, item in enumerate(items):
        if isinstance(item, Mark):
            state[item.file], places = item.resume, places + 1
            assert state_of(synced(server.settings, dict(state)), state_of(items[: at + 1])) == whole
    assert places > 3


def test_folders_are_chosen_by_name(server):
    items = list(synced({**server.settings, "folders": "Trash, Grüße"}, {}))
    assert {row["subject"] for row in messages(items)} == {"Letter 3", "Letter 4"}
    with pytest.raises(ConfigInvalid, match="Nowhere"):
        list(synced({**server.settings, "folders": "Nowhere"}, {}))


def test_a_message_that_is_too_large_is_rejected_and_not_fetched(server, monkeypatch):
    monkeypatch.setattr(imap, "MAX_MESSAGE_BYTES", 100)
    items = list(synced({**server.settings, "folders": "Trash"}, {}))
    assert [type(item) for item in items] == [Reject, Mark, Mark]


def test_a_message_that_ends_its_parser_is_rejected_once_and_the_others_arrive(server, tmp_path, monkeypatch):
    # The parser needs several times the size of a message: one of 40 MB does not fit.
    monkeypatch.setattr(parser_process, "MEMORY_BYTES", 160 * 1024**2)
    large = letter(9) + b"a line of text\n" * 2_700_000
    server.deliver("Large", letter(8))
    server.deliver("Large", large)
    server.deliver("Large", letter(10))
    job = account_job(
        ImapSource(tmp_path / "notes", Secrets(os.environ)), {**server.settings, "folders": "Large"}
    )
    store = Driven("sqlite", tmp_path)
    try:
        report = store.run(Importer(store.bare, clock=lambda: NOW).run(job))
        again = store.run(Importer(store.bare, clock=lambda: NOW).run(job))
    finally:
        store.close()
    assert (report.streams["messages"].added, report.failure) == (2, "")
    (reject,) = report.rejects
    assert reject.place == "Large, message 2"
    assert reject.reason in {
        "Reading it needs more than 160 MB of memory.",
        "The parser crashed while it read it.",
    }
    assert (again.accepted, again.reject_count) == (0, 0)
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_wrong_password_and_a_server_that_is_away_are_errors_of_ours(server, monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "wrong")
    with pytest.raises(UpstreamAuthFailed, match=r"ada@example\.org") as caught:
        list(synced(server.settings, {}))
    assert "wrong" not in str(caught.value)
    with pytest.raises(UpstreamUnreachable):
        list(synced({**server.settings, "port": "1"}, {}))
    # The server speaks without TLS here.
    with pytest.raises(UpstreamUnreachable):
        list(synced({**server.settings, "security": "tls"}, {}))


@pytest.mark.parametrize(
    "changed", [{"security": "none", "host": "mail.example.org"}, {"security": "ssl3"}, {"secret": "hunter2"}]
)
def test_settings_that_would_be_unsafe_are_refused(changed):
    settings = {"host": "127.0.0.1", "user": "ada", "secret": "env:MAIL_PASSWORD", **changed}
    with pytest.raises(ConfigInvalid):
        list(synced(settings, {}))


@contextmanager
def scripted(answers: dict[bytes, list[bytes]]):
    """Serve one connection that answers each command by its name, and notes what came."""
    seen: list[bytes] = []

    class Script(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # A client may leave at any time.
                self.answer()

        def answer(self) -> None:
            self.wfile.write(b"* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2 X-GM-EXT-1] ready\r\n")
            for line in self.rfile:
                seen.append(line.strip())
                tag, _, command = line.strip().partition(b" ")
                name = next((one for one in answers if command.startswith(one)), None)
                if name == b"AUTHENTICATE":
                    self.wfile.write(b"+ \r\n")
                    seen.append(self.rfile.readline().strip())
                self.wfile.write(b"".join(answers[name] if name else ()) + tag + b" OK done\r\n")

    with socketserver.TCPServer(("127.0.0.1", 0), Script) as script:
        threading.Thread(target=script.handle_request, daemon=True).start()
        yield script.server_address[1], seen


def gmail(content: bytes = LETTER) -> dict[bytes, list[bytes]]:
    """What Gmail answers to each command, for one message."""
    line = rb'* 1 FETCH (UID 7 X-GM-THRID 1234 X-GM-LABELS ("\\Inbox" Work "a UID 9 \"b\"") FLAGS (\Seen) BODY[] {%d}'
    return {
        b"CAPABILITY": [b"* CAPABILITY IMAP4rev1 AUTH=XOAUTH2 X-GM-EXT-1\r\n"],
        b"AUTHENTICATE": [],
        b"LIST": [
            b'* LIST (\\HasNoChildren) "/" "INBOX"\r\n* LIST (\\HasChildren \\Noselect) "/" "[Gmail]"\r\n',
            b'* LIST (\\All \\HasNoChildren) "/" "[Gmail]/All Mail"\r\n',
        ],
        b"EXAMINE": [b"* 1 EXISTS\r\n* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT 8] ok\r\n"],
        b"UID SEARCH": [b"* SEARCH 7 9\r\n"],
        b"UID FETCH 7 (UID FLAGS RFC822.SIZE)": [b"* 1 FETCH (UID 7 FLAGS (\\Seen) RFC822.SIZE 100)\r\n"],
        b"UID FETCH": [line % len(content) + b"\r\n", content, b")\r\n"],
    }


def with_token(port: int) -> dict[str, str]:
    settings = {"host": "127.0.0.1", "port": str(port), "security": "none", "user": "ada@example.org"}
    return {**settings, "secret": "env:MAIL_PASSWORD", "sign_in": "oauth"}


def test_gmail_is_read_by_its_one_folder_with_labels_and_threads_and_a_token(monkeypatch):
    monkeypatch.setenv("MAIL_PASSWORD", "token")
    with scripted(gmail()) as (port, seen):
        items = list(synced(with_token(port), {}))
    (message,) = messages(items)
    assert (message["thread_id"], message["labels"]) == ("1234", ["Inbox", "Work", 'a UID 9 "b"'])
    assert marks(items) == {"[Gmail]/All Mail": {"uidvalidity": 5, "uid": 7, "change": 0}}
    assert not any(b"INBOX" in command or b"SELECT" in command for command in seen)
    assert b"BODY.PEEK[]" in b" ".join(seen)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_answers_are_rows_or_errors_of_ours(data):
    answers = gmail()
    name = data.draw(st.sampled_from(sorted(answers)))
    whole = b"".join(answers[name])
    at = data.draw(st.integers(0, len(whole)))
    noise = data.draw(
        st.one_of(st.binary(max_size=30), st.sampled_from([b"\r\n", b"{9}\r\n", b"(", b'"', b"9" * 5000]))
    )
    answers[name] = [whole[:at] + noise + data.draw(st.sampled_from([b"", whole[at:]])) + b"\r\n"]
    with pytest.MonkeyPatch.context() as patch, scripted(answers) as (port, _), suppress(HeadgateError):
        patch.setattr(imap, "_SECONDS", 0.3)  # An answer that announces more than comes is waited for.
        check_items([item for item in synced(with_token(port), {}) if not isinstance(item, Mark)])


def test_an_answer_that_is_too_large_ends_the_connection_before_it_is_read(monkeypatch):
    huge = {b"UID FETCH": [b"* 1 FETCH (UID 7 FLAGS () BODY[] {99999999999}\r\n"]}
    with scripted(gmail() | huge) as (port, _), pytest.raises(UpstreamProtocolError, match="more than"):
        list(synced(with_token(port), {}))
    monkeypatch.setattr(imap_clients, "MAX_ANSWER_BYTES", 5000)
    many = {b"LIST": [b'* LIST () "/" "x"\r\n'] * 1000}
    with scripted(gmail() | many) as (port, _), pytest.raises(UpstreamProtocolError, match="more than"):
        list(synced(with_token(port), {}))


@pytest.mark.parametrize("silent_after", [b"", b"* OK [CAPABILITY IMAP4rev1 AUTH=XOAUTH2] ready\r\n"])
def test_a_server_that_sends_a_byte_at_a_time_is_left_when_the_time_of_an_account_is_over(
    monkeypatch, silent_after: bytes
):
    class Dribble(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self.request.sendall(silent_after)
                for _ in range(500):
                    self.request.sendall(b"x")
                    left.wait(0.01)
                was_left.clear()

    monkeypatch.setattr(accounts, "ACCOUNT_SECONDS", 0.3)
    left, was_left = threading.Event(), threading.Event()
    was_left.set()
    with socketserver.TCPServer(("127.0.0.1", 0), Dribble) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises((UpstreamUnreachable, UpstreamProtocolError)):
            list(IMAP.sync(with_token(server.server_address[1]), {}))
        assert was_left.is_set(), "the server had not sent everything"
        left.set()
        thread.join()


def test_a_folder_that_claims_endless_messages_is_searched_as_far_as_the_protocol_goes(monkeypatch):
    monkeypatch.setattr(imap, "_SEARCHED_UIDS", 2**31)
    endless = {b"EXAMINE": [b"* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT 99999999999999] ok\r\n"]}
    with scripted(gmail() | endless) as (port, seen):
        list(synced(with_token(port), {}))
    assert sum(b"SEARCH" in command for command in seen) == 2


def test_what_servers_write_is_understood():
    answers = [
        b'(\\HasNoChildren) "." INBOX',
        (b'(\\Marked) "/" {9}', b"With {3}"),
        b'() NIL "a \\"b\\""',
        None,
    ]
    assert [one.name for one in listed_folders(answers)] == ["INBOX", "With {3}", 'a "b"']
    assert folder_name(b"Entw&APw-rfe &- Pl&AOQ-ne &broken") == "Entwürfe & Pläne &broken"
    assert fetched([(b"3 (UID 4 BODY[] {2}", b"ab"), rb" FLAGS (\Seen))", rb"9 (FLAGS (\Seen))", None]) == [
        FetchedMessage(4, frozenset({"\\seen"}), None, b"ab", None, ())
    ]


def test_the_account_is_a_live_source(tmp_path):
    assert isinstance(live_sources(tmp_path, {})["imap"], ImapSource)
    assert IMAP.label({"user": "ada@example.org"}) == "Mail of ada@example.org"
    assert {"messages", "attachments", "threads"} == {one["name"] for one in IMAP.declare({})["streams"]}
