"""Disks that can be looked at or fail: a recording of every effect, images after a power cut, a failing call."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw


@dataclass(frozen=True, slots=True)
class Effect:
    """One call that changes a disk."""

    kind: str
    file: str
    at: int = 0
    content: bytes = b""


@dataclass
class Disk:
    """Notes every effect, and fails at one of them if asked to."""

    effects: list[Effect] = field(default_factory=list)
    calls: int = 0
    fail_at: int | None = None
    fails_for_good: bool = False

    def note(self, effect: Effect) -> None:
        self.calls += 1
        if self.fail_at is not None and self._is_due():
            raise apsw.IOError("the disk fails")
        self.effects.append(effect)

    def _is_due(self) -> bool:
        assert self.fail_at is not None
        return self.calls >= self.fail_at if self.fails_for_good else self.calls == self.fail_at


@contextmanager
def watched(disk: Disk, name: str = "watched") -> Iterator[str]:
    """Register a file system that does what the usual one does, through the disk."""

    class File(apsw.VFSFile):
        def __init__(self, path: Any, flags: Any) -> None:
            self._name = Path(path.filename() if isinstance(path, apsw.URIFilename) else path or "temp").name
            super().__init__("", path, flags)

        def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
            disk.note(Effect("write", self._name, offset, bytes(data)))
            super().xWrite(data, offset)

        def xTruncate(self, newsize: int) -> None:  # noqa: N802 - the same
            disk.note(Effect("truncate", self._name, newsize))
            super().xTruncate(newsize)

        def xSync(self, flags: int) -> None:  # noqa: N802 - the same
            disk.note(Effect("sync", self._name))
            super().xSync(flags)

    class FileSystem(apsw.VFS):
        def __init__(self) -> None:
            super().__init__(name, "")

        def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:  # noqa: N802 - the same
            return File(name, flags)

        def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001 - the same
            disk.note(Effect("delete", Path(filename).name))
            super().xDelete(filename, syncdir)

    system = FileSystem()
    try:
        yield name
    finally:
        system.unregister()


Image = dict[str, bytearray]


def images(
    effects: Sequence[Effect], cuts: Sequence[int], chance: random.Random
) -> Iterator[tuple[int, Image]]:
    """Give what a disk may hold when power fails before each cut.

    What was synced is there. Of the rest each write may be missing, torn or there, in any combination.
    """
    sure: Image = {}
    waiting: dict[str, list[Effect]] = {}
    at = 0
    for cut in sorted(cuts):
        for effect in effects[at:cut]:
            if effect.kind in {"sync", "delete"}:
                for earlier in waiting.pop(effect.file, []):
                    _apply(sure, earlier)
            if effect.kind == "delete":
                sure.pop(effect.file, None)
            elif effect.kind != "sync":
                waiting.setdefault(effect.file, []).append(effect)
        at = cut
        image = {name: bytearray(content) for name, content in sure.items()}
        for effect in (one for several in waiting.values() for one in several):
            _perhaps(image, effect, chance)
        yield cut, image


def _perhaps(image: Image, effect: Effect, chance: random.Random) -> None:
    fate = chance.random()
    if fate < 0.5:
        image.setdefault(effect.file, bytearray())
        return
    if fate < 0.8 and effect.content:
        effect = Effect(
            "write", effect.file, effect.at, effect.content[: chance.randrange(len(effect.content))]
        )
    _apply(image, effect)


def _apply(image: Image, effect: Effect) -> None:
    file = image.setdefault(effect.file, bytearray())
    if effect.kind == "truncate":
        del file[effect.at :]
        return
    if len(file) < effect.at:
        file.extend(bytes(effect.at - len(file)))
    file[effect.at : effect.at + len(effect.content)] = effect.content
