"""PDF, Word and OpenDocument files: their text page by page, and the file itself."""

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.documents import office, pdf as pdf_module
from headgate.sources.documents.office import DocumentUnreadable
from headgate.sources.documents.pdf import read_pdf
from headgate.sources.documents.source import DOCUMENTS
from headgate.sources.mail.rows import attached_text
from headgate.sources.protocol import Certainty, Recognised, Row
from tests.sources.documents.made import (
    CHAPTER,
    OPEN,
    PACKAGE,
    RTF,
    WORD,
    archive,
    docx,
    epub,
    odt,
    pdf,
    pptx,
)
from tests.sources.reading import check_resume, input_file, only, read_all, rejects_of, rows_of, tree_from

PDF = pdf(b"The lock is closed.", b"", b"Water level \\(low\\)")
FILES = {
    "a/plan.pdf": PDF,
    "b.docx": docx(),
    "c.odt": odt(),
    "d.pptx": pptx(),
    "e.epub": epub(),
    "f.rtf": RTF,
}


def read_anyway(name, content):
    return read_all(DOCUMENTS, Recognised("documents", "x", [input_file(name, content)], Certainty.FORMAT))


def pages(items):
    return [(row["number"], row["text"]) for row in rows_of(items, "pages")]


def test_a_book_is_read_chapter_by_chapter_in_its_order():
    items = read_all(DOCUMENTS, only(DOCUMENTS, {"e.epub": epub()}))
    assert pages(items) == [(1, "Spring\n\nWater rises."), (2, "Summer\n\nWater rises.")]
    (book,) = rows_of(items, "documents")
    assert (book["title"], book["author"], book["kind"], book["page_count"]) == (
        "The canal",
        "Ines Albrecht",
        "epub",
        2,
    )


def test_rich_text_is_read_in_its_letters():
    items = read_all(DOCUMENTS, only(DOCUMENTS, {"f.rtf": RTF}))
    assert pages(items) == [(1, "Grüße from the weir.\n\u03b1 second")]
    assert attached_text("f.rtf", "application/rtf", RTF) == pages(items)[0][1]
    assert attached_text("e.epub", "application/epub+zip", epub()).startswith("Spring")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (epub(PACKAGE.replace('idref="one"', 'idref="none"')), "It is no such document: KeyError."),
        (epub(PACKAGE.replace("one.xhtml", "lost.xhtml")), "The rest is broken: KeyError."),
        (
            epub(f'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>{PACKAGE[21:]}'),
            "It is no such document: XmlRefused.",
        ),
        (archive(**{"META-INF/container.xml": "<container/>"}), "It is no such document: IndexError."),
        (epub()[:-60], "It is no such document: BadZipFile."),
        (b"PK\x03\x04", "It is no such document: BadZipFile."),
    ],
)
def test_a_book_that_is_damaged_or_hostile_ends_with_a_reason(content: bytes, reason: str):
    items = read_anyway("e.epub", content)
    assert [reject.reason for reject in rejects_of(items)] == [reason]
    assert len(rows_of(items, "documents")) == 1


def test_a_book_that_unpacks_to_more_than_a_document_has_is_cut(monkeypatch):
    monkeypatch.setattr(office, "_MAX_UNPACKED", 3 * len(CHAPTER))
    order = "".join('<itemref idref="one"/>' for _ in range(9))
    items = read_anyway("e.epub", epub(PACKAGE.replace('<itemref idref="one"/>', order)))
    assert [reject.reason for reject in rejects_of(items)] == ["It unpacks to more than a document has."]
    assert len(pages(items)) == 2


@given(st.binary(max_size=200), st.integers(0, len(RTF)))
@settings(max_examples=100, deadline=None)
def test_broken_rich_text_gives_its_text_or_a_reason(noise: bytes, at: int):
    for content in (
        RTF[:at] + noise + RTF[at:],
        b"{\\rtf1" + noise + b"\\u-99999? \\'zz \\bin9999999999 }}}}" + RTF[:at],
    ):
        assert rows_of(read_anyway("f.rtf", content), "documents")


def test_footnotes_endnotes_and_comments_of_word_stand_after_its_text():
    noted = '<w:x xmlns:w="urn:w"><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:x>'
    parts = {f"word/{name}.xml": noted.format(name[:3]) for name in ("endnotes", "comments")}
    empty = '<w:x xmlns:w="urn:w"><w:p><w:r><w:separator/></w:r></w:p></w:x>'
    content = archive(**{"word/document.xml": WORD, "word/footnotes.xml": empty, **parts})
    assert [text for _, text in pages(read_anyway("a.docx", content))][2:] == [
        "Comments\ncom",
        "Endnotes\nend",
    ]
    (reject,) = rejects_of(read_anyway("a.docx", archive(**parts)))
    assert reject.reason == "It has no text."


def test_a_pdf_is_read_page_by_page_and_attached():
    items = read_all(DOCUMENTS, only(DOCUMENTS, {"a/plan.pdf": PDF}))
    assert pages(items) == [(1, "The lock is closed."), (3, "Water level (low)")]
    (document,) = [item for item in items if isinstance(item, Row) and item.stream == "documents"]
    assert document.data == {
        "id": "a/plan.pdf",
        "title": "Gate plan",
        "author": "Aiko Mori",
        "folder": "a",
        "kind": "pdf",
        "page_count": 3,
        "size_bytes": len(PDF),
        "beginning": "The lock is closed.",
        "created_at": "2026-01-05T08:00:00+00:00",
        "modified_at": "2026-01-05T08:00:00+00:00",
    }
    assert (document.attachments["file"].content, document.attachments["file"].mime_type) == (
        PDF,
        "application/pdf",
    )
    first = rows_of(items, "pages")[0]
    assert (first["id"], first["document_id"], first["title"]) == (
        "a/plan.pdf#1",
        "a/plan.pdf",
        "Gate plan, page 1",
    )


@pytest.mark.parametrize(
    ("name", "expected", "title", "author"),
    [
        (
            "b.docx",
            [(1, "The bridge needs new planks."), (2, "Second page & last.")],
            "Bridge report",
            "Ines Albrecht",
        ),
        ("c.odt", [(1, "Weir\nGate two leaks. Mend it."), (2, "Second.")], "c", "Jonas Weiher"),
        ("d.pptx", [(1, "Slide 1"), (2, "Slide 2"), (3, "Slide 10")], "d", None),
    ],
)
def test_office_files_are_read_page_by_page(name, expected, title, author):
    items = read_all(DOCUMENTS, only(DOCUMENTS, {name: FILES[name]}))
    assert pages(items) == expected
    (document,) = rows_of(items, "documents")
    assert (document["title"], document.get("author"), document["page_count"]) == (
        title,
        author,
        len(expected),
    )
    assert rejects_of(items) == []


def test_files_that_only_have_the_name_of_a_document_are_left_alone():
    assert (
        DOCUMENTS.detect(tree_from({"a.pdf": b"hello", "b.docx": b"hello", "c.odt": b"", "d.txt": PDF})) == []
    )


def test_a_long_text_without_pages_is_given_in_pages():
    long = WORD.replace("new planks.", "x" * 50_000)
    items = read_anyway("b.docx", docx(long))
    assert sum(text.count("x") for _, text in pages(items)) == 50_000
    assert [len(text) for _, text in pages(items)] == [16, 20_000, 20_000, 10_000, 19]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("b.docx", docx(f'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>{WORD.partition("?>")[2]}')),
        ("b.docx", docx("<w>" * 10_000)),
        ("b.docx", docx(WORD[:-40])),
        ("b.docx", archive(other="x")),
        ("c.odt", odt(OPEN.replace("Weir", "&bomb;"))),
        ("a.pdf", b"%PDF-1.4\n" + b"\0" * 1000),
        ("a.pdf", PDF.replace(b"/Pages 2 0 R", b"/Pages 1 0 R")),
        ("a.pdf", PDF.replace(b"/Kids [5 0 R", b"/Kids [2 0 R")),
    ],
)
def test_a_bad_document_is_attached_with_a_reason(name, content):
    items = read_anyway(name, content)
    (document,) = rows_of(items, "documents")
    assert document["size_bytes"] == len(content)
    assert len(rejects_of(items)) >= 1


def test_a_small_file_that_unpacks_to_much_is_stopped():
    bomb = archive(**{"word/document.xml": f"<w:document xmlns:w='w'><w:t>{' ' * 70_000_000}"})
    assert len(bomb) < 1_000_000
    assert [reject.reason for reject in rejects_of(read_anyway("b.docx", bomb))] == [
        "It unpacks to more than a document has."
    ]


def test_a_file_of_nothing_but_elements_is_stopped(monkeypatch):
    monkeypatch.setattr(office, "_MAX_EVENTS", 1000)
    many = docx(WORD.replace("<w:body>", f"<w:body>{'<w:p/>' * 1000}"))
    assert [reject.reason for reject in rejects_of(read_anyway("b.docx", many))] == [
        "It has more elements than a document has."
    ]


def test_reading_again_and_from_every_mark_gives_the_same():
    check_resume(DOCUMENTS, only(DOCUMENTS, FILES))


@given(st.sampled_from(sorted(FILES)), st.data(), st.binary(max_size=10))
@settings(max_examples=80, deadline=None)
def test_cut_and_damaged_documents_are_read_without_an_exception(name, data, bad):
    content = FILES[name]
    at = data.draw(st.integers(0, len(content)))
    assert rows_of(read_anyway(name, content[:at]), "documents")
    assert rows_of(read_anyway(name, content[:at] + bad + content[at + len(bad) :]), "documents")


def test_a_page_with_very_many_instructions_is_left_out_and_the_others_are_read():
    hostile = b"before) Tj " + b"q Q " * 120_000 + b"(after"
    _, pages = read_pdf(pdf(b"First.", hostile, b"Last."))
    assert [(page.text, page.problem) for page in pages] == [
        ("First.", None),
        (None, "The page is too large."),
        ("Last.", None),
    ]


def test_a_document_with_very_many_instructions_is_read_no_further(monkeypatch):
    monkeypatch.setattr(pdf_module, "_MAX_ALL_STEPS", 8)
    _, pages = read_pdf(pdf(b"First.", b"Second.", b"Third."))
    assert [next(pages).text, next(pages).text] == ["First.", "Second."]
    with pytest.raises(DocumentUnreadable, match="too large"):
        next(pages)
