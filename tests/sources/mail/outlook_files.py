"""Files as Outlook saves a message: a compound file, written here by its rules."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

SECTOR = 512
FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
CUTOFF = 4096


class _Writer:
    def __init__(self) -> None:
        self.sectors: list[bytes] = []
        self.next: list[int] = []
        self.minis = b""
        self.next_mini: list[int] = []
        self.entries: list[list[Any]] = []

    def stream(self, content: bytes) -> int:
        if not content:
            return END
        first, count = len(self.sectors), -(-len(content) // SECTOR)
        for at in range(count):
            self.sectors.append(content[at * SECTOR : (at + 1) * SECTOR].ljust(SECTOR, b"\0"))
            self.next.append(first + at + 1 if at + 1 < count else END)
        return first

    def mini(self, content: bytes) -> int:
        first, count = len(self.next_mini), -(-len(content) // 64)
        self.minis += content.ljust(count * 64, b"\0")
        self.next_mini += [*range(first + 1, first + count), END]
        return first

    def add(self, name: str, held: bytes | Mapping[str, Any], kind: int = 1) -> int:
        number = len(self.entries)
        entry: list[Any] = [name, kind, FREE, FREE, FREE, END, 0]
        self.entries.append(entry)
        if isinstance(held, bytes):
            entry[1], entry[6] = 2, len(held)
            if held:
                entry[5] = self.stream(held) if len(held) >= CUTOFF else self.mini(held)
            return number
        before = None
        for inner, content in held.items():
            child = self.add(inner, content)
            # A tree with one branch is a tree.
            if before is None:
                entry[4] = child
            else:
                self.entries[before][3] = child
            before = child
        return number

    def table(self) -> bytes:
        return struct.pack(f"<{len(self.next)}I", *self.next)


def compound(storage: Mapping[str, Any]) -> bytes:
    """Write a file of these storages and streams."""
    writer = _Writer()
    writer.add("Root Entry", storage, 5)
    writer.entries[0][5:] = writer.stream(writer.minis), len(writer.minis)
    mini_table = struct.pack(f"<{len(writer.next_mini)}I", *writer.next_mini)
    first_mini = writer.stream(mini_table.ljust(-(-len(mini_table) // SECTOR) * SECTOR, b"\xff"))
    directory = b"".join(
        struct.pack(
            "<64sHBBIII36xII4x",
            name.encode("utf-16-le").ljust(64, b"\0"),
            2 * len(name) + 2,
            kind,
            1,
            left,
            right,
            child,
            start,
            size,
        )
        for name, kind, left, right, child, start, size in writer.entries
    )
    first_entry = writer.stream(directory)
    count = 1
    while (len(writer.next) + count) * 4 > count * SECTOR:
        count += 1
    tables = list(range(len(writer.next), len(writer.next) + count))
    writer.next += [TABLE] * count
    table = writer.table().ljust(count * SECTOR, b"\xff")
    writer.sectors += [table[at : at + SECTOR] for at in range(0, len(table), SECTOR)]
    header = struct.pack(
        "<8s16xHHHHH6x9I109I",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        *(0x3E, 3, 0xFFFE, 9, 6),
        *(0, count, first_entry, 0, CUTOFF, first_mini, 1, END, 0),
        *[*tables, *[FREE] * (109 - len(tables))],
    )
    return header + b"".join(writer.sectors)


def properties(head: int, values: Mapping[int, Any], charset: str = "") -> dict[str, Any]:
    """Return the streams of properties by their numbers; texts are Unicode if no charset is named."""
    streams: dict[str, Any] = {}
    fixed = b"\0" * head
    for key, value in values.items():
        if isinstance(value, str):
            kind, content = (
                (0x001E, value.encode(charset)) if charset else (0x001F, value.encode("utf-16-le"))
            )
        elif isinstance(value, bytes):
            kind, content = 0x0102, value
        elif isinstance(value, Mapping):
            kind, content = 0x000D, value
        elif isinstance(value, datetime):
            ticks = round((value - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds() * 10_000_000)
            fixed += struct.pack("<HHIQ", 0x0040, key, 6, ticks)
            continue
        else:
            fixed += struct.pack("<HHIQ", 3, key, 6, value)
            continue
        fixed += struct.pack("<HHIQ", kind, key, 6, len(content))
        streams[f"__substg1.0_{key:04X}{kind:04X}"] = content
    return {"__properties_version1.0": fixed, **streams}


def person(kind: int, name: str, address: str) -> dict[int, Any]:
    return {0x0C15: kind, 0x3001: name, 0x3003: address}


def item(
    values: Mapping[int, Any],
    receivers: Sequence[Mapping[int, Any]] = (),
    attached: Sequence[Mapping[int, Any]] = (),
    *,
    charset: str = "",
    head: int = 32,
) -> dict[str, Any]:
    """Return the storage of a message."""
    return {
        **properties(head, values, charset),
        **{
            f"__recip_version1.0_#{number:08X}": properties(8, values, charset)
            for number, values in enumerate(receivers)
        },
        **{
            f"__attach_version1.0_#{number:08X}": properties(8, values, charset)
            for number, values in enumerate(attached)
        },
    }


SENT = datetime(2026, 3, 3, 8, tzinfo=UTC)
LETTER = {
    0x001A: "IPM.Note",
    0x0037: "Die Brücke",
    0x0039: SENT,
    0x0042: "Jörg Müller",
    0x0065: "Joerg@Example.ORG",
    0x0E07: 1,
    0x1000: "The planks are here.\r\n\r\nJoerg\r\n",
    0x1035: "<one@example.org>",
}
RECEIVERS = [
    person(1, "Babbage, C.", "/O=CLUB/OU=EX/CN=RECIPIENTS/CN=CHARLES"),
    person(2, "Team", "team@example.org"),
]
PLAN = {0x3707: "Plan für März.txt", 0x370E: "text/plain", 0x3701: b"Nails and planks " * 400}
FORWARDED = item(
    {0x0037: "Nails", 0x0039: SENT, 0x0042: "Zoë", 0x0065: "zoe@example.org", 0x1000: "Of iron."},
    [person(1, "Ada", "ada@example.org")],
    [{0x3707: "price.txt", 0x370E: "text/plain", 0x3701: b"Three crowns"}],
    head=24,
)
MSG = compound(item(LETTER, RECEIVERS, [PLAN, {0x3705: 5, 0x3001: "Nails", 0x3701: FORWARDED}]))
