"""Names of connections that stay the same from one export to the next."""

from __future__ import annotations

import re

_COPY = re.compile(r" ?\(\d+\)$")


def connection_title(kind: str, label: str) -> str:
    """Name a connection by the file: a copy, "contacts (1)", and the bare kind, "contacts", are the same one."""
    bare = _COPY.sub("", label).strip()
    return kind if bare.lower() in {"", kind.lower(), kind.lower().removesuffix("s")} else f"{kind}: {bare}"
