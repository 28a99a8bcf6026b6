"""Names of connections and accounts that stay the same from one export to the next."""

from __future__ import annotations

import re

_COPY = re.compile(r" ?\(\d+\)$")
#: The archives of one Google Takeout, whose names have the time of the order and a number.
_TAKEOUT = re.compile(r"takeout-\d{8}t\d{6}z(?:-\d+)*", re.IGNORECASE)
#: Months, in the languages that banks here write, and what systems call copies.
_WORDS = (
    "copy|kopie|copie|copia",
    "jan|january|januar|janvier|enero|ene|gennaio|gen|januari",
    "feb|february|februar|février|fevrier|febrero|febbraio|februari",
    "mar|march|märz|maerz|mrz|mär|mars|marzo|maart",
    "apr|april|avril|abril|aprile",
    "may|mai|mayo|maggio|mei",
    "jun|june|juni|juin|junio|giugno",
    "jul|july|juli|juillet|julio|luglio",
    "aug|august|août|aout|agosto|augustus",
    "sep|sept|september|septembre|septiembre|settembre",
    "oct|october|okt|oktober|octobre|octubre|ottobre",
    "nov|november|novembre|noviembre",
    "dec|december|dez|dezember|décembre|decembre|dic|diciembre|dicembre",
)
_VARYING = re.compile(
    rf"""\(\d+\)                                              # a copy
    | (?<!\d) (?:19|20)\d\d (?:[-_.]?\d\d){{0,2}} (?!\d)    # 2026, 2026-03, 20260331
    | (?<!\d) \d\d?[-_.]\d\d?[-_.](?:19|20)?\d\d (?!\d)    # 31.03.2026
    | (?<!\d) \d\d[-_.:h]\d\d (?:[-_.:m]\d\d)? (?!\d)      # a time
    | [-_ ]\d{{1,2}}$                                       # a counter
    | (?<![^\W\d_]) (?:{"|".join(_WORDS)}) (?![^\W\d_])""",
    re.VERBOSE | re.IGNORECASE,
)


def export_label(name: str) -> str:
    """Name an archive or directory for people; every Takeout, and each archive of it, has the same name."""
    return "Takeout" if _TAKEOUT.fullmatch(_COPY.sub("", name)) else name


def connection_title(kind: str, label: str) -> str:
    """Name a connection by the file: a copy, "contacts (1)", and the bare kind, "contacts", are the same one."""
    bare = _COPY.sub("", label).strip()
    return kind if bare.lower() in {"", kind.lower(), kind.lower().removesuffix("s")} else f"{kind}: {bare}"


def file_label(stem: str) -> str:
    """Name what a file is about, the same for every month and every copy of it; empty if nothing else is left."""
    label = " ".join(_VARYING.sub(" ", stem).replace("_", " ").split()).strip(" -.,")
    return label if any(letter.isalpha() for letter in label) else ""
