"""A folder of notes: what is read of Markdown, text and HTML, and of what only looks like them."""

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.notes import MAX_NOTE_BYTES, NOTES
from headgate.sources.protocol import Certainty, Recognised
from tests.sources.reading import check_resume, input_file, only, read_all, rejects_of, rows_of, tree_from

MARKDOWN = """---
title: Planks for the bridge
tags: [bridge, wood work]
author: Ines Albrecht
created: 2026-02-01
updated: 2026-02-03 10:30:00
cost: 12.5
---

# Another heading

See [[Mill|the mill]], ![[plan.png]], [[Weir#Gate]] and [the boat](boats/list.md#hull). #repair/urgent

```python
# not a heading
x = "[[not a link]]"  #nottag
```
"""
HTML = """<html><head><title>Lock&amp;Gate</title><style>p {}</style><script>alert(1)</script></head>
<body><h1>Gate</h1><p>The <b>upper</b> gate<br>leaks.</p></body></html>"""
FILES = {"a/bridge.md": MARKDOWN.encode(), "b.txt": "Grüße".encode("latin-1"), "c.html": HTML.encode()}


def notes(files):
    return {row["id"]: row for row in rows_of(read_all(NOTES, only(NOTES, files)))}


def read_anyway(name, content):
    return read_all(NOTES, Recognised("notes", "x", [input_file(name, content)], Certainty.FORMAT))


def test_a_folder_of_notes_is_read():
    found = notes(FILES)
    text = found["a/bridge.md"].pop("text")
    assert text.startswith("# Another heading")
    assert found["a/bridge.md"] == {
        "id": "a/bridge.md",
        "title": "Planks for the bridge",
        "folder": "a",
        "kind": "markdown",
        "author": "Ines Albrecht",
        "tags": ["bridge", "wood work", "repair/urgent"],
        "links": ["Mill", "plan.png", "Weir", "boats/list.md"],
        "created_at": "2026-02-01T00:00:00Z",
        "modified_at": "2026-02-03T10:30:00Z",
        "properties": {
            "title": "Planks for the bridge",
            "tags": ["bridge", "wood work"],
            "author": "Ines Albrecht",
            "created": "2026-02-01",
            "updated": "2026-02-03T10:30:00",
            "cost": 12.5,
        },
    }
    assert found["b.txt"] == {
        "id": "b.txt",
        "title": "b",
        "text": "Grüße",
        "kind": "text",
        "modified_at": "2026-03-01T08:00:00Z",
    }
    assert (found["c.html"]["title"], found["c.html"]["text"]) == (
        "Lock&Gate",
        "Gate\n\nThe upper gate\nleaks.",
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Heading #\n", "Heading"),
        ("Text\n\n# Second\n", "name"),
        ("## Shiny new things\n\n- a\n", "name"),
        ("\n# C#\ntext", "C#"),
        ("#tag of mine\n", "name"),
        ("Under\n=====\n", "Under"),
        ("no heading", "name"),
        ("", "name"),
        ("---\ntitle: 12\n---\n# Real", "Real"),
        ("+++\ntitle = 'Toml'\n+++\nx", "Toml"),
        ("---\n---\n# Empty", "Empty"),
        ("---\n\nA rule, and prose: no properties\n\n---\n# Prose", "Prose"),
    ],
)
def test_the_title_is_the_property_or_the_heading_that_begins_the_note_or_the_name(text, title):
    assert notes({"name.md": text.encode()})["name.md"]["title"] == title


def test_text_and_pages_are_left_out_where_another_program_has_its_data():
    export = {"chat.html": b"<p>x", "conversations.json": b"[]", "readme.txt": b"x"}
    assert NOTES.detect(tree_from(export)) == []
    (found,) = NOTES.detect(tree_from({**export, "note.md": b"x"}))
    assert [file.name for file in found.files] == ["note.md"]
    assert NOTES.detect(tree_from({"a.txt": b"x", "a.png": b"x"}))[0].certainty is Certainty.GENERIC


@pytest.mark.parametrize("other", ["b.csv", "b.ogg", "b.xlsx", "b.mov"])
def test_text_and_pages_beside_tables_and_recordings_are_notes(other: str):
    (found,) = NOTES.detect(tree_from({"a.txt": b"x", "c.html": b"<p>x", other: b"x,y"}))
    assert {file.name for file in found.files} == {"a.txt", "c.html"}


@pytest.mark.parametrize(
    "properties",
    [
        "a: &x [1,1]\nb: [*x,*x]",
        "a: " + "[" * 200 + "]" * 200,
        "a: [unclosed",
        "a: !!python/object/apply:os.system ['true']",
        "date: 2026-13-45",
        "a: " + "9" * 5000,
        "? [1, 2]\n: 3\n? {a: b}\n: 4",
    ],
)
def test_properties_that_cannot_be_read_stay_in_the_text(properties):
    items = read_anyway("a.md", f"---\n{properties}\n---\n# Note".encode())
    (row,) = rows_of(items)
    assert row["title"] == "Note"
    assert len(rejects_of(items)) == 1
    assert "---" in row["text"]


def test_properties_that_json_cannot_hold_are_left_out():
    odd = "a: .inf\nb: .nan\nc: 99999999999999999999999\nd: 2026-03-01\ne: !!binary aGk=\nf: !!set {x, y}\n1: one"
    (row,) = rows_of(read_anyway("a.md", f"---\n{odd}\n---\n".encode()))
    (letters,) = [row["properties"].pop("f")]
    assert sorted(letters) == ["x", "y"]
    assert {name: value for name, value in row["properties"].items() if value is not None} == {
        "d": "2026-03-01",
        "1": "one",
    }


def test_a_note_that_is_too_long_is_cut():
    items = read_anyway("a.txt", b"x" * (MAX_NOTE_BYTES + 5))
    assert len(rejects_of(items)) == 1
    assert len(rows_of(items)) == 1


@pytest.mark.parametrize(("tag", "text"), [("div", "Deep\n\nwords"), ("b", "Deepwords"), ("a", "Deepwords")])
def test_a_page_of_nothing_but_depth_is_read_without_a_tree(tag, text):
    (row,) = rows_of(read_anyway("a.html", f"<title>Deep</title>{f'<{tag}>' * 100_000}words".encode()))
    assert (row["title"], row["text"]) == ("Deep", text)


def test_reading_again_and_from_every_mark_gives_the_same():
    check_resume(NOTES, only(NOTES, FILES))


@given(st.sampled_from(sorted(FILES)), st.data(), st.binary(max_size=20))
@settings(max_examples=150, deadline=None)
def test_cut_and_damaged_notes_are_read_without_an_exception(name, data, bad):
    content = FILES[name]
    at = data.draw(st.integers(0, len(content)))
    assert rows_of(read_anyway(name, content[:at]))
    assert rows_of(read_anyway(name, content[:at] + bad + content[at:]))


@given(st.text())
@settings(deadline=None)
def test_no_properties_break_the_reading(text):
    assert rows_of(read_anyway("a.md", f"---\n{text}\n---\n".encode("utf-8", "surrogatepass")))
