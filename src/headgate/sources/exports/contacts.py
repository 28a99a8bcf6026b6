"""A contact as a vCard."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from headgate.sources.exports.content_text import component, escaped, line, texts

_KINDS = {"organisation": "org", "group": "group"}


def card(row: Mapping[str, Any], photo: bytes | None) -> bytes:
    """Write a record of contacts; its id becomes the card's."""
    names = (row.get("family_name"), row.get("given_name"), None, None, None)
    groups = ",".join(escaped(one) for one in row.get("groups") or ())
    lines = [
        "VERSION:4.0",
        line("UID", escaped(row["id"])),
        *texts("FN", [row.get("name")]),
        line("N", ";".join(escaped(one or "") for one in names)),
        *texts("NICKNAME", [row.get("nickname")]),
        line("KIND", _KINDS.get(row.get("kind") or "", "individual")),
        *texts("EMAIL", row.get("emails") or ()),
        *texts("TEL", row.get("phones") or ()),
        *texts("IMPP", row.get("accounts") or ()),
        *texts("ORG", [row.get("organisation")]),
        *texts("TITLE", [row.get("job")]),
        *texts("BDAY", [row.get("birthday")]),
        *(line("ADR", f";;{escaped(one)};;;;") for one in row.get("addresses") or ()),
        *texts("URL", row.get("websites") or ()),
        *([line("CATEGORIES", groups)] if groups else ()),
        *texts("NOTE", [row.get("notes")]),
        *texts("REV", [row.get("updated_at")]),
        *([line("PHOTO", row["photo_url"])] if row.get("photo_url") else ()),
        *(_photo(row["photo"], photo) if photo is not None else ()),
    ]
    return component("VCARD", lines)


def _photo(reference: Mapping[str, Any], content: bytes) -> list[str]:
    mime_type = str(reference["mime_type"]).replace(";", "").replace(",", "")
    return [line("PHOTO", f"data:{mime_type};base64,{base64.b64encode(content).decode()}")]
