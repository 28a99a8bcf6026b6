"""Records as lines of iCalendar and vCard: properties and components, and the cards of contacts."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headgate.sources.formats.values import original_id

_LINE_BYTES = 74
_SPECIAL = re.compile(r"[\\,;]")


def line(name: str, value: str) -> str:
    """Write a property; the name may have parameters. Nothing but its end can end the line."""
    return f"{name}:{' '.join(value.splitlines())}"


def escaped(text: object) -> str:
    value = _SPECIAL.sub(lambda match: f"\\{match.group()}", str(text))
    return "\\n".join(value.splitlines()) if value else ""


def texts(name: str, values: Iterable[object]) -> list[str]:
    return [line(name, escaped(value)) for value in values if value not in (None, "")]


def members(row: Mapping[str, Any], **names: str) -> list[str]:
    """Write the values of fields, each as a property of the name that it is given by."""
    return [
        text
        for name, field in names.items()
        for text in texts(name, row[field] if isinstance(row.get(field), list) else [row.get(field)])
    ]


def parameter(text: str) -> str:
    """Write the value of a parameter in quotes, which it cannot end."""
    return '"' + "".join("'" if letter == '"' else letter for letter in text if letter.isprintable()) + '"'


def component(kind: str, lines: Iterable[str], parts: bytes = b"") -> bytes:
    """Put lines, folded, and then components between a beginning and an end."""
    begin = b"".join(_folded(text) for text in (f"BEGIN:{kind}", *lines))
    return begin + parts + _folded(f"END:{kind}")


def _folded(text: str) -> bytes:
    content = text.encode()
    if len(content) <= _LINE_BYTES:
        return content + b"\r\n"
    # The reader joins bytes, but other programs want whole characters.
    pieces, piece = list[str](), ""
    size = 0
    for letter in text:
        width = len(letter.encode())
        if size + width > _LINE_BYTES:
            pieces.append(piece)
            piece, size = "", 1
        piece += letter
        size += width
    return "\r\n ".join([*pieces, piece]).encode() + b"\r\n"


_PERSON = re.compile(r"(.*) <([^<>]*)>", re.DOTALL)


def person(name: str, text: str) -> str:
    """Write a person as the property of a calendar."""
    match = _PERSON.fullmatch(text)
    label, address = match.groups() if match else ("", text)
    scheme = "" if ":" in address else "mailto:"
    return line(f"{name};CN={parameter(label)}" if label else name, f"{scheme}{address}")


#: What other programs call a kind of phone.
_TYPES = {"mobile": "cell", "home": "home", "work": "work", "fax": "fax", "pager": "pager"}
_KINDS = {"organisation": "org", "group": "group"}


def card(row: Mapping[str, Any], photo: bytes | None) -> bytes:
    """Write a record of contacts; its id becomes the card's."""
    names = (row.get("family_name"), row.get("given_name"), None, None, None)
    groups = ",".join(escaped(text) for text in row.get("groups") or ())
    lines = [
        "VERSION:4.0",
        line("UID", escaped(original_id(row["id"]))),
        *members(row, FN="name"),
        line("N", ";".join(escaped(name or "") for name in names)),
        *members(row, NICKNAME="nickname"),
        line("KIND", _KINDS.get(row.get("kind") or "", "individual")),
        *members(row, EMAIL="emails"),
        *_labelled("TEL", row.get("phones") or [], row.get("labelled_phones") or []),
        *members(row, IMPP="accounts", ORG="organisation", TITLE="job"),
        *members(row, BDAY="birthday", ANNIVERSARY="anniversary"),
        *_labelled("RELATED;VALUE=text", [], row.get("related") or []),
        *members(row, **{"X-PHONETIC-FIRST-NAME": "phonetic_name"}),
        *(line("ADR", f";;{escaped(text)};;;;") for text in row.get("addresses") or ()),
        *members(row, URL="websites"),
        *([line("CATEGORIES", groups)] if groups else ()),
        *members(row, NOTE="notes", REV="updated_at"),
        *([line("PHOTO", row["photo_url"])] if row.get("photo_url") else ()),
        *(_photo(row["photo"], photo) if photo is not None else ()),
    ]
    return component("VCARD", lines)


def _labelled(name: str, values: Sequence[str], labelled: Sequence[str]) -> list[str]:
    """Write values, and those after their labels, in the form that every label has: "mobile: +47 1"."""
    parts = [text.partition(": ") for text in labelled]
    known = {value for _, _, value in parts}
    lines = [line(name, escaped(value)) for value in values if value not in known]
    for number, (label, _, value) in enumerate(parts, 1):
        types = [_TYPES[word] for word in label.split() if word in _TYPES]
        group = f"{name.partition(';')[0].lower()}{number}"
        lines += [
            line(f"{group}.{name}" + (f";TYPE={','.join(types)}" if types else ""), escaped(value)),
            line(f"{group}.X-ABLABEL", escaped(label)),
        ]
    return lines


def _photo(reference: Mapping[str, Any], content: bytes) -> list[str]:
    mime_type = str(reference["mime_type"]).replace(";", "").replace(",", "")
    return [line("PHOTO", f"data:{mime_type};base64,{base64.b64encode(content).decode()}")]
