"""The files of a message, and the words in them."""

import io
import zipfile
from email.message import EmailMessage

import pytest

from headgate.sources.mail.rows import attached_text
from headgate.sources.protocol import Row
from tests.sources.mail.mails import LETTER, check_items, items_of, rows_of

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def packed(**members: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return content.getvalue()


def pdf_with(text: str) -> bytes:
    drawn = f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    content, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return content + (
        b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (table, len(content))
    )


def letter_with(*attached: tuple[str, str, bytes]) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Message-ID"], message["Subject"] = "ada@example.org", "<a@example.org>", "Files"
    message.set_content("See the files.")
    for name, mime_type, content in attached:
        message.add_attachment(content, *mime_type.split("/"), filename=name)
    return message


def test_an_attachment_is_a_record_with_its_file(tmp_path):
    (tmp_path / "a.eml").write_bytes(bytes(letter_with(("Größe.txt", "text/plain", b"Nine metres"))))
    items = items_of(tmp_path)
    check_items(items)
    (message,) = rows_of(tmp_path)
    (attachment,) = [item for item in items if isinstance(item, Row) and item.stream == "attachments"]
    assert message["has_attachments"]
    assert attachment.data == {
        "id": f"{message['id']}-1",
        "message_id": message["id"],
        "sent_at": None,
        "name": "Größe.txt",
        "mime_type": "text/plain",
        "size": 11,
        "text": "Nine metres",
    }
    assert attachment.attachments["file"].content == b"Nine metres"


@pytest.mark.parametrize(
    ("name", "mime_type", "content", "text"),
    [
        ("a.txt", "text/plain", b"Caf\xe9", "Café"),
        ("a.csv", "application/octet-stream", "a;ä".encode("utf-16"), "a;ä"),
        ("a.html", "text/html", b"<p>One</p><script>x</script><p>Two</p>", "One\n\nTwo"),
        ("a.pdf", "application/pdf", pdf_with("Nine metres"), "Nine metres"),
        ("a.docx", DOCX, packed(word__document_xml="<d><p><t>One</t></p><p><t>Two</t></p></d>"), "One\nTwo"),
        (
            "a.odt",
            "application/zip",
            packed(content_xml="<d><h>One</h><p>Tw<span>o</span></p></d>"),
            "One\nTwo",
        ),
        (
            "a.xlsx",
            "application/zip",
            packed(xl__sharedStrings_xml="<d><si><t>A</t></si><si><t>B</t></si></d>"),
            "A\nB",
        ),
        ("a.docx", DOCX, packed(word__document_xml="<d><p><t>One</t></p><p><t>cut</t>"), "One\ncut"),
        ("a.png", "image/png", b"\x89PNG", None),
        ("a.pdf", "application/pdf", b"%PDF-1.4 broken", None),
        ("a.docx", DOCX, b"PK no archive", None),
        ("a.docx", DOCX, packed(other_xml="<d/>"), None),
    ],
)
def test_the_words_of_a_file_are_read_where_they_can_be(name, mime_type, content, text):
    assert attached_text(name, mime_type, content) == text


def test_only_the_first_pages_of_a_file_are_read():
    pages = "".join(f'<p><t>page {number}</t><br type="page"/></p>' for number in range(1, 61))
    text = attached_text("a.docx", DOCX, packed(word__document_xml=f"<d>{pages}</d>"))
    assert text is not None
    assert text.endswith("page 50")


def test_a_bomb_of_entities_or_of_zeros_has_no_words_and_does_no_harm():
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    bomb = f'<!DOCTYPE d [<!ENTITY e0 "ha">{entities}]><d>&e12;</d>'
    assert attached_text("a.docx", DOCX, packed(word__document_xml=bomb)) is None
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "<d>" + " " * 100_000_000)
    assert attached_text("a.docx", DOCX, content.getvalue()) is None


def test_a_message_that_was_passed_on_is_an_attachment_with_its_words_and_its_files(tmp_path):
    inner = letter_with(("plan.txt", "text/plain", b"Nine metres"))
    outer = EmailMessage()
    outer["Subject"] = "Fwd: Files"
    outer.set_content("See below.")
    outer.add_attachment(inner)
    (tmp_path / "a.eml").write_bytes(bytes(outer))
    forwarded, plan = rows_of(tmp_path, "attachments")
    assert (forwarded["name"], forwarded["mime_type"]) == ("Files.eml", "message/rfc822")
    assert "Subject: Files" in forwarded["text"]
    assert "See the files." in forwarded["text"]
    assert plan["text"] == "Nine metres"


def test_messages_inside_messages_end_at_a_level(tmp_path):
    raw = LETTER
    for _ in range(12):
        raw = b"Content-Type: message/rfc822\n\n" + raw
    (tmp_path / "a.eml").write_bytes(raw)
    assert len(rows_of(tmp_path, "attachments")) == 6
