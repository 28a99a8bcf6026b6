"""The source of contacts: vCard files (.vcf) of versions 2.1, 3.0 and 4.0, one or many cards in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from headgate.sources.cleaning import id_of
from headgate.sources.contacts.vcard import Card, read_card
from headgate.sources.content_lines import components
from headgate.sources.declaring import FILE, LIST, TEXT, TIME, StreamSpec, declaration
from headgate.sources.identity import RowKeys
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.labels import connection_title
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row

_KINDS = frozenset({"VCARD"})
_SUFFIXES = frozenset({".vcf", ".vcard"})
_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "name": TEXT,
    "given_name": TEXT,
    "family_name": TEXT,
    "nickname": TEXT,
    "kind": {**TEXT, "description": "person, organisation or group."},
    "emails": LIST,
    "phones": LIST,
    "accounts": {**LIST, "description": "Addresses for instant messages."},
    "organisation": TEXT,
    "job": {**TEXT, "description": "The title or role in the organisation."},
    "birthday": {**TEXT, "description": "YYYY-MM-DD, or --MM-DD if the year is not known."},
    "addresses": {**LIST, "description": "Postal addresses, each in one line."},
    "websites": LIST,
    "groups": LIST,
    "notes": TEXT,
    "updated_at": TIME,
    "photo": FILE,
    "photo_url": TEXT,
    "people": {**LIST, "description": "The name and the email addresses, for the search for people."},
}
_NAMES = ("id", "name", "given_name", "family_name", "nickname", "kind", "organisation", "job", "groups")
_REACH = (*_NAMES, "emails", "phones", "accounts", "websites", "people")
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
        ("without_notes", "Everything but notes", tuple(name for name in _FIELDS if name != "notes")),
    ),
)


class ContactsSource:
    """Address books as vCard files."""

    name = "contacts"
    title = "Contacts"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise vCard files by their ending and by their first line."""
        files = [file for file in tree.files if _is_vcard(file)]
        return (
            [Recognised(self.name, connection_title(self.title, tree.label), files, Certainty.FORMAT)]
            if files
            else []
        )

    def declare(self, found: Recognised) -> Mapping[str, Any]:  # noqa: ARG002 - every address book has this shape
        """Declare the one stream of contacts."""
        return declaration(self.name, self.title, [_CONTACTS])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read card by card."""
        return read_each(found, resume, _cards)


def _is_vcard(file: InputFile) -> bool:
    if file.suffix not in _SUFFIXES:
        return False
    return b"BEGIN:VCARD" in file.head.upper()


def _cards(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = RowKeys()
    for component in components(content, _KINDS):
        if not component.kind:
            continue
        place = f"{file.name}, card {component.number}"
        card = read_card(component.lines) if component.problem is None else component.problem
        yield Reject(place, card) if isinstance(card, str) else _row(card, keys, place)


def _row(card: Card, keys: RowKeys, place: str) -> Row:
    key = id_of(card.uid) if card.uid else keys.key(card.data["name"])
    attachments = {"photo": card.photo} if card.photo else {}
    return Row("contacts", {"id": key, **card.data}, attachments, place)


CONTACTS = ContactsSource()
