"""Pins: the definition of each tool as it was approved, and how the listed tools differ from it.

A tool that changed, or appeared later, is blocked until it is approved. The comparison is a pure function; pins are
stored behind a small protocol, in memory or in a private file.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

import msgspec

from headgate.errors import ConfigInvalid
from headgate.home import read_private, write_private
from headgate.mcp.client.mapping import MappingBounds, Naming, Skipped, Tool, map_tool
from headgate.mcp.client.scan import HIDDEN, LOOK_ALIKE, ToolFinding, blocking
from headgate.schema.diff import DefinitionDiff, diff_definitions, renames
from headgate.system import lock, open_private


@dataclass(frozen=True, slots=True)
class Pin:
    """A tool as it was approved."""

    tool: str
    digest: str
    definition: Mapping[str, Any]


class PinStore(Protocol):
    """Stores the pins of servers."""

    def read(self, server: str) -> dict[str, Pin] | None:
        """Return the pins of a server by tool, or None when it was never imported."""
        ...

    def write(self, server: str, pins: Mapping[str, Pin]) -> None:
        """Replace the pins of a server."""
        ...


class MemoryPins:
    def __init__(self) -> None:
        self._servers: dict[str, dict[str, Pin]] = {}

    def read(self, server: str) -> dict[str, Pin] | None:
        """Return the pins of a server by tool, or None when it was never imported."""
        return self._servers.get(server)

    def write(self, server: str, pins: Mapping[str, Pin]) -> None:
        """Replace the pins of a server."""
        self._servers[server] = dict(pins)


class FilePins:
    """Pins in one JSON file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def stamp(self) -> object:
        """Return a value that is another one after the pins were written."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def servers(self) -> list[str]:
        """List the servers that have pins."""
        return sorted(self._read())

    def read(self, server: str) -> dict[str, Pin] | None:
        """Return the pins of a server by tool, or None when it was never imported."""
        stored = self._read().get(server)
        if stored is None:
            return None
        return {tool: Pin(tool, pin["digest"], pin["definition"]) for tool, pin in stored.items()}

    def write(self, server: str, pins: Mapping[str, Pin]) -> None:
        """Replace the pins of a server."""
        entry = {
            tool: {"digest": pin.digest, "definition": dict(pin.definition)} for tool, pin in pins.items()
        }
        with self._locked():
            write_private(self._path, _written({**self._read(), server: entry}))

    def forget(self, server: str) -> None:
        """Delete the pins of a server; the next import pins it anew."""
        with self._locked():
            rest = {name: pins for name, pins in self._read().items() if name != server}
            write_private(self._path, _written(rest))

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Exclude other writers: a pin that a concurrent write dropped would be made anew without an approval."""
        handle = open_private(f"{self._path}.lock", os.O_RDWR | os.O_CREAT)
        try:
            lock(handle, wait=True)
            yield
        finally:
            os.close(handle)

    def _read(self) -> dict[str, dict[str, dict[str, Any]]]:
        content = read_private(self._path)
        if content is None:
            return {}
        try:
            document = msgspec.json.decode(content)
        except (ValueError, RecursionError) as error:
            raise ConfigInvalid(
                f"{self._path} is not JSON.", hint="Restore it, or remove it to pin anew."
            ) from error
        return cast("dict[str, dict[str, dict[str, Any]]]", document)


def _written(document: Mapping[str, Any]) -> bytes:
    # Not indented: a deep definition would be written many times as long as it is.
    return msgspec.json.encode(document, order="sorted")


#: The grades of tools that were never approved, which are not even listed.
NEVER_APPROVED = frozenset({"new", "renamed", HIDDEN, LOOK_ALIKE})


@dataclass(frozen=True, slots=True)
class ToolChange:
    """How a tool differs from its pin, which is why it is blocked."""

    tool: str
    #: ``wording``, ``widened``, ``narrowed``, ``breaking``, ``renamed``, ``new`` or ``vanished``; of a tool that was
    #: never approved also ``hidden_characters`` or ``look_alike``.
    grade: str
    difference: DefinitionDiff | None = None
    #: The earlier name, of a tool that was renamed.
    earlier: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        fields: dict[str, Any] = {"tool": self.tool, "grade": self.grade}
        if self.difference is not None:
            fields["changes"] = self.difference.to_dict()["changes"]
        return fields if self.earlier is None else {**fields, "earlier": self.earlier}


def pins_of(tools: Iterable[Tool]) -> dict[str, Pin]:
    """Pin tools as they are."""
    return {tool.name: Pin(tool.name, tool.digest, tool.definition) for tool in tools}


def changes_since(
    pins: Mapping[str, Pin],
    tools: Iterable[Tool],
    findings: Mapping[str, Sequence[ToolFinding]] = MappingProxyType({}),
) -> list[ToolChange]:
    """Compare the tools that a server lists with the approved ones; no change, no entry."""
    listed = {tool.name: tool for tool in tools}
    before = {name: pin.definition for name, pin in pins.items()}
    moved = {new: old for old, new in renames(before, {n: t.definition for n, t in listed.items()}).items()}
    changes: list[ToolChange] = []
    for name, tool in listed.items():
        pin = pins.get(name)
        if pin is None:
            deceives = blocking(findings.get(name, ()))
            grade = "renamed" if name in moved else "new" if deceives is None else deceives.kind
            changes.append(ToolChange(name, grade, earlier=moved.get(name)))
        elif pin.digest != tool.digest:
            difference = diff_definitions(pin.definition, tool.definition)
            # The same definition under another server's name is another tool.
            grade = difference.grade.name.lower() if difference.changes else "breaking"
            changes.append(ToolChange(name, grade, difference))
    return [*changes, *(ToolChange(name, "vanished") for name in pins if name not in listed)]


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of a server as it listed them last."""

    tools: Mapping[str, Tool]
    skipped: tuple[Skipped, ...]
    naming: Naming
    #: What in them could deceive.
    findings: Mapping[str, Sequence[ToolFinding]] = field(default_factory=dict[str, "Sequence[ToolFinding]"])


@dataclass(frozen=True, slots=True)
class JudgedTools:
    """A listing, and how it differs from the approved tools."""

    listing: Listing
    #: The tools as they were approved, which is how they are offered.
    approved: Mapping[str, Tool]
    vanished: tuple[ToolChange, ...]
    #: The tools that cannot be called until they are approved.
    blocked: Mapping[str, ToolChange]


def judge(
    listing: Listing, pins: Mapping[str, Pin], bounds: MappingBounds, *, before: JudgedTools
) -> JudgedTools:
    """Compare listed tools with their pins."""
    changes = changes_since(pins, listing.tools.values(), listing.findings)
    bad = {skipped.name for skipped in listing.skipped} & pins.keys()
    known: Mapping[str, Tool] = before.approved if before.listing.naming == listing.naming else {}
    # A tool that was approved and is now unusable has changed; it has not vanished.
    return JudgedTools(
        listing,
        {
            name: _as_approved(tool, pins.get(name), known, listing, bounds)
            for name, tool in listing.tools.items()
        },
        tuple(change for change in changes if change.grade == "vanished" and change.tool not in bad),
        {change.tool: change for change in changes if change.grade != "vanished"}
        | {name: ToolChange(name, "breaking") for name in bad},
    )


def _as_approved(
    tool: Tool, pin: Pin | None, known: Mapping[str, Tool], listing: Listing, bounds: MappingBounds
) -> Tool:
    """Return the tool as it was approved: a changed description must not reach a model before approval."""
    if pin is None or pin.digest == tool.digest:
        return tool
    approved = known.get(tool.name)
    if approved is not None and approved.digest == pin.digest:
        return approved
    # What was approved may be as costly as what is listed.
    bounds.between_tools()
    return map_tool(pin.definition, listing.naming, bounds.patterns)
