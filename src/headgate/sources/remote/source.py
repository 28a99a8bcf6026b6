"""An operation of a remote server as a live source: called page by page, its items mapped to records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from headgate.errors import ConfigInvalid, UpstreamProtocolError
from headgate.model.instants import instant, is_date, iso
from headgate.sources.identity import digest_of
from headgate.sources.protocol import Item, Mark, Reject, Removal, Row
from headgate.sources.remote.mapping import (
    OpenOperation,
    OperationAddress,
    RemoteMapping,
    RemoteOperation,
    read_mapping,
)
from headgate.sources.secrets import FORMS, Secrets
from headgate.sources.values import without_empty

MAX_PAGES = 1000
MAX_ITEMS = 200_000


class RemoteSource:
    """Records from a tool of a remote server."""

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
        """Name the connection as the mapping does."""
        mapping = _mapping(settings)
        return mapping.label or f"{mapping.tool} of {mapping.server}"

    def declare(self, settings: Mapping[str, str]) -> Mapping[str, Any]:
        """Declare the stream of the mapping."""
        return _mapping(settings).declare(f"{self.name}-{self.variant(settings)}")

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item]:
        """Call the operation and give what it returns."""
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
    """One run of an operation, page by page."""

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
        found = value_at(result, self._mapping.items)
        if not isinstance(found, list):
            where = f"'{self._mapping.items}'" if self._mapping.items else "the result"
            raise UpstreamProtocolError(f"{self._mapping.tool}: {where} is no list of items.")
        listed = cast("list[Any]", found)
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
    if not math.isfinite(found := float(value)):
        raise ValueError
    return found


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


def _texts(value: Any) -> list[str]:
    return [_text(one) for one in _of(list)(value)]


_CONVERTED: Mapping[str, Any] = {
    "text": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _of(bool),
    "date": _date,
    "date-time": _time,
    "list": _texts,
    "object": _of(dict),
}
