"""A file of each source for `bench/importing.py`, and the library that reads such files, without anything around it."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import subprocess  # noqa: TID251 - git makes its own repository
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

import ijson
import yaml

from headgate.sources.formats.content_lines import components, content_line

_FRONT_MATTER = re.compile(r"---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ImportKind:
    """One kind of file."""

    #: Makes a file, or a directory, with so many records.
    make: Callable[[int, Path], Path]
    #: Reads it with the parser alone; gives how much it found.
    parse: Callable[[Path], int]


def _day(n: int) -> str:
    return f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}"


def _texts(name: str, head: str, text: Callable[[int], str], tail: str = "") -> Callable[[int, Path], Path]:
    """Make a file of one text for each record."""

    def make(rows: int, place: Path) -> Path:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + "".join(map(text, range(rows))) + tail, encoding="utf-8")
        return path

    return make


def _json(
    name: str, one: Callable[[int], Any], around: Callable[[list[Any]], Any]
) -> Callable[[int, Path], Path]:
    def make(rows: int, place: Path) -> Path:
        path = place / name
        path.write_text(json.dumps(around([one(n) for n in range(rows)])), encoding="utf-8")
        return path

    return make


def _counted(found: Iterable[object]) -> int:
    return sum(1 for _ in found)


# Tables


def _table_row(n: int) -> tuple[int, str, float, str, str]:
    return n, f"name{n % 100}", round(n / 7, 2), _day(n), f"the bridge over the canal number {n}"


_COLUMNS = ("id", "name", "amount", "day", "text")


def _parse_csv(path: Path) -> int:
    with path.open(encoding="utf-8", newline="") as file:
        return _counted(csv.reader(file))


def _parse_lines(path: Path) -> int:
    with path.open("rb") as file:
        return _counted(map(json.loads, file))


def _make_database(rows: int, place: Path) -> Path:
    path = place / "bench.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE things(id INTEGER PRIMARY KEY, name TEXT, amount REAL, day TEXT, text TEXT)"
        )
        database.executemany("INSERT INTO things VALUES(?, ?, ?, ?, ?)", map(_table_row, range(rows)))
    database.close()
    return path


def _parse_database(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return _counted(database.execute("SELECT * FROM things"))
    finally:
        database.close()


def _make_workbook(rows: int, place: Path) -> Path:
    from openpyxl import Workbook  # noqa: PLC0415 - slow to import

    # Not write_only: that leaves out the size of the sheet, which every spreadsheet program writes.
    book = Workbook()
    sheet: Any = book.active
    for row in (_COLUMNS, *map(_table_row, range(rows))):
        sheet.append(list(row))
    book.save(place / "bench.xlsx")
    return place / "bench.xlsx"


def _parse_workbook(path: Path) -> int:
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to import

    book = load_workbook(path, read_only=True, data_only=True)
    return _counted(book.worksheets[0].iter_rows(values_only=True))


def _make_parquet(rows: int, place: Path) -> Path:
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415 - the same

    columns = zip(*map(_table_row, range(rows)), strict=True)
    table = {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}
    parquet.write_table(pa.table(table), place / "bench.parquet")
    return place / "bench.parquet"


def _parse_parquet(path: Path) -> int:
    from pyarrow import parquet  # noqa: PLC0415 - slow to import

    return sum(len(batch.to_pylist()) for batch in parquet.ParquetFile(path).iter_batches())


# Mail, calendars, contacts


def _mail(n: int) -> str:
    return (
        f"From a@example.org Thu Jan  1 00:00:00 2026\nFrom: Name {n % 50} <a{n % 50}@example.org>\n"
        f"To: b@example.org\nSubject: number {n}\nMessage-ID: <{n}@example.org>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\n"
        f"MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n"
        + f"The planks of bridge {n} are due.\n" * 20
        + "\n"
    )


def _parse_mail(path: Path) -> int:
    from fast_mail_parser import parse_email  # noqa: PLC0415 - an extra

    return _counted(parse_email(raw) for raw in path.read_bytes().split(b"\nFrom "))


def _parse_content_lines(path: Path) -> int:
    with path.open("rb") as file:
        wanted = frozenset({"VEVENT", "VCARD"})
        return _counted(content_line(line) for one in components(file, wanted) for line in one.lines)


def _event(n: int) -> str:
    return (
        f"BEGIN:VEVENT\nUID:e{n}\nDTSTAMP:20260301T080000Z\nDTSTART;TZID=Europe/Berlin:{_day(n).replace('-', '')}T100000\n"
        f"DTEND;TZID=Europe/Berlin:{_day(n).replace('-', '')}T110000\nSUMMARY:Meeting {n}\nLOCATION:Hall {n % 9}\n"
        f"ATTENDEE;CN=Ada:mailto:ada@example.org\nEND:VEVENT\n"
    )


def _card(n: int) -> str:
    return f"BEGIN:VCARD\nVERSION:3.0\nUID:u{n}\nFN:Name {n}\nEMAIL:a{n}@example.org\nTEL:+49 30 {n}\nEND:VCARD\n"


# Chats and conversations


def _telegram(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "type": "message",
        "date": f"{_day(n)}T10:00:00",
        "date_unixtime": str(1_772_355_600 + n),
        "from": f"Name {n % 5}",
        "from_id": f"user{n % 5}",
        "text": f"The planks of bridge {n} are due.",
    }


def _chatgpt(n: int) -> dict[str, Any]:
    nodes = [(f"n{at}", f"n{at - 1}" if at else None, [f"n{at + 1}"] if at < 9 else []) for at in range(10)]
    mapping = {
        own: {
            "id": own,
            "parent": parent,
            "children": children,
            "message": {
                "id": own,
                "author": {"role": "user" if at % 2 else "assistant"},
                "create_time": 1_772_355_600.0 + at,
                "content": {"content_type": "text", "parts": [f"What is due at bridge {n}?"]},
            },
        }
        for at, (own, parent, children) in enumerate(nodes)
    }
    about = {"title": f"Bridge {n}", "id": f"c{n}", "create_time": 1_772_355_600.0, "current_node": "n9"}
    return {**about, "mapping": mapping}


def _parse_json(path: str) -> Callable[[Path], int]:
    def parse(file: Path) -> int:
        with file.open("rb") as content:
            return _counted(ijson.items(content, path, use_float=True))

    return parse


# Notes, documents


def _make_notes(rows: int, place: Path) -> Path:
    for n in range(rows):
        text = (
            f"---\ntags: [bridge, canal]\ncreated: {_day(n)}\n---\n# Bridge {n}\n\n"
            + f"See [[Bridge {n + 1}]].\n" * 20
        )
        directory = place / "notes" / str(n % 50)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{n}.md").write_text(text, encoding="utf-8")
    return place / "notes"


def _parse_notes(path: Path) -> int:
    texts = (one.read_text(encoding="utf-8") for one in path.rglob("*.md"))
    return _counted(yaml.safe_load(found[1]) for text in texts if (found := _FRONT_MATTER.match(text)))


def _make_documents(rows: int, place: Path) -> Path:
    (place / "documents").mkdir()
    for n in range(max(rows // 20, 1)):
        lines = "".join(f"0 -14 Td (The planks of bridge {n} are due, line {at}.) Tj\n" for at in range(40))
        (place / "documents" / f"{n}.pdf").write_bytes(_pdf(f"BT /F1 12 Tf 50 800 Td\n{lines}ET".encode()))
    return place / "documents"


def _pdf(stream: bytes) -> bytes:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> /MediaBox [0 0 595 842] >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    content, places = b"%PDF-1.4\n", list[int]()
    for number, one in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % at for at in places)
    return (
        content
        + b"xref\n0 6\n0000000000 65535 f \n%strailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
        % (table, len(content))
    )


def _parse_documents(path: Path) -> int:
    from pypdf import PdfReader  # noqa: PLC0415 - an extra

    return _counted(page.extract_text() for one in path.glob("*.pdf") for page in PdfReader(one).pages)


# Money, histories


def _payment(n: int) -> str:
    day = ".".join(reversed(_day(n).split("-")))
    return f"{day};Bäckerei {n % 50};Brot Nummer {n};-{n % 90 + 1},50;EUR\n"


def _entry(n: int) -> str:
    return (
        f'<Ntry><NtryRef>{n}</NtryRef><Amt Ccy="EUR">{n % 90}.50</Amt><CdtDbtInd>DBIT</CdtDbtInd>'
        f"<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>{_day(n)}</Dt></BookgDt><NtryDtls><TxDtls><RmtInf><Ustrd>Bread {n}</Ustrd>"
        f"</RmtInf></TxDtls></NtryDtls></Ntry>\n"
    )


_CAMT_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">'
    "<BkToCstmrStmt><Stmt><Id>1</Id><Acct><Id><IBAN>DE02120300000000202051</IBAN></Id></Acct>\n"
)


def _measurement(n: int) -> str:
    return (
        '<Record type="HKQuantityTypeIdentifierStepCount" sourceName="Phone" unit="count" '
        f'startDate="{_day(n)} 09:00:00 +0100" endDate="{_day(n)} 09:10:00 +0100" value="{n}"/>\n'
    )


def _parse_xml(path: Path) -> int:
    count = 0

    def start(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.CharacterDataHandler = lambda _text: None
    with path.open("rb") as content:
        parser.ParseFile(content)
    return count


def _listen(n: int) -> dict[str, Any]:
    played = f"{_day(n)} 10:{n % 60:02}"
    return {"endTime": played, "artistName": f"The Sluices {n % 50}", "trackName": f"Gate {n}", "msPlayed": n}


# Commits


def _make_repository(rows: int, place: Path) -> Path:
    """Let git make a repository in which each commit changes a file."""
    path = place / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True)  # noqa: S603, S607
    text = "".join(
        f"commit refs/heads/main\ncommitter Ada <ada@example.org> {1_772_355_600 + n} +0000\ndata 8\nchange {n % 10}\n"
        f"M 644 inline file{n % 50}\ndata {len(str(n))}\n{n}\n\n"
        for n in range(rows)
    )
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=text.encode(), check=True)  # noqa: S603, S607
    subprocess.run(["git", "-C", str(path), "reset", "-q", "--hard"], check=True)  # noqa: S603, S607
    return path


def _parse_repository(path: Path) -> int:
    from dulwich.repo import Repo  # noqa: PLC0415 - an extra

    with Repo(str(path)) as repository:
        return sum(len(entry.changes()) for entry in repository.get_walker())


KINDS: dict[str, ImportKind] = {
    "csv": ImportKind(
        _texts("bench.csv", ",".join(_COLUMNS) + "\n", lambda n: ",".join(map(str, _table_row(n))) + "\n"),
        _parse_csv,
    ),
    "jsonl": ImportKind(
        _texts("b.jsonl", "", lambda n: json.dumps(dict(zip(_COLUMNS, _table_row(n), strict=True))) + "\n"),
        _parse_lines,
    ),
    "sqlite": ImportKind(_make_database, _parse_database),
    "excel": ImportKind(_make_workbook, _parse_workbook),
    "parquet": ImportKind(_make_parquet, _parse_parquet),
    "mail": ImportKind(_texts("bench.mbox", "", _mail), _parse_mail),
    "calendar": ImportKind(
        _texts("bench.ics", "BEGIN:VCALENDAR\nVERSION:2.0\n", _event, "END:VCALENDAR\n"), _parse_content_lines
    ),
    "contacts": ImportKind(_texts("bench.vcf", "", _card), _parse_content_lines),
    "chat": ImportKind(
        _json(
            "result.json",
            _telegram,
            lambda all_: {"name": "A", "type": "personal_chat", "id": 1, "messages": all_},
        ),
        _parse_json("messages.item"),
    ),
    "conversations": ImportKind(
        lambda rows, place: _json("conversations.json", _chatgpt, list)(rows // 10, place),
        _parse_json("item"),
    ),
    "notes": ImportKind(_make_notes, _parse_notes),
    "documents": ImportKind(_make_documents, _parse_documents),
    "bank-csv": ImportKind(
        _texts("bank.csv", "Buchungstag;Empfänger;Verwendungszweck;Betrag;Währung\n", _payment), _parse_csv
    ),
    "camt": ImportKind(
        _texts("camt.xml", _CAMT_HEAD, _entry, "</Stmt></BkToCstmrStmt></Document>"), _parse_xml
    ),
    "spotify": ImportKind(_json("StreamingHistory0.json", _listen, list), _parse_json("item")),
    "health": ImportKind(_texts("export.xml", "<HealthData>\n", _measurement, "</HealthData>"), _parse_xml),
    "git": ImportKind(_make_repository, _parse_repository),
}
