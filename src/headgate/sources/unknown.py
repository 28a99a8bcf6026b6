"""What to do with a file that no source reads: one line by what it is."""

from __future__ import annotations

from headgate.sources.inputs.tree import InputFile

_ADVICE = {
    ".pst .ost .olm": "mail of Outlook; export it as .mbox or .eml, for example with Thunderbird or readpst",
    ".numbers": "a table of Numbers; export it as CSV or Excel",
    ".pages .key": "a document of Pages or Keynote; export it as PDF",
    ".doc .ppt .dot .pps": "an old document of Office; save it as PDF, or in the newer format ending in x",
    ".one .onepkg": "notes of OneNote; export them as PDF or Word",
    ".kml .kmz": "places or a track of Google Earth; save it as GPX",
    ".mobi .azw .azw3": "a book for the Kindle; convert it to EPUB",
    ".mdb .accdb": "a database of Access; export its tables as CSV",
    ".jpg .jpeg .png .gif .heic .webp .bmp .tif .tiff .svg": "a picture; only text is read",
    ".mp3 .m4a .wav .ogg .opus .flac .mp4 .mov .avi .webm .mkv": "a recording; only text is read",
}
_BY_SUFFIX = {suffix: advice for suffixes, advice in _ADVICE.items() for suffix in suffixes.split()}
_PAGES = frozenset({".html", ".htm", ".xhtml"})
#: What the pages of copies hold that have the same content as JSON.
_COPIES = {
    "a page of Google Takeout": (b"outer-cell mdl-cell", b"<title>My Activity"),
    "a page of a copy from Facebook or Instagram": (b"uiBoxWhite noborder",),
    "a page of an export from Telegram": (b"<title>Exported Data</title>",),
}


def copied_page(file: InputFile) -> str:
    """Return of which copy of an account a page is; empty if of none."""
    head = file.head if file.suffix in _PAGES else b""
    return next((what for what, marks in _COPIES.items() if any(mark in head for mark in marks)), "")


def advice(file: InputFile) -> str:
    """Return what a file is and how it can be read; empty if neither is known."""
    if page := copied_page(file):
        return f"{page}; order the copy again and choose the format JSON"
    if file.suffix in _PAGES | {".txt", ".text"}:
        return "text beside the files of another program; import it by its own path"
    return _BY_SUFFIX.get(file.suffix, "")
