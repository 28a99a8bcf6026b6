"""Small documents, made from their parts."""

from __future__ import annotations

import io
import zipfile

WORD = """<?xml version="1.0"?><w:document xmlns:w="urn:w"><w:body>
<w:p><w:r><w:t>The bridge needs</w:t><w:tab/><w:t xml:space="preserve">new planks.</w:t></w:r></w:p>
<w:p><w:del><w:r><w:delText>removed</w:delText></w:r></w:del><w:r><w:br w:type="page"/></w:r></w:p>
<w:p><w:r><w:lastRenderedPageBreak/><w:t>Second page &amp; last.</w:t></w:r></w:p></w:body></w:document>"""
CORE = """<?xml version="1.0"?><cp:coreProperties xmlns:cp="urn:cp" xmlns:dc="urn:dc" xmlns:t="urn:t">
<dc:title>Bridge report</dc:title><dc:creator>Ines Albrecht</dc:creator>
<t:created>2026-01-02T08:00:00Z</t:created><t:modified>2026-01-03T08:00:00Z</t:modified></cp:coreProperties>"""
OPEN = """<?xml version="1.0"?><o:document-content xmlns:o="urn:o" xmlns:text="urn:t"><o:body><o:text>
<text:tracked-changes><text:p>removed</text:p></text:tracked-changes>
<text:h>Weir</text:h><text:p>Gate <text:span>two</text:span> leaks.<text:s/>Mend it.</text:p>
<text:soft-page-break/><text:p>Second.</text:p></o:text></o:body></o:document-content>"""
META = """<?xml version="1.0"?><o:document-meta xmlns:o="urn:o" xmlns:m="urn:m" xmlns:dc="urn:dc"><o:meta>
<m:initial-creator>Jonas Weiher</m:initial-creator><dc:date>2026-02-03T10:00:00</dc:date></o:meta></o:document-meta>"""
SLIDE = '<p:sld xmlns:p="urn:p" xmlns:a="urn:a"><a:p><a:r><a:t>Slide {}</a:t></a:r></a:p></p:sld>'


def archive(**parts: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name, text)
    return content.getvalue()


def docx(document: str = WORD) -> bytes:
    return archive(**{"word/document.xml": document, "docProps/core.xml": CORE})


def odt(content: str = OPEN) -> bytes:
    return archive(**{"content.xml": content, "meta.xml": META})


CONTAINER = """<?xml version="1.0"?><container xmlns="urn:c"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?><package xmlns="urn:p" xmlns:dc="urn:dc"><metadata><dc:title>The canal</dc:title>
<dc:creator>Ines Albrecht</dc:creator><dc:date>2026-01-02</dc:date></metadata><manifest>
<item id="two" href="text/two.xhtml"/><item id="one" href="text/chapter%20one.xhtml"/></manifest>
<spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
CHAPTER = """<?xml version="1.0"?><!DOCTYPE html><html xmlns="urn:x"><head><title>x</title></head>
<body><h1>{}</h1><p>Water&nbsp;rises.</p></body></html>"""
RTF = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 Gr\'fc\'dfe from the \b weir\b0 .\par \u945? second}"
)


def epub(package: str = PACKAGE, **parts: str) -> bytes:
    chapters = {"chapter one": "Spring", "two": "Summer"}
    pages = {f"OEBPS/text/{name}.xhtml": CHAPTER.format(title) for name, title in chapters.items()}
    return archive(**{"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": package, **pages, **parts})


def pptx() -> bytes:
    return archive(**{f"ppt/slides/slide{n}.xml": SLIDE.format(n) for n in (1, 10, 2)})


def pdf(
    *pages: bytes, info: bytes = b"/Title (Gate plan) /Author (Aiko Mori) /CreationDate (D:20260105080000Z)"
) -> bytes:
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for text in pages:
        drawn = b"BT /F1 12 Tf 10 100 Td (%s) Tj ET" % text
        parts.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn))
        font = b"/Resources << /Font << /F1 3 0 R >> >>"
        parts.append(b"<< /Type /Page /Parent 2 0 R %s /Contents %d 0 R >>" % (font, len(parts)))
        kids.append(b"%d 0 R" % len(parts))
    parts[1] = b"<< /Type /Pages /Kids [%s] /Count %d /MediaBox [0 0 200 200] >>" % (
        b" ".join(kids),
        len(kids),
    )
    parts.append(b"<< %s >>" % info)
    return _numbered(parts)


def _numbered(parts: list[bytes]) -> bytes:
    made, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(parts) + 1
    end = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        size,
        len(parts),
        len(made),
    )
    return made + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + end
