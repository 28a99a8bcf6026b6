"""The source of contacts: vCard files (.vcf) of versions 2.1, 3.0 and 4.0, one or many cards in each."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import IO, Any

from headgate.sources.declaring import StreamSpec, all_but, fields
from headgate.sources.file_source import FileSource
from headgate.sources.formats.content_lines import ContentLine, components, properties
from headgate.sources.formats.values import RowKeys, id_of, iso_of, without_empty
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Attachment, Reject, Row

#: A year that Apple writes for birthdays without one.
_NO_YEAR = "1604"
_BIRTHDAY = re.compile(r"(\d{4}|--)-?(\d\d)-?(\d\d)(?:T.*|\s.*)?", re.ASCII)
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.-]+)*;base64\\?,", re.IGNORECASE | re.ASCII)
#: What programs write to every number, and says nothing of it.
_NO_LABELS = frozenset({"voice", "pref", "internet", "text", "other"})
_LABELS = {"cell": "mobile", "cell work": "work mobile", "work cell": "work mobile", "iphone cell": "iphone"}
_APPLE_LABEL = re.compile(r"_\$!<(.*)>!\$_")
_PHONETIC = ("FIRST", "MIDDLE", "LAST")
_IMAGES = {"JPG": "image/jpeg"}
_KINDS = {"org": "organisation", "group": "group"}


@dataclass(frozen=True, slots=True)
class Card:
    uid: str | None
    #: The fields of the record but its key; `name` is among them.
    data: Mapping[str, Any]
    photo: Attachment | None


def read_card(lines: Sequence[str]) -> Card | str:
    """Read a card, or say why it is none."""
    card: dict[str, list[ContentLine]] = {}
    for line in properties(lines):
        card.setdefault(line.name, []).append(line)
    data = without_empty(_data(card))
    name = data.get("name") or next((data[field][0] for field in ("emails", "phones") if field in data), None)
    if name is None:
        return "The card has no name, organisation, email or phone."
    photo = next((content for line in card.get("PHOTO", ()) if (content := _photo(line))), None)
    people = [name, *data.get("emails", ())]
    return Card(_uid(card), {**data, "name": name, "people": list(dict.fromkeys(people))}, photo)


def _data(card: Mapping[str, list[ContentLine]]) -> dict[str, Any]:
    name = _parts(card, "N", 5)
    organisation = ", ".join(filter(None, _parts(card, "ORG", 5)))
    return {
        "name": _full_name(card, name) or organisation,
        "given_name": name[1],
        "family_name": name[0],
        "nickname": _text(card, "NICKNAME"),
        "kind": _kind(card, name),
        "emails": _texts(card, "EMAIL", "mailto:"),
        "phones": _texts(card, "TEL", "tel:"),
        "labelled_phones": _labelled(card, "TEL"),
        "accounts": _texts(card, "IMPP"),
        "organisation": organisation,
        "job": _text(card, "TITLE") or _text(card, "ROLE"),
        "birthday": _birthday(card.get("BDAY", ())),
        "anniversary": _birthday((*card.get("ANNIVERSARY", ()), *card.get("X-ANNIVERSARY", ()))),
        "related": [*_labelled(card, "RELATED"), *_labelled(card, "X-ABRELATEDNAMES")],
        "phonetic_name": " ".join(
            filter(None, (_text(card, f"X-PHONETIC-{part}-NAME") for part in _PHONETIC))
        ),
        "addresses": [_address(line) for line in card.get("ADR", ()) if _address(line)],
        "websites": _texts(card, "URL"),
        "groups": [item for line in card.get("CATEGORIES", ()) for item in line.items if item],
        "notes": "\n\n".join(_texts(card, "NOTE")).replace("\r\n", "\n"),
        "updated_at": iso_of(_text(card, "REV")),
        "photo_url": next(
            (
                line.value
                for line in card.get("PHOTO", ())
                if line.value.lower().startswith(("http://", "https://"))
            ),
            None,
        ),
    }


def _uid(card: Mapping[str, list[ContentLine]]) -> str | None:
    uid = _text(card, "UID")
    return uid.removeprefix("urn:uuid:") if uid else None


def _full_name(card: Mapping[str, list[ContentLine]], name: Sequence[str]) -> str:
    family, first, additional, prefix, suffix = name
    return _text(card, "FN") or " ".join(filter(None, (prefix, first, additional, family, suffix)))


def _kind(card: Mapping[str, list[ContentLine]], name: Sequence[str]) -> str:
    kind = (_text(card, "KIND") or _text(card, "X-ADDRESSBOOKSERVER-KIND") or "").lower()
    # Without the parts of a name, only the organisation itself is called as the organisation is.
    is_named = _text(card, "FN") not in {None, ", ".join(filter(None, _parts(card, "ORG", 5)))}
    is_company = _text(card, "X-ABSHOWAS") == "COMPANY" or (
        "ORG" in card and not any(name[:3]) and not is_named
    )
    return _KINDS.get(kind) or ("organisation" if is_company else "person")


def _parts(card: Mapping[str, list[ContentLine]], name: str, count: int) -> list[str]:
    parts = next((line.parts[:count] for line in card.get(name, ())), list[str]())
    return parts + [""] * (count - len(parts))


def _text(card: Mapping[str, list[ContentLine]], name: str) -> str | None:
    return next((line.text for line in card.get(name, ()) if line.text), None)


def _texts(card: Mapping[str, list[ContentLine]], name: str, scheme: str = "") -> list[str]:
    texts = (line.text for line in card.get(name, ()))
    bare = (text[len(scheme) :] if text.lower().startswith(scheme) else text for text in texts)
    return list(dict.fromkeys(filter(None, bare)))


def _labelled(card: Mapping[str, list[ContentLine]], name: str) -> list[str]:
    """Return the values of a property with what each is: "home fax: +47 1"; those without a word are left out."""
    own = {
        line.group: _APPLE_LABEL.sub(lambda label: label[1].lower(), line.text)
        for line in card.get("X-ABLABEL", ())
        if line.group
    }
    found: list[str] = []
    for line in card.get(name, ()):
        types = ",".join(line.parameters.get("TYPE", ())).lower().split(",")
        label = own.get(line.group) or " ".join(word for word in types if word and word not in _NO_LABELS)
        value = line.text.removeprefix("tel:").removeprefix("urn:uuid:")
        if label and value:
            found.append(f"{_LABELS.get(label, label)}: {value}")
    return list(dict.fromkeys(found))


def _address(line: ContentLine) -> str:
    return ", ".join(part.replace("\n", ", ") for part in line.parts if part)


def _birthday(lines: Sequence[ContentLine]) -> str | None:
    match = next((match for line in lines if (match := _BIRTHDAY.fullmatch(line.text))), None)
    if match is None:
        return None
    year, month, day = match.groups()
    try:
        # 1604 is a leap year, so it also judges the 29th of February.
        date(int(_NO_YEAR if year == "--" else year), int(month), int(day))
    except ValueError:
        return None
    return f"--{month}-{day}" if year in {"--", _NO_YEAR} else f"{year}-{month}-{day}"


def _photo(line: ContentLine) -> Attachment | None:
    words = [value.upper() for name in ("ENCODING", "TYPE") for value in line.parameters.get(name, ())]
    inline = _DATA.match(line.value[:200])
    if inline is None and not {"B", "BASE64"} & set(words):
        return None
    text = line.value[inline.end() :] if inline else line.value
    try:
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Attachment(content, (inline and inline.group(1)) or _image_type(words)) if content else None


def _image_type(words: Sequence[str]) -> str:
    named = (word for word in words if word not in {"B", "BASE64"} and word.isascii() and word.isalnum())
    kind = next(named, "JPEG")
    return _IMAGES.get(kind, f"image/{kind.lower()}")


_CARD = frozenset({"VCARD"})
_SUFFIXES = frozenset({".vcf", ".vcard"})
_FIELDS = fields(
    "id name given_name family_name nickname kind emails:list phones:list accounts:list organisation job birthday "
    "addresses:list websites:list groups:list notes updated_at:time photo:file photo_url people:list "
    "labelled_phones:list anniversary related:list phonetic_name",
    kind="person, organisation or group.",
    accounts="Addresses for instant messages.",
    job="The title or role in the organisation.",
    birthday="YYYY-MM-DD, or --MM-DD if the year is not known.",
    addresses="Postal addresses, each in one line.",
    labelled_phones="Each phone that has a label, after it: home, work, mobile, fax.",
    related="Other people, each after what they are: spouse, child, manager.",
    people="The name and the email addresses, for the search for people.",
)
_NAMES = ("id", "name", "given_name", "family_name", "nickname", "kind", "organisation", "job", "groups")
_REACH = (*_NAMES, "emails", "phones", "labelled_phones", "accounts", "websites", "people")
_CONTACTS = StreamSpec(
    name="contacts",
    label="Contacts",
    detail="One person or organisation of an address book.",
    fields=_FIELDS,
    title="name",
    words=("name", "nickname", "organisation", "job", "notes"),
    groups=("organisation", "kind", "family_name"),
    views=(
        ("names", "Names and organisations only", _NAMES),
        ("reach", "Names, emails and phones, without addresses, birthdays and notes", _REACH),
        ("without_notes", "Everything but notes", all_but(_FIELDS, "notes")),
    ),
)


def _is_vcard(file: InputFile) -> bool:
    return file.suffix in _SUFFIXES and b"BEGIN:VCARD" in file.head.upper()


def read_cards(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = RowKeys()
    for component in components(content, _CARD):
        if not component.kind:
            continue
        place = f"{file.name}, card {component.number}"
        card = read_card(component.lines) if component.problem is None else component.problem
        yield Reject(place, card) if isinstance(card, str) else _row(card, keys, place)


def _row(card: Card, keys: RowKeys, place: str) -> Row:
    key = id_of(card.uid) if card.uid else keys.key(card.data["name"])
    attachments = {"photo": card.photo} if card.photo else {}
    return Row("contacts", {"id": key, **card.data}, attachments, place)


CONTACTS = FileSource("contacts", "Contacts", (_CONTACTS,), _is_vcard, read_cards, plain_form=2)
