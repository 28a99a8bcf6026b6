"""What notes look like: one stream."""

from __future__ import annotations

from headgate.sources.declaring import LIST, OBJECT, TEXT, TIME, StreamSpec

NOTE_STREAM = StreamSpec(
    name="notes",
    label="Notes",
    detail="One note: a Markdown, text or HTML file with its tags and the notes it links to.",
    fields={
        "id": TEXT,
        "title": TEXT,
        "text": TEXT,
        "folder": TEXT,
        "kind": TEXT,
        "author": TEXT,
        "tags": LIST,
        "links": LIST,
        "created_at": TIME,
        "modified_at": TIME,
        "properties": OBJECT,
    },
    time="modified_at",
    title="title",
    words=("title", "text", "author"),
    groups=("folder", "kind", "author"),
    views=(
        (
            "titles",
            "Titles, folders and tags without the text",
            ("id", "title", "folder", "tags", "modified_at"),
        ),
        ("texts", "The notes without their properties", ("id", "title", "text", "folder", "modified_at")),
    ),
)
