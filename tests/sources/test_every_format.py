"""`headgate import FILE && headgate grants create ...` is all it takes, for every format that is read."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections import Counter
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.on_socket import ServedProgram, headgate, served_program
from tests.sources import (
    test_calendar as calendars,
    test_chat_imessage as imessage,
    test_chat_meta as meta,
    test_chat_slack as slack,
    test_chat_telegram as telegram,
    test_chat_whatsapp as whatsapp,
    test_contacts as contacts,
    test_conversations as conversations,
)
from tests.sources.documents.made import docx, odt, pdf, pptx
from tests.sources.git.repositories import canal
from tests.sources.history import exports
from tests.sources.mail.mails import ANSWER, LETTER, mbox
from tests.sources.mail.outlook_files import MSG
from tests.sources.money.test_money import CAMT, GERMAN, SGML, XML
from tests.sources.money.test_qif_mt940 import MT940, QIF
from tests.sources.notes import test_note_exports as exported_notes
from tests.sources.notes.test_notes import MARKDOWN
from tests.sources.workbooks import STATEMENT_XLS, ods, ods_row

THINGS = [{"id": 1, "name": "plank"}, {"id": 2, "name": "nail"}]
TABLE = "id,name\n1,plank\n2,nail\n"
#: What is given to the command, the files in it, and the connector that it becomes.
FORMATS: dict[str, tuple[dict[str, bytes | str], str]] = {
    "Inbox.mbox": ({"": mbox(LETTER, ANSWER)}, "mail"),
    "Maildir": ({"cur/1700000000.M1P1.host:2,S": LETTER, "new/1700000001.M2P1.host": ANSWER}, "mail"),
    "letters": ({"one.eml": LETTER, "two.eml": ANSWER}, "mail"),
    "letter.msg": ({"": MSG}, "mail"),
    "calendar.ics": ({"": calendars.WHOLE}, "calendar"),
    "contacts.vcf": ({"": contacts.BOOK}, "contacts"),
    "Club Slack export.zip": (dict(slack.FILES), "chat"),
    "WhatsApp Chat with Garden.txt": ({"": whatsapp.ANDROID}, "chat"),
    "telegram": ({"result.json": json.dumps(telegram.ONE)}, "chat"),
    "signal": ({"Sam Okafor/data.json": whatsapp.LINES}, "chat"),
    "chatgpt.zip": ({"conversations.json": conversations.FILES["conversations.json"]}, "conversations"),
    "claude.zip": ({"conversations.json": conversations.FILES["claude/conversations.json"]}, "conversations"),
    "projects": ({"boat/s-1.jsonl": conversations.FILES["projects/boat/s-1.jsonl"]}, "conversations"),
    "sessions": (
        {"rollout-2026-03-01-r-1.jsonl": conversations.FILES["sessions/rollout-2026-03-01-r-1.jsonl"]},
        "conversations",
    ),
    "vault": ({"bridge.md": MARKDOWN, "note.txt": "Closed.", "b.html": "<p>Open</p>"}, "notes"),
    "gate.pdf": ({"": pdf(b"The lock is closed.")}, "documents"),
    "report.docx": ({"": docx()}, "documents"),
    "report.odt": ({"": odt()}, "documents"),
    "report.pptx": ({"": pptx()}, "documents"),
    "a.csv": ({"": TABLE}, "tables"),
    "b.tsv": ({"": TABLE.replace(",", "\t")}, "tables"),
    "c.json": ({"": json.dumps(THINGS)}, "tables"),
    "d.jsonl": ({"": "".join(json.dumps(one) + "\n" for one in THINGS)}, "tables"),
    "e.db": (
        {"": exports.database("CREATE TABLE e(id INTEGER PRIMARY KEY, name); INSERT INTO e VALUES(1, 'x')")},
        "tables",
    ),
    "a.ofx": ({"": SGML}, "money"),
    "b.qfx": ({"": XML}, "money"),
    "camt.xml": ({"": CAMT}, "money"),
    "camt52.xml": ({"": CAMT.replace(b"Stmt>", b"Rpt>")}, "money"),
    "c.qif": ({"": QIF}, "money"),
    "d.sta": ({"": MT940}, "money"),
    "e.xls": ({"": STATEMENT_XLS}, "money"),
    "h.ods": ({"": ods(ods_row("id", "name") + ods_row(1, "plank"))}, "tables"),
    "i.json": ({"": json.dumps({"things": THINGS})}, "tables"),
    "bank.csv": ({"": GERMAN.encode("utf-16")}, "money"),
    "History": ({"": exports.FILES["Default/History"]}, "history-browser"),
    "StreamingHistory0.json": ({"": exports.FILES["StreamingHistory0.json"]}, "history-spotify"),
    "watch-history.json": ({"": exports.FILES["watch-history.json"]}, "history-youtube"),
    "Records.json": ({"": exports.FILES["Records.json"]}, "history-location"),
    "export.xml": ({"": exports.FILES["export.xml"]}, "history-health"),
    "MyActivity.json": ({"": exports.FILES["My Activity/Maps/MyActivity.json"]}, "history-activity"),
    "canal.gpx": ({"": exports.GPX}, "history-gpx"),
    "message_1.json": ({"": meta.FILES["messages/inbox/zoe_1/message_1.json"]}, "chat"),
    "Shopping.json": ({"": exported_notes.FILES["Takeout/Keep/Shopping.json"]}, "notes"),
    "Canal.enex": ({"": exported_notes.FILES["Canal.enex"]}, "notes"),
}


def as_bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content


def written(place: Path, name: str, files: dict[str, bytes | str]) -> None:
    if name.endswith(".zip"):
        with zipfile.ZipFile(place / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        return
    for path, content in files.items():
        full = place / name / path if path else place / name
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(as_bytes(content))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("formats")
    for name, (files, _) in FORMATS.items():
        written(made, name, files)
    imessage.database(made / "chat.db")
    parquet.write_table(pa.table({"id": [1, 2], "name": ["plank", "nail"]}), made / "f.parquet")
    book = openpyxl.Workbook()
    for row in (["id", "name"], [1, "plank"]):
        book.active.append(row)
    book.save(made / "g.xlsx")
    canal(made)
    return made


def read_by(program: ServedProgram, token: str, report: dict) -> list[dict]:
    """Read a record of every stream that an import filled, with the token of the agent."""
    found: list[dict] = []
    for stream in (name for name, count in report["streams"].items() if count["accepted"]):
        path = f"/v1/streams/{stream}/records?limit=1&connection_id={report['connection_id']}"
        found += program.ask("GET", path, token).body["data"]
    return found


def test_an_agent_reads_what_was_imported_of_every_format(place: Path):
    others = {"chat.db": "chat", "f.parquet": "tables", "g.xlsx": "tables", "canal": "git"}
    expected = {name: connector for name, (_, connector) in FORMATS.items()} | others
    with served_program(place) as program:
        # Some of the samples have a line that is rejected.
        done = headgate(place, "--home", "home", "import", *expected, "--yes", "--json")
        assert done.code == 65, done.err
        shown = json.loads(done.out)
        # Of a repository the commits are read, not the files that are checked out.
        unknown = (one.partition(" (")[0] for one in shown["unknown_files"])
        assert [one for one in unknown if not (place / "canal" / one).exists()] == []
        keys = [re.sub(r"^tables-.*", "tables", report["connector_key"]) for report in shown["imports"]]
        assert Counter(keys) == Counter(expected.values())
        token = program.run(*shlex.split(shown["next"])[3:])["access_token"]
        for report in shown["imports"]:
            assert read_by(program, token, report), report
