"""Names of connections that stay the same from one export to the next."""

from __future__ import annotations

import re

_COPY = re.compile(r" ?\(\d+\)$")
#: The archives of one Google Takeout, whose names have the time of the order and a number.
_TAKEOUT = re.compile(r"takeout-\d{8}t\d{6}z(?:-\d+)*", re.IGNORECASE)


def export_label(name: str) -> str:
    """Name an archive or directory for people; every Takeout, and each archive of it, has the same name."""
    return "Takeout" if _TAKEOUT.fullmatch(_COPY.sub("", name)) else name


def connection_title(kind: str, label: str) -> str:
    """Name a connection by the file: a copy, "contacts (1)", and the bare kind, "contacts", are the same one."""
    bare = _COPY.sub("", label).strip()
    return kind if bare.lower() in {"", kind.lower(), kind.lower().removesuffix("s")} else f"{kind}: {bare}"
