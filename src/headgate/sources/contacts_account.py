"""The address books of a CardDAV server. Only reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.sources.contacts import CONTACTS
from headgate.sources.dav import ADDRESS_BOOKS, DavAccount, collections
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item
from headgate.sources.secrets import FORMS


class ContactsAccount(DavAccount):
    name = "contacts"
    title = "Contacts"
    streams = CONTACTS.streams
    kind = ADDRESS_BOOKS
    settings: Mapping[str, str] = {
        "url": "The https address of a CardDAV address book, or of a CardDAV server.",
        "user": "The name to sign in with (optional)",
        "secret": f"Where the password is: {FORMS} (optional)",
        "allow_private": "true, if the server may have a private address (optional)",
    }

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
        """Fetch what changed; it is read in another process."""
        with self.opened(settings) as run:
            yield from collections(run, settings["url"], state)
            yield Covered("contacts")
