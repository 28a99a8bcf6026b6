"""What to do with a file that no source reads: one line by what it is."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.sources.formats.compound import SIGNATURE
from headgate.sources.inputs.tree import InputFile

_ADVICE = {
    ".pst .ost": "mail of Outlook; convert it with 'readpst -D -o DIRECTORY FILE', and import the directory",
    ".olm": "mail of Outlook for Mac; drag the folders out of Outlook, which makes .mbox files",
    ".msf": "an index of Thunderbird; the mail is in the file beside it",
    ".p7m .asc .gpg .pgp": "encrypted; decrypt it first",
    ".crypt12 .crypt14 .crypt15": "a backup of WhatsApp, which is encrypted; export the chats one by one",
    ".numbers": "a table of Numbers; export it as CSV or Excel",
    ".pages .key": "a document of Pages or Keynote; export it as PDF",
    ".doc .ppt .dot .pps .wps .wpd .pub": "an old document of Office; save it as PDF, or in the newer format ending in x",
    ".one .onepkg .onetoc2": "notes of OneNote; export them as PDF or Word",
    ".gdoc .gsheet .gslides": "a link to a document of Google; download it as Word, Excel or PDF",
    ".lnk .url .webloc .desktop": "a link; import what it leads to",
    ".mht .mhtml .webarchive": "a saved page; save it as HTML",
    ".kml .kmz .fit .tcx": "places or a track; save it as GPX",
    ".mobi .azw .azw3": "a book for the Kindle; convert it to EPUB",
    ".mdb .accdb": "a database of Access; export its tables as CSV",
    ".db-wal .db-shm .sqlite-wal .sqlite-shm .db-journal": "a part of a database; it is read with the database",
    ".rar .7z": "an archive that is not opened here; unpack it, and import the directory",
    ".crdownload .part .download": "a download that is not complete",
    ".exe .dmg .msi .apk .app .ipa .dll .iso": "a program; it holds no records",
    ".jpg .jpeg .png .gif .heic .heif .avif .webp .bmp .tif .tiff .svg .psd .dng .cr2 .nef .arw .ico": "a picture; only "
    "text is read",
    ".mp3 .m4a .wav .ogg .opus .flac .aac .amr .wma .mp4 .m4v .mov .avi .webm .mkv .wmv .3gp": "a recording; only text "
    "is read",
}
_BY_SUFFIX = {suffix: advice for suffixes, advice in _ADVICE.items() for suffix in suffixes.split()}
_PAGES = frozenset({".html", ".htm", ".xhtml"})
_OFFICE = frozenset({".docx", ".pptx", ".xlsx", ".docm", ".xlsm"})
#: What the pages of copies hold that have the same content as JSON.
_COPIES = {
    "a page of Google Takeout": (b"outer-cell mdl-cell", b"<title>My Activity"),
    "a page of a copy from Facebook or Instagram": (b"uiBoxWhite noborder",),
    "a page of an export from Telegram": (b"<title>Exported Data</title>",),
}
#: Pages that stand beside what is read.
_BESIDE = {
    "Keep": "the same note as in the .json file beside it",
    "archive_browser.html": "the list of what is in the archive",
}


def copied_page(file: InputFile) -> str:
    """Return of which copy of an account a page is; empty if of none."""
    head = file.head if file.suffix in _PAGES else b""
    return next((what for what, marks in _COPIES.items() if any(mark in head for mark in marks)), "")


def is_about_picture(file: InputFile) -> bool:
    """Return whether a file is what Google Photos notes of a picture; of each there is one."""
    return file.suffix == ".json" and b'"photoTakenTime"' in file.head[:4096]


def advice(file: InputFile) -> str:
    """Return what a file is and how it can be read; empty if neither is known."""
    if page := copied_page(file):
        return f"{page}; order the copy again and choose the format JSON"
    if file.suffix in _PAGES and (
        beside := next(filter(None, map(_BESIDE.get, file.name.split("/")[-2:])), "")
    ):
        return beside
    if file.suffix in _PAGES | {".txt", ".text"}:
        return "text beside the files of another program; import it by its own path"
    if file.suffix in _OFFICE and file.head.startswith(SIGNATURE):
        return "encrypted with a password; save it without one"
    if is_about_picture(file):
        return "what Google Photos notes of a picture; only text is read"
    return "no list of records" if file.suffix == ".json" else _BY_SUFFIX.get(file.suffix, "")


def summary(unknown: Sequence[str], most: int = 10) -> list[str]:
    """Write the files that are not read in one line for each reason: thousands of pictures hide nothing else."""
    by_reason: dict[str, list[str]] = {}
    for text in unknown:
        name, bracket, reason = text.rpartition(" (") if text.endswith(")") else (text, "", "")
        by_reason.setdefault(bracket + reason, []).append(name)
    lines: list[str] = []
    for reason, names in by_reason.items():
        shown = names[: 1 if reason else most]
        more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
        lines.append(f"{', '.join(shown)}{more}{reason}")
    return lines
