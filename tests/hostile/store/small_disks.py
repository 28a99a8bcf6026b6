"""Real file systems that are so small that a test can fill them."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, mebibytes: int) -> Generator[Path]:
    """Mount a file system at a new directory."""
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    ).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill_disk(place: Path, name: str = "ballast") -> None:
    """Write until nothing more fits, not even one byte."""
    with (place / name).open("ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise


def free_disk(place: Path, name: str = "ballast") -> None:
    """Remove what filled a disk."""
    (place / name).unlink()
