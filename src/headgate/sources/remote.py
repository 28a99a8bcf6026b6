"""An operation of a remote server as a live source: called page by page, its items mapped to records.

The mapping file says which operation is called, and how its result becomes records. The owner writes it, in TOML.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from headgate.errors import ConfigInvalid, UpstreamProtocolError
from headgate.model.instants import instant, is_date, iso
from headgate.operations.secrets import Secret
from headgate.sources.declaring import TYPES, StreamSpec, declaration
from headgate.sources.formats.values import digest_of, without_empty
from headgate.sources.protocol import Item, LiveSource, Mark, Reject, Removal, Row
from headgate.sources.secrets import FORMS, Secrets


@dataclass(frozen=True, slots=True)
class OperationAddress:
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


_STREAM = re.compile(r"[a-z][a-z0-9_]{0,40}")
_MAX_BYTES = 256 * 1024


class MappedField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The type of a field, and where its value stands in an item."""

    type: str
    path: str = msgspec.field(name="from", default="")


class PageRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    #: The argument that takes the cursor, and where the result has the next one.
    argument: str
    next: str


class RemoteMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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
        return [self.key] if isinstance(self.key, str) else self.key

    @property
    def mapped(self) -> Mapping[str, MappedField]:
        """The fields with their types and paths; by default a field has the item's member of its name."""
        fields = {
            name: MappedField(field) if isinstance(field, str) else field
            for name, field in self.fields.items()
        }
        return {name: MappedField(field.type, field.path or name) for name, field in fields.items()}

    def declare(self, source: str) -> Mapping[str, Any]:
        types = {name: field.type for name, field in self.mapped.items()}
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
        mapping = msgspec.convert(tomllib.loads(text), RemoteMapping)
    except OSError:
        raise ConfigInvalid(f"There is no mapping file {path}.", hint="Give its path.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigInvalid(f"{path.name}: {error}.", hint=_HINT) from None
    for problem in _problems(mapping):
        raise ConfigInvalid(f"{path.name}: {problem}", hint=_HINT)
    return mapping


_HINT = "See docs/how-to/import-remote.md for what a mapping file holds."


def _problems(mapping: RemoteMapping) -> Iterator[str]:
    types = {name: field.type for name, field in mapping.mapped.items()}
    if not _STREAM.fullmatch(mapping.stream):
        yield "'stream' has lower case letters, digits and '_' only."
    for kind in types.values():
        if kind not in TYPES:
            yield f"there is no type '{kind[:40]}'; types are {', '.join(TYPES)}."
    for name in (*(mapping.keys or [""]), *(field for field in (mapping.time, mapping.title) if field)):
        if name not in types:
            yield f"'{name or 'key'}' is not one of the fields."
    if mapping.time and types[mapping.time] not in {"date", "date-time"}:
        yield f"'{mapping.time}' is no time: its type is '{types[mapping.time]}'."
    if mapping.since and not mapping.time:
        yield "'since' needs a 'time' field."
    if mapping.since and mapping.whole:
        yield "a result that leaves out what is older is not the whole."


MAX_PAGES = 1000
MAX_ITEMS = 200_000


class RemoteSource(LiveSource):
    name = "mcp"
    title = "Remote MCP server"
    settings: Mapping[str, str] = {"mapping": "The path of the mapping file."}

    def __init__(self, open_operation: OpenOperation, secrets: Secrets | None = None) -> None:
        self._open = open_operation
        self._secrets = secrets or Secrets()

    def prepared(self, settings: Mapping[str, str]) -> Mapping[str, str]:
        """Make the path absolute: a later run may have another working directory."""
        return {**settings, "mapping": str(Path(settings["mapping"]).expanduser().absolute())}

    def variant(self, settings: Mapping[str, str]) -> str:
        """Tell connectors apart whose streams differ."""
        mapping = _mapping(settings)
        return f"{mapping.stream.replace('_', '-')}-{digest_of(mapping.server, mapping.tool)[:8]}"

    def label(self, settings: Mapping[str, str]) -> str:
        mapping = _mapping(settings)
        return mapping.label or f"{mapping.tool} of {mapping.server}"

    def declare(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        return _mapping(settings).declare(f"{self.name}-{self.variant(settings)}")

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item]:
        mapping = _mapping(settings)
        token = self._secrets.find(mapping.token) if mapping.token else None
        address = OperationAddress(mapping.server, mapping.tool, token, mapping.allow_private)
        with self._open(address) as operation:
            if not (mapping.read_only or operation.is_read_only):
                raise ConfigInvalid(
                    f"The server does not say that {mapping.tool} only reads.",
                    hint=f"If you know that it changes nothing, write read_only = true. A token is {FORMS}.",
                )
            yield from _RemoteRun(mapping, state.get(mapping.tool) or {}).items(operation)


def _mapping(settings: Mapping[str, str]) -> RemoteMapping:
    return read_mapping(Path(settings["mapping"]).expanduser())


class _RemoteRun:
    def __init__(self, mapping: RemoteMapping, before: Mapping[str, Any]) -> None:
        self._mapping = mapping
        self._before = before
        self._newest: str | None = before.get("since")
        self._keys: dict[str, list[Any]] = {}
        self._count = 0
        self._is_whole = mapping.whole

    def items(self, operation: RemoteOperation) -> Iterator[Item]:
        """Yield rows, then what is gone, then the mark from which the next run goes on."""
        for number, result in enumerate(self._pages(operation), 1):
            for place, item in enumerate(self._listed(result), 1):
                yield self._row(item, f"{self._mapping.tool}, page {number}, item {place}")
        if self._is_whole:
            yield from self._gone()
        keys = list(self._keys.values()) if self._mapping.whole else []
        yield Mark(self._mapping.tool, 0, {"since": self._newest, "keys": keys})

    def _pages(self, operation: RemoteOperation) -> Iterator[Any]:
        mapping = self._mapping
        arguments = dict(mapping.arguments)
        if mapping.since and self._newest:
            arguments[mapping.since] = self._newest
        seen: set[str] = set()
        while True:
            result = _structured(operation.call(arguments))
            yield result
            cursor = None if mapping.page is None else value_at(result, mapping.page.next)
            if mapping.page is None or cursor is None or cursor == "":
                return
            seen.add(str(cursor))
            if len(seen) >= MAX_PAGES or str(cursor) == str(arguments.get(mapping.page.argument)):
                raise UpstreamProtocolError(f"{mapping.tool} has pages without end.")
            arguments[mapping.page.argument] = cursor

    def _listed(self, result: Any) -> Sequence[Any]:
        items = value_at(result, self._mapping.items)
        if not isinstance(items, list):
            where = f"'{self._mapping.items}'" if self._mapping.items else "the result"
            raise UpstreamProtocolError(f"{self._mapping.tool}: {where} is no list of items.")
        listed = cast("list[Any]", items)
        self._count += len(listed)
        if self._count > MAX_ITEMS:
            raise UpstreamProtocolError(f"{self._mapping.tool} has more than {MAX_ITEMS:,} items.")
        return listed

    def _row(self, item: Any, place: str) -> Row | Reject:
        data: dict[str, Any] = {}
        for name, field in self._mapping.mapped.items():
            value = value_at(item, field.path)
            try:
                data[name] = None if value is None else _CONVERTED[field.type](value)
            except (TypeError, ValueError, OverflowError):
                # Without it the record may be another one than before: nothing is taken as gone.
                self._is_whole = False
                return Reject(place, f"'{field.path}' is not of the type {field.type}.")
        key = [data.get(name) for name in self._mapping.keys]
        if None in key or "" in key:
            self._is_whole = False
            return Reject(place, "It has no key.")
        if self._mapping.whole:
            self._keys[digest_of(key)] = key
        self._remember(data.get(self._mapping.time))
        return Row(self._mapping.stream, without_empty(data), place=place)

    def _remember(self, time: str | None) -> None:
        if time is not None and (self._newest is None or (instant(self._newest) or 0) < (instant(time) or 0)):
            self._newest = time

    def _gone(self) -> Iterator[Removal]:
        for key in self._before.get("keys") or ():
            if digest_of(key) not in self._keys:
                yield Removal(self._mapping.stream, key)


def value_at(value: Any, path: str) -> Any:
    """Follow a path of member names and list places, separated by points; None if it leads nowhere."""
    for part in path.split(".") if path else ():
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value).get(part)
        elif isinstance(value, list) and part.isdecimal():
            listed = cast("list[Any]", value)
            value = listed[int(part)] if int(part) < len(listed) else None
        else:
            return None
    return value


def _structured(result: Any) -> Any:
    """Return what a tool returned as data; one that declares no result often writes JSON as its only text."""
    blocks: list[Any] = cast("list[Any]", result) if isinstance(result, list) else []
    if len(blocks) == 1 and isinstance(blocks[0], Mapping):
        block = cast("Mapping[str, Any]", blocks[0])
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(block["text"])
    return cast("Any", result)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    raise TypeError


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or int(value) != float(value):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    if not math.isfinite(number := float(value)):
        raise ValueError
    return number


def _time(value: Any) -> str:
    if isinstance(value, str) and instant(value) is not None:
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 253_402_300_800:  # noqa: PLR2004 - the year 9999
        return iso(int(value * 1_000_000))
    raise TypeError


def _date(value: Any) -> str:
    if isinstance(value, str) and is_date(value[:10]):
        return value[:10]
    raise TypeError


def _of(kind: type) -> Any:
    def same(value: Any) -> Any:
        if isinstance(value, kind):
            return value
        raise TypeError

    return same


_CONVERTED: Mapping[str, Callable[[Any], Any]] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _of(bool),
    "date": _date,
    "date-time": _time,
    "list": lambda value: [_text(one) for one in _of(list)(value)],
    "object": _of(dict),
}
