"""Small files that were made to take all memory, all time or the whole disk: what can be read of them is imported."""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.on_socket import headgate, served_program
from tests.sources.workbooks import ods, ods_row

GOOD = b"From ada Tue Mar  3 10:00:00 2026\nFrom: ada@example.org\nSubject: Good %d\n\nHello\n\n"
TOO_MUCH = "too much for its size. The rest is left out."


def imported(place: Path, path: str) -> tuple[int, dict[str, Any], str]:
    done = headgate(place, "--home", "home", "import", path, "--json")
    return done.code, json.loads(done.out) if done.out else {}, done.err


def nested_mail(levels: int) -> bytes:
    part = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n"
    parts = b"".join(part % (level, level) for level in range(levels))
    return b"From: eve@example.org\nSubject: Nested\n" + parts + b"\ntext\n"


def tag_of_many_attributes() -> bytes:
    tag = " ".join(f"a{number}=1" for number in range(300_000))
    head = b"From: eve@example.org\nSubject: Attributes\nContent-Type: text/html\n\n"
    return head + f"<p {tag}>seen</p>".encode()


def in_mbox(hostile: bytes) -> bytes:
    return GOOD % 1 + b"From eve Tue Mar  3 10:00:00 2026\n" + hostile + b"\n\n" + GOOD % 2


@pytest.mark.parametrize("hostile", [nested_mail(45_000), tag_of_many_attributes()], ids=["nested", "tag"])
def test_a_mail_made_to_end_its_parser_is_imported_with_its_text(tmp_path: Path, hostile: bytes):
    (tmp_path / "a.mbox").write_bytes(in_mbox(hostile))
    code, document, err = imported(tmp_path, "a.mbox")
    assert code in {0, 65}, err
    (report,) = document["imports"]
    assert report["streams"]["messages"]["added"] == 3
    # What is no text of a message stands in its body, as far as a body goes.
    assert {one["reason"] for one in report["rejects"]} <= {
        "The text of the message is cut after 1000000 characters."
    }


def endless_pdf() -> bytes:
    """A page of 94 kB that becomes gigabytes: a second way to write it stands behind the one that unpacks."""
    packed = zlib.compress(b"z" * 70_000_000 + b"~>", 9)
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>",
        b"<</Filter[/FlateDecode/ASCII85Decode]/Length %d>>stream\n%s\nendstream" % (len(packed), packed),
    ]
    out, places = b"%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        out
        + b"xref\n0 5\n0000000000 65535 f \n%strailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (table, len(out))
    )


def test_a_pdf_whose_page_unpacks_without_end_is_stored_without_that_page(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(endless_pdf())
    code, document, err = imported(tmp_path, "a.pdf")
    assert code == 65, err
    (report,) = document["imports"]
    assert report["rejects"] == [{"place": "a.pdf, page 1", "reason": "The page is too large."}]
    assert report["streams"]["documents"]["added"] == 1
    # The same as an attachment costs its text only.
    attached = base64.encodebytes(endless_pdf())
    head = b'From: eve@example.org\nContent-Type: application/pdf; name="a.pdf"\n'
    coded = b"Content-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n"
    (tmp_path / "b.mbox").write_bytes(in_mbox(head + coded + attached))
    code, document, err = imported(tmp_path, "b.mbox")
    assert code == 0, err
    streams = document["imports"][0]["streams"]
    assert (streams["messages"]["added"], streams["attachments"]["added"]) == (3, 1)


def endless_tar() -> bytes:
    """A header of 200 000 digits, which the standard library reads in the time of their square."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    header = tarfile.TarInfo("PaxHeader")
    header.type, digits = tarfile.XHDTYPE, b"1" * 200_000
    header.size = len(digits)
    return header.tobuf() + digits + b"\0" * (-len(digits) % 512) + content.getvalue()


def workbook(path: Path, strings: bytes, rows: int) -> None:
    """Write a workbook whose rows have a number and the first of its shared strings."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    cells = "".join(f'<row><c><v>{number}</v></c><c t="s"><v>0</v></c></row>' for number in range(rows))
    link = f'<Relationship Id="%s" Type="{office}/%s" Target="%s"/>'
    links = f'<Relationships xmlns="{package}/relationships">%s</Relationships>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/>'
        f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}.sharedStrings+xml"/></Types>',
        "_rels/.rels": links % (link % ("r1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">'
        '<sheets><sheet name="sheet" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": links
        % (
            link % ("r1", "worksheet", "worksheets/sheet1.xml")
            + link % ("r2", "sharedStrings", "sharedStrings.xml")
        ),
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>'
        f'<row><c t="inlineStr"><is><t>n</t></is></c><c t="inlineStr"><is><t>text</t></is></c></row>{cells}'
        "</sheetData></worksheet>",
        "xl/sharedStrings.xml": strings,
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as written:
        for name, content in parts.items():
            written.writestr(name, content)


def test_files_that_are_refused_are_refused_in_one_line_and_a_server_goes_on(tmp_path: Path):
    (tmp_path / "a.tar").write_bytes(endless_tar())
    workbook(tmp_path / "a.xlsx", b"", 3)
    cell = (
        '<table:table-cell table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
    )
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    (tmp_path / "cells.ods").write_bytes(ods(row))
    (tmp_path / "text.ods").write_bytes(ods(ods_row("a" * 40_000_000)))
    (tmp_path / "rows.ods").write_bytes(ods(ods_row("a" * 40_000, repeated=1_000_000)))
    reasons = {
        "a.tar": "a header of more than 65,536 bytes",
        "a.xlsx": "no element found",
        "cells.ods": "Cell limit exceeded",
        "text.ods": "would unpack to 40,00",
        "rows.ods": "rows.ods (",
    }
    for name, reason in reasons.items():
        code, _, err = imported(tmp_path, name)
        assert (code, reason in err, "Traceback" in err) == (1, True, False), err
    with served_program(tmp_path) as program:
        for name, reason in reasons.items():
            body = (tmp_path / name).read_bytes()
            path = f"/v1/imports?file_name={name}&dry_run=true"
            refused = program.ask("POST", path, program.owner, body)
            assert refused.status == 400
            assert reason in refused.body["error"]["message"]
        assert program.ask("GET", "/healthz").status == 200


def endless_parquet(path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet  # noqa: PLC0415 - an extra

    rows = arrow.array([0] * 2000, arrow.int32())
    text = arrow.DictionaryArray.from_arrays(rows, arrow.array(["word " * 200_000]))
    table = arrow.table({"n": list(range(2000)), "text": text})
    pyarrow.parquet.write_table(table, path, compression="zstd", store_schema=False)


def endless_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)")
        database.executemany("INSERT INTO t VALUES (?)", ((number,) for number in range(2000)))
        database.execute(f"ALTER TABLE t ADD COLUMN text TEXT DEFAULT '{'word ' * 40_000}'")
    database.close()


def endless_workbook(path: Path) -> None:
    main = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    workbook(path, b'<sst xmlns="%s"><si><t>%s</t></si></sst>' % (main, b"word " * 40_000), 2000)


def endless_calendar(path: Path) -> None:
    event = [
        *("BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:a", "DTSTART:20260101T000000Z", "RRULE:FREQ=HOURLY"),
        *("DESCRIPTION:" + "word " * 4000, "END:VEVENT", "END:VCALENDAR", ""),
    ]
    path.write_text("\r\n".join(event), encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("a.parquet", endless_parquet),
        pytest.param("a.sqlite", endless_database, marks=pytest.mark.soak),
        pytest.param("a.xlsx", endless_workbook, marks=pytest.mark.soak),
        pytest.param("a.ics", endless_calendar, marks=pytest.mark.soak),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_stores_no_more_than_its_size_allows_and_what_was_stored_stays(
    tmp_path: Path, name: str, write: Callable[[Path], None]
):
    write(tmp_path / name)
    size = (tmp_path / name).stat().st_size
    code, document, err = imported(tmp_path, name)
    assert code == 65, err
    (report,) = document["imports"]
    (reject,) = (one["reason"] for one in report["rejects"] if "too " in one["reason"])
    assert reject.endswith((TOO_MUCH, "The table is too large for the size of the file."))
    added = sum(one["added"] for one in report["streams"].values())
    assert added > 50
    stored = sum(path.stat().st_size for path in (tmp_path / "home").rglob("*") if path.is_file())
    # Text, its words, and the store's log: a few times what is allowed, whatever the file would hold.
    assert stored < 4 * (64 * 1024**2 + 200 * size)
    code, document, err = imported(tmp_path, name)
    assert (code, sum(one["added"] for one in document["imports"][0]["streams"].values())) == (65, 0), err
