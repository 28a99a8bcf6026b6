"""Notes that Google Keep and Evernote exported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.formats.texts import MAX_TEXT
from headgate.sources.notes import NOTES
from headgate.sources.planning import detect
from headgate.sources.protocol import Certainty, Recognised
from headgate.sources.registry import BUILT_IN
from tests.sources.reading import check_resume, input_file, only, read_all, rejects_of, rows_of, tree_from
from tests.sources.source_checks import hostile

KEEP = {
    "color": "RED",
    "isTrashed": False,
    "isPinned": True,
    "isArchived": False,
    "textContent": "For the bridge",
    "listContent": [{"text": "planks", "isChecked": True}, {"text": "nails", "isChecked": False}],
    "title": "Shopping",
    "labels": [{"name": "boat"}],
    "annotations": [{"url": "https://wood.example/", "source": "WEBLINK"}],
    "userEditedTimestampUsec": 1772352000000000,
    "createdTimestampUsec": 1772265600000000,
}
ENEX = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20260301T080000Z" application="Evernote">
<note><title>Weir &amp; gate</title><created>20260301T080000Z</created><updated>20260302T090000Z</updated><tag>canal</tag>
<tag>work</tag><note-attributes><author>Ines</author><source-url>https://weir.example/</source-url></note-attributes>
<content><![CDATA[<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "x"><en-note><div>Level <b>low</b></div>
<div><en-todo checked="true"/>mend</div><div><en-todo/>paint</div></en-note>]]></content>
<resource><data encoding="base64">AAAA</data><mime>image/png</mime></resource></note>
<note><title>Weir &amp; gate</title><content><![CDATA[<en-note>two</en-note>]]></content></note></en-export>"""
FILES = {"Takeout/Keep/Shopping.json": json.dumps(KEEP), "Canal.enex": ENEX}


def read_anyway(name: str, content: str):
    file = input_file(name, content.encode())
    return read_all(NOTES, Recognised("notes", "x", [file], Certainty.FORMAT))


def test_a_note_of_keep_is_read_with_its_list_and_its_page_is_no_second_one():
    files = {
        "Takeout/Keep/Shopping.json": json.dumps(KEEP).encode(),
        "Takeout/Keep/Shopping.html": b"<p>For the bridge",
    }
    (found,) = detect(tree_from(files), BUILT_IN)
    assert (found.source, found.title) == ("notes", "Google Keep")
    assert rows_of(read_all(NOTES, found)) == [
        {
            "id": "keep/Shopping",
            "title": "Shopping",
            "text": "For the bridge\n[x] planks\n[ ] nails",
            "kind": "keep",
            "tags": ["boat"],
            "links": ["https://wood.example/"],
            "created_at": "2026-02-28T08:00:00Z",
            "modified_at": "2026-03-01T08:00:00Z",
            "properties": {"color": "RED", "isPinned": True, "isArchived": False, "isTrashed": False},
        }
    ]
    untitled = json.dumps({**KEEP, "title": "", "listContent": []}).encode()
    (row,) = rows_of(read_all(NOTES, only(NOTES, {"a.json": untitled})))
    assert row["title"] == "For the bridge"


def test_notes_of_evernote_are_read_with_their_tags_and_boxes():
    items = read_all(NOTES, only(NOTES, {"Canal.enex": ENEX.encode()}))
    first, second = rows_of(items)
    assert {**first, "id": ""} == {
        "id": "",
        "title": "Weir & gate",
        "text": "Level low\n[x] mend\n[ ] paint",
        "folder": "Canal",
        "kind": "evernote",
        "author": "Ines",
        "tags": ["canal", "work"],
        "links": ["https://weir.example/"],
        "created_at": "2026-03-01T08:00:00Z",
        "modified_at": "2026-03-02T09:00:00Z",
    }
    assert (second["title"], second["text"], second["id"] != first["id"]) == ("Weir & gate", "two", True)
    assert rejects_of(items) == []


def test_exports_of_notes_are_connections_beside_the_notes_of_a_person():
    files = {**{name: content.encode() for name, content in FILES.items()}, "mine.md": b"# Mine"}
    assert {found.title: len(found.files) for found in NOTES.detect(tree_from(files))} == {
        "Google Keep": 1,
        "Evernote": 1,
        "Notes: export": 1,
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (ENEX.replace('dtd">', 'dtd" [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'), "entities"),
        (
            ENEX.replace(
                'SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd"',
                '[<!ENTITY x SYSTEM "file:///etc/passwd">]',
            ),
            "entities",
        ),
        (ENEX[:-200], "broken"),
        ("<en-export>" + "<note>" * 1000, "deeper"),
        (ENEX.replace("two", "word " * (MAX_TEXT // 5 + 10)), "first"),
    ],
)
def test_hostile_and_damaged_exports_of_evernote_end_with_a_reason(content: str, reason: str):
    (reject,) = rejects_of(read_anyway("a.enex", content))
    assert reason in reject.reason


@pytest.mark.parametrize("name", FILES)
def test_reading_again_and_from_every_mark_gives_the_same(name: str):
    check_resume(NOTES, only(NOTES, {name: FILES[name].encode()}))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(FILES)))
def test_broken_exports_give_rows_that_can_be_stored_or_rejects(data, name: str):
    content = data.draw(hostile(FILES[name].encode()))
    for found in NOTES.detect(tree_from({name: content})):
        read_all(NOTES, found)
