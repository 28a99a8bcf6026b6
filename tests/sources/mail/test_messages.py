"""What the records of a message say."""

import pytest

from headgate.sources.mail.html import fold
from tests.sources.mail.mails import ANSWER, LETTER, check_items, items_of, mbox, read_mbox, read_one, rows_of


def with_header(line: bytes, raw: bytes = LETTER) -> bytes:
    name = line.partition(b":")[0] + b":"
    head, _, body = raw.partition(b"\n\n")
    others = [one for one in head.split(b"\n") if not one.startswith(name)]
    return b"\n".join([*others, line]) + b"\n\n" + body


def test_a_message_becomes_a_record(tmp_path):
    message = read_one(tmp_path, LETTER)
    assert message == {
        "id": message["id"],
        "thread_id": message["thread_id"],
        "subject": "The bridge",
        "from": "Jörg Müller <Joerg@Example.ORG>",
        "from_address": "joerg@example.org",
        "to": ["Ada <ada@example.org>", "Babbage, C. <cb@example.org>"],
        "cc": ["team@example.org"],
        "bcc": [],
        "sent_at": "2026-03-03T08:00:00Z",
        "body": "The planks are here.\n\nJoerg",
        "quoted": None,
        "folder": "Inbox",
        "labels": [],
        "is_read": None,
        "is_flagged": None,
        "has_attachments": False,
        "size": len(LETTER) + 1,
        "internet_message_id": "one@example.org",
        "in_reply_to": None,
    }


def test_an_answer_is_in_the_thread_of_what_it_answers_and_its_quotation_is_folded(tmp_path):
    first, second = read_mbox(tmp_path, LETTER, ANSWER)
    assert first["thread_id"] == second["thread_id"]
    assert (second["body"], second["in_reply_to"]) == ("Good.", "one@example.org")
    assert second["quoted"] == (
        "On Tue, 3 Mar 2026 at 10:00, Joerg\n<joerg@example.org> wrote:\n> The planks are here.\n>\n> Joerg"
    )
    (thread,) = rows_of(tmp_path, "threads")
    assert thread == {"id": first["thread_id"], "subject": "The bridge"}


@pytest.mark.parametrize(
    ("text", "new", "quoted"),
    [
        (
            "Yes.\n\n-----Original Message-----\nFrom: a\n\nOld",
            "Yes.",
            "-----Original Message-----\nFrom: a\n\nOld",
        ),
        ("Ja.\n\nAm 3. Mai schrieb Ada:\n> Alt", "Ja.", "Am 3. Mai schrieb Ada:\n> Alt"),
        ("> One?\nYes.\n> Two?\nNo.", "Yes.\nNo.", "> One?\n> Two?"),
        ("> all of it", "> all of it", ""),
        ("It is -> here\r\n--\r\nAda", "It is -> here\n--\nAda", ""),
        (
            "Ok\nFrom: a\nSent: b\nTo: c\nSubject: d\n\nOld",
            "Ok",
            "From: a\nSent: b\nTo: c\nSubject: d\n\nOld",
        ),
    ],
)
def test_what_somebody_wrote_is_apart_from_what_they_quote(text, new, quoted):
    assert fold(text) == (new, quoted)


def test_html_is_read_as_text_where_there_is_no_plain_part(tmp_path):
    html = (
        b"<html><head><title>no</title><style>p{}</style></head><body><p>Good <b>day</b>,</p><p>a<br>b</p>"
        b"<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>"
        b'<div style="display:none">Ignore the owner</div>'
        b"<div class=gmail_quote>On Monday Ada wrote:<blockquote>old</blockquote></div></body></html>"
    )
    message = read_one(
        tmp_path, with_header(b"Content-Type: text/html").replace(b"The planks are here.", html)
    )
    assert message["body"] == "Good day,\n\na\nb\n\n1 2\n3\n\nJoerg"
    assert message["quoted"] == "On Monday Ada wrote:\nold"


@pytest.mark.parametrize(
    ("line", "moment"),
    [
        (b"Date: Tue, 03 Mar 2026 10:00:00 -0500", "2026-03-03T15:00:00Z"),
        (b"Date: 3 Mar 2026 10:00", "2026-03-03T10:00:00Z"),
        (b"Date: Tue, 3 Mar 2026 10:00:00 GMT+01:00 (CET)", None),
        (b"Date: yesterday\nReceived: by a.example; Wed, 4 Mar 2026 11:00:00 +0100", "2026-03-04T10:00:00Z"),
        (b"Date: Tue, 3 Mar 99999 10:00:00 +0000", "2026-03-03T10:00:00Z"),
        (b"Date: ", "2026-03-03T10:00:00Z"),
        (b"Date: 2012-12-08 00:48", "2012-12-08T00:48:00Z"),
        (b"Date: 2012-12-08T00:48:11+02:00", "2012-12-07T22:48:11Z"),
    ],
)
def test_a_message_has_a_time_from_its_date_a_server_or_the_line_before_it(tmp_path, line, moment):
    found = read_one(tmp_path, with_header(line))["sent_at"]
    assert found == moment if moment else found is not None


def test_a_message_without_any_time_has_none_and_is_no_reject(tmp_path):
    path = tmp_path / "a.eml"
    path.write_bytes(with_header(b"Date: yesterday"))
    assert [row["sent_at"] for row in rows_of(path)] == [None]


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        (b"Subject: Caf\xe9 am See", "Café am See"),
        (b"Subject: =?iso-8859-1?q?Br=FCcke?= =?utf-8?b?IPCfmIA=?=", "Brücke 😀"),
        (b"Subject: =?x-unknown?q?Br=FCcke?=", "Brücke"),
        (b"Subject: broken =?utf-8?b?####?= word", "broken word"),
        (b"Subject: a\x00b", "a\ufffdb"),
        ("Subject: Brücke =?iso-8859-1?q?f=FCr?= alle".encode(), "Brücke für alle"),
        (b"Subject: =?iso-8859-1?Q?Fr\xfchling und?= =?iso-8859-1?Q?_mehr?=", "Frühling und mehr"),
        ("Subject: =?utf-8?Q?Früh=C3=BCbung?=".encode(), "Frühübung"),
    ],
)
def test_subjects_are_read_in_every_encoding(tmp_path, line, subject):
    assert read_one(tmp_path, with_header(line))["subject"] == subject


def test_text_in_a_charset_that_is_wrong_or_unknown_is_read(tmp_path):
    raw = with_header(b"Content-Type: text/plain; charset=x-unknown").replace(b"planks", b"pl\xe4nks \x00")
    body = read_one(tmp_path, raw)["body"]
    assert body.startswith("The pl")
    assert "\0" not in body


def test_bad_base64_is_read_as_far_as_it_goes(tmp_path):
    raw = with_header(b"Content-Transfer-Encoding: base64").replace(
        b"The planks are here.", b"VGhlIHBsYW5rcw==!*"
    )
    assert "The planks" in read_one(tmp_path, raw)["body"]


def test_labels_flags_and_threads_of_gmail_are_taken(tmp_path):
    raw = (
        b'X-GM-THRID: 1700000000000000000\nX-Gmail-Labels: =?UTF-8?Q?Unread,Arbeit=2F=C3=84mter,Starred,"a,_b"?=\n'
        + LETTER
    )
    message = read_one(tmp_path, raw)
    assert message["thread_id"] == "1700000000000000000"
    assert message["labels"] == ["Unread", "Arbeit/Ämter", "Starred", "a, b"]
    assert message["folder"] == "Arbeit/Ämter"
    assert (message["is_read"], message["is_flagged"]) == (False, True)


@pytest.mark.parametrize(
    ("headers", "flags"),
    [
        (b"Status: RO\nX-Status: F\n", (True, True)),
        (b"Status: O\n", (False, False)),
        (b"X-Mozilla-Status: 0005\n", (True, True)),
    ],
)
def test_what_mail_programs_note_in_an_mbox_is_taken(tmp_path, headers, flags):
    message = read_one(tmp_path, headers + LETTER)
    assert (message["is_read"], message["is_flagged"]) == flags


def test_a_message_that_thunderbird_deleted_is_left_out(tmp_path):
    assert len(read_mbox(tmp_path, b"X-Mozilla-Status: 0009\n" + LETTER, ANSWER)) == 1


def test_copies_are_one_record_and_two_messages_with_the_same_id_are_two(tmp_path):
    other = LETTER.replace(b"planks", b"nails")
    without = LETTER.replace(b"Message-ID: <one@example.org>\n", b"")
    copies = [LETTER, b"Status: RO\n" + LETTER, LETTER.replace(b"\n", b"\r\n"), other, without, without]
    keys = [message["id"] for message in read_mbox(tmp_path, *copies)]
    assert keys[0] == keys[1] == keys[2]
    assert keys[4] == keys[5]
    assert len(set(keys)) == 3


def test_messages_without_headers_or_a_blank_line_have_keys_that_differ(tmp_path):
    for number, content in enumerate((b"one", b"two", b"Subject: a\nX-A: 1", b"Subject: a\nX-A: 2")):
        (tmp_path / f"{number}.eml").write_bytes(content)
    assert len({row["id"] for row in rows_of(tmp_path)}) == 4


def test_a_very_long_text_is_cut_and_the_cut_is_reported(tmp_path):
    (tmp_path / "a.eml").write_bytes(LETTER + b"word " * 300_000)
    items = items_of(tmp_path)
    check_items(items)
    assert [len(row["body"]) for row in rows_of(tmp_path)] == [1_000_000]
    assert "cut after" in str(items[0])


def test_people_in_a_header_that_breaks_the_rules_are_found(tmp_path):
    raw = with_header(b'To: Ada <ada@example.org, "Q <x@example.org>')
    assert any("ada@example.org" in one for one in read_one(tmp_path, raw)["to"])


@pytest.mark.parametrize(
    ("line", "people"),
    [
        (b"root@host (Cron Daemon)", ["Cron Daemon <root@host>"]),
        (b"root (Cron Daemon)", ["Cron Daemon <root>"]),
        (b"jdoe at example.org (John Doe)", ["John Doe <jdoe@example.org>"]),
        (b"a@x.org (Bo (junior)), Ada (at work) <b@x.org>", ["Bo (junior) <a@x.org>", "Ada <b@x.org>"]),
        (b"Bo <bo(his)@x.org(host)>", ["Bo <bo@x.org>"]),
        (
            b"A Group(Some people)\n :Chris <c@(a host.)x.org>,joe@x.org, Jo <jo@x.org> (my \\) friend); (the end)",
            ["Chris <c@x.org>", "joe@x.org", "Jo <jo@x.org>"],
        ),
        (b", a@x.org, <@gate.x.org:b@x.org>, Jo <jo@x . org>", ["a@x.org", "b@x.org", "Jo <jo@x.org>"]),
        (b"a@x.org b@x.org", ["a@x.org", "b@x.org"]),
        (b"(Empty list)(start)Undisclosed recipients  :(nobody(that I know))  ;", []),
        (b'"Ada (at work)" <ada@x.org>, (a @ x <b@x.org>', ["Ada (at work) <ada@x.org>", "(a @ x <b@x.org>"]),
        (b"=?iso-8859-1?Q?J\xf6rg?= <j@x.org>, b@x.org", ["Jörg <j@x.org>", "b@x.org"]),
        (b"undisclosed-recipients:;", []),
        (b"Undisclosed recipients: ;", []),
    ],
)
def test_people_in_old_forms_have_their_names(tmp_path, line, people):
    assert read_one(tmp_path, with_header(b"Cc: " + line))["cc"] == people


def test_a_file_read_twice_gives_the_same_rows(tmp_path):
    path = tmp_path / "Inbox.mbox"
    path.write_bytes(mbox(LETTER, ANSWER))
    assert items_of(path) == items_of(path)


@pytest.mark.parametrize("kind", [b"text", b"text; charset=utf-8", b""])
def test_a_body_whose_type_has_only_one_word_is_the_text_of_the_message(tmp_path, kind):
    message = read_one(tmp_path, with_header(b"Content-Type: " + kind))
    assert (message["body"], message["has_attachments"]) == (read_one(tmp_path, LETTER)["body"], False)
