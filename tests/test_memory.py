"""How much memory is left: limits of the process and of its control groups."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate import memory
from headgate.errors import Overloaded
from headgate.store.sqlite.database import translate_errors

MIB = 1 << 20
#: Takes pieces of a body as the event loop reads them, small things that stay between them, and lets the pieces go.
HOLES = """
from headgate import memory
memory.economise()
before = memory.left_bytes()
pieces, small = [], []
for number in range(400):
    pieces.append(bytes(256 * 1024))
    small.append(bytes(2000))
taken = before - memory.left_bytes()
del pieces
print(taken >> 20, before - memory.left_bytes() >> 20)
"""
#: Takes nearly everything, and lets go of it in a cycle of objects, as an error does that holds its frames.
CYCLE = """
from headgate import memory
memory.economise()
held = [bytes(memory.left_bytes() - memory.RESERVE_BYTES)]
held.append(held)
del held
before = memory.left_bytes() < memory.RESERVE_BYTES + (16 << 20)
memory.require(16 << 20)
print(before)
"""


@pytest.fixture(autouse=True)
def read_again() -> Iterator[None]:
    yield
    memory._limits.cache_clear()
    memory._total_bytes.cache_clear()


def limited(monkeypatch: pytest.MonkeyPatch, place: Path, most: str, taken: int) -> None:
    """Put the process into a control group that has a limit."""
    group = place / "a"
    group.mkdir()
    (place / "memory.max").write_text("max\n")
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.stat").write_text(f"anon {taken}\nfile 99999999999\n")
    listed = place / "cgroup"
    listed.write_text("4:memory:/old\n0::/a\n")
    monkeypatch.setattr(memory, "_CGROUPS", place)
    monkeypatch.setattr(memory, "_OWN_GROUPS", listed)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    memory._limits.cache_clear()
    memory._total_bytes.cache_clear()


def test_what_a_control_group_may_take_is_measured_without_pages_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    limited(monkeypatch, tmp_path, str(512 * MIB), 412 * MIB)
    assert memory.left_bytes() == 100 * MIB
    assert memory.share(256 * MIB, 8) == 64 * MIB
    memory.require(52 * MIB)
    with pytest.raises(Overloaded):
        memory.require(53 * MIB)


def test_a_process_without_a_limit_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    limited(monkeypatch, tmp_path, "max", 412 * MIB)
    assert memory.left_bytes() == sys.maxsize
    assert memory.share(256 * MIB, 8) == 256 * MIB


@pytest.mark.parametrize(("most", "is_alone"), [("max", False), (str(512 * MIB), True)])
def test_costly_work_is_done_alone_only_while_little_memory_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: str, *, is_alone: bool
):
    limited(monkeypatch, tmp_path, most, 412 * MIB)
    with memory.alone():
        assert memory._alone.locked() is is_alone
    assert not memory._alone.locked()


def test_what_is_freed_counts_as_left_whatever_stays_beside_it():
    command = ("prlimit", f"--as={1024 * MIB}", sys.executable, "-c", HOLES)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    taken, still_taken = map(int, printed.split())
    assert taken >= 100
    assert still_taken < 10


def test_what_only_cycles_of_objects_hold_is_freed_before_a_request_is_refused():
    command = ("prlimit", f"--as={1024 * MIB}", sys.executable, "-c", CYCLE)
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "True\n"


def test_a_failed_allocation_in_the_store_is_a_typed_refusal():
    with pytest.raises(Overloaded), translate_errors():
        raise MemoryError
