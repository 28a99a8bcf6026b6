"""The mapping file: which operation is called, and how its result becomes records. Written by the owner, in TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from headgate.errors import ConfigInvalid
from headgate.operations.secrets import Secret
from headgate.sources.declaring import (
    BOOLEAN,
    DATE,
    INTEGER,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    StreamSpec,
    declaration,
)


@dataclass(frozen=True, slots=True)
class OperationAddress:
    """Which operation of which server is called."""

    server: str
    tool: str
    token: Secret | None = None
    #: Whether the owner allows the server a private address.
    allow_private: bool = False


class RemoteOperation(Protocol):
    """An operation that can be called until the session ends."""

    @property
    def is_read_only(self) -> bool:
        """Whether the server claims that it changes nothing."""
        ...

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it and return its structured result."""
        ...


#: Opens a session with the server for the length of a block.
OpenOperation = Callable[[OperationAddress], AbstractContextManager[RemoteOperation]]


TYPES: Mapping[str, Mapping[str, Any]] = {
    "text": TEXT,
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": BOOLEAN,
    "date": DATE,
    "date-time": TIME,
    "list": LIST,
    "object": OBJECT,
}
_STREAM = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_BYTES = 256 * 1024


class MappedField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type of a field, and where its value stands in an item."""

    type: str
    path: str = msgspec.field(name="from", default="")


class PageRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the next page is asked for."""

    #: The argument that takes the cursor, and where the result has the next one.
    argument: str
    next: str


class RemoteMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A mapping as it stands in the file."""

    server: str
    tool: str
    stream: str
    key: str | list[str]
    fields: dict[str, str | MappedField]
    label: str = ""
    token: str = ""
    allow_private: bool = False
    #: The owner's word that calling it changes nothing.
    read_only: bool = False
    arguments: dict[str, Any] = {}
    #: Where the result has the list of items; empty if it is the list.
    items: str = ""
    time: str = ""
    title: str = ""
    page: PageRule | None = None
    #: The argument that takes the newest time of the last run, for a tool that can leave out what is older.
    since: str = ""
    #: Whether the result is all that there is: a record that is missing from it is removed.
    whole: bool = False

    @property
    def keys(self) -> Sequence[str]:
        """The fields that name a record."""
        return [self.key] if isinstance(self.key, str) else self.key

    @property
    def mapped(self) -> Mapping[str, MappedField]:
        """The fields with their types and paths; by default a field has the item's member of its name."""
        found = {name: MappedField(one) if isinstance(one, str) else one for name, one in self.fields.items()}
        return {name: MappedField(one.type, one.path or name) for name, one in found.items()}

    def declare(self, source: str) -> Mapping[str, Any]:
        """Make the declaration of the one stream."""
        types = {name: one.type for name, one in self.mapped.items()}
        title = self.label or self.stream
        spec = StreamSpec(
            name=self.stream,
            label=title,
            detail=f"A record from the tool {self.tool}.",
            fields={name: TYPES[kind] for name, kind in types.items()},
            key=self.keys,
            time=self.time or None,
            title=self.title or None,
            words=[name for name, kind in types.items() if kind == "text"],
            groups=[name for name, kind in types.items() if kind in {"text", "boolean", "integer"}],
        )
        return declaration(source, title, [spec])


def read_mapping(path: Path) -> RemoteMapping:
    """Read a mapping file."""
    try:
        with path.open("rb") as content:
            text = content.read(_MAX_BYTES).decode()
        found = msgspec.convert(tomllib.loads(text), RemoteMapping)
    except OSError:
        raise ConfigInvalid(f"There is no mapping file {path}.", hint="Give its path.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigInvalid(f"{path.name}: {error}.", hint=_HINT) from None
    problem = _problem(found)
    if problem:
        raise ConfigInvalid(f"{path.name}: {problem}", hint=_HINT)
    return found


_HINT = "See docs/how-to/import-remote.md for what a mapping file holds."


def _problem(found: RemoteMapping) -> str | None:
    return next(_problems(found), None)


def _problems(found: RemoteMapping) -> Iterator[str]:
    types = {name: one.type for name, one in found.mapped.items()}
    if not _STREAM.fullmatch(found.stream):
        yield "'stream' has lower case letters, digits and '_' only."
    for kind in types.values():
        if kind not in TYPES:
            yield f"there is no type '{kind[:40]}'; types are {', '.join(TYPES)}."
    for name in (*(found.keys or [""]), *(one for one in (found.time, found.title) if one)):
        if name not in types:
            yield f"'{name or 'key'}' is not one of the fields."
    if found.time and types[found.time] not in {"date", "date-time"}:
        yield f"'{found.time}' is no time: its type is '{types[found.time]}'."
    if found.since and not found.time:
        yield "'since' needs a 'time' field."
    if found.since and found.whole:
        yield "a result that leaves out what is older is not the whole."
