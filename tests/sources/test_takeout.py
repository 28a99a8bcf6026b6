"""A Google Takeout is one command: the zip as it comes, and a later one adds only what is new."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from tests.on_socket import headgate
from tests.sources import test_calendar as calendars, test_contacts as contacts
from tests.sources.documents.made import pdf
from tests.sources.history import exports
from tests.sources.mail.mails import ANSWER, LETTER, mbox
from tests.sources.mail.outlook_files import MSG
from tests.sources.notes import test_note_exports as exported_notes

#: Mail in which no server noted to whom it was delivered, as Gmail exports it.
SENT, ANSWERED = (
    b"X-GM-THRID: 18\nX-Gmail-Labels: Inbox\n" + raw.replace(b"Delivered-To", b"X-Was")
    for raw in (LETTER, ANSWER)
)
#: What a Takeout has in the format that it proposes.
PAGE = (
    b'<html><head><title>My Activity</title></head><body><div class="outer-cell mdl-cell mdl-cell--12-col">'
)
EVERYTHING = {
    "archive_browser.html": b"<html>What is in here</html>",
    "Mail/All mail Including Spam and Trash.mbox": mbox(SENT),
    "Mail/User Settings/Blocked Addresses.json": b'{"blocked_addresses": []}',
    "Calendar/ada@example.org.ics": calendars.WHOLE.encode(),
    "Contacts/My Contacts/My Contacts.vcf": contacts.BOOK.encode(),
    "Contacts/All Contacts/All Contacts.vcf": contacts.BOOK.encode(),
    "Chrome/History.json": exports.FILES["Chrome/History.json"],
    "YouTube and YouTube Music/history/watch-history.json": exports.FILES["watch-history.json"],
    "Location History (Timeline)/Records.json": exports.FILES["Records.json"],
    "Drive/gate.pdf": pdf(b"The lock is closed."),
    "Drive/planks.csv": b"id,length\n1,2.5\n2,3.5\n",
    "Keep/Shopping.json": exported_notes.FILES["Takeout/Keep/Shopping.json"].encode(),
    "Keep/Shopping.html": b"<html>For the bridge</html>",
    "My Activity/Maps/MyActivity.json": exports.FILES["My Activity/Maps/MyActivity.json"],
    "Google Photos/a.jpg": b"\xff\xd8\xff",
    "Google Photos/a.jpg.supplemental-metadata.json": b'{"photoTakenTime": {}, "people": [{"name": "Ada"}]}',
    "My Activity/Search/MyActivity.html": PAGE,
    "YouTube and YouTube Music/history/search-history.html": PAGE,
    "Google Pay/Google transactions/transactions_1.csv": b"Time,Description,Amount\n"
    b'"Mar 1, 2026, 5:03:12 PM",Cloud storage,USD 1.99\n"Apr 1, 2026, 5:03:12 PM",Cloud storage,USD 1.99\n',
    "Chrome/Autofill.json": b'{"Autofill": []}',
    "Drive/Plan.gdoc": b'{"url": "https://docs.google.com/x"}',
    "Drive/old.doc": b"\xd0\xcf\x11\xe0",
    "Drive/letter.msg": MSG,
}
JSON = "a page of Google Takeout; order the copy again and choose the format JSON"
NEW = {
    "YouTube history": {"watched_videos": 1, "searches": 1},
    "Browser history": {"visits": 1},
    "Location history": {"positions": 2},
    "Mail from Takeout": {"messages": 2, "threads": 2, "attachments": 3},
    "Takeout: transactions_1": {"transactions_1": 2},
    "Calendar: Takeout": {"events": 7, "tasks": 1},
    "Contacts: Takeout": {"contacts": 4},
    "Documents: Takeout": {"documents": 1, "pages": 1},
    "Takeout: planks": {"planks": 2},
    "Google Keep": {"notes": 1},
    "Google activity: Maps": {"activities": 2},
}


def added(place: Path, name: str, files: dict[str, bytes]) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Import an archive; gives the new records of each connection, and the files that nothing read."""
    with zipfile.ZipFile(place / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(f"Takeout/{path}", content)
    done = headgate(place, "--home", "home", "import", "--yes", "--json", name)
    assert done.code in {0, 65}, done.err
    report = json.loads(done.out)
    counts = {
        one["display_name"]: {
            stream: count["added"] for stream, count in one["streams"].items() if count["added"]
        }
        for one in report["imports"]
    }
    return counts, report["unknown_files"]


def test_a_takeout_is_taken_whole_and_a_later_one_adds_only_what_is_new(tmp_path: Path):
    first, unknown = added(tmp_path, "takeout-20260301T100000Z-001.zip", EVERYTHING)
    assert first == NEW
    assert unknown == [
        "Takeout/Chrome/Autofill.json (no list of records)",
        "Takeout/Drive/Plan.gdoc (a link to a document of Google; download it as Word, Excel or PDF)",
        "Takeout/Drive/old.doc (an old document of Office; save it as PDF, or in the newer format ending in x)",
        "Takeout/Google Photos/a.jpg (a picture; only text is read)",
        (
            "Takeout/Google Photos/a.jpg.supplemental-metadata.json"
            " (what Google Photos notes of a picture; only text is read)"
        ),
        "Takeout/Keep/Shopping.html (the same note as in the .json file beside it)",
        "Takeout/Mail/User Settings/Blocked Addresses.json (no list of records)",
        f"Takeout/My Activity/Search/MyActivity.html ({JSON})",
        f"Takeout/YouTube and YouTube Music/history/search-history.html ({JSON})",
        "Takeout/archive_browser.html (the list of what is in the archive)",
    ]
    later = EVERYTHING | {"Mail/All mail Including Spam and Trash.mbox": mbox(SENT, ANSWERED)}
    second, _ = added(tmp_path, "takeout-20260401T100000Z-1-002 (1).zip", later)
    assert second.pop("Mail from Takeout") == {"messages": 1}
    assert not any(second.values())
    listed = json.loads(headgate(tmp_path, "--home", "home", "sources", "list", "--json").out)
    assert len(listed["connections"]) == len(NEW)
