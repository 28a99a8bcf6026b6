"""The memory of an import is bounded by a constant: it does not depend on the size of the file."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path

from tests.on_socket import WAIT_SECONDS, environment

MIB = 1024 * 1024
SMALL_MIB, LARGE_MIB = 8, 96
#: Far less than the difference of the two files, and more than two measurements of one file differ.
GROWTH_MIB = 48
#: What an import of any file may take; `bench/importing.py` measures files of many gigabytes.
PEAK_MIB = 300

#: Imports one file after the other into two homes, and prints the peak memory after each.
PROGRAM = """
import asyncio, sys
from pathlib import Path
from headgate.home import open_home
from headgate.sources.importing import Importer
from headgate.sources.inputs.archives import opened_tree
from headgate.sources.planning import plan_imports
from headgate.sources.registry import chosen_sources
from headgate.store.engines.sqlite import SqliteStore

async def run(path, home):
    store = SqliteStore(open_home(home), lambda: 0)
    try:
        with opened_tree(path) as tree:
            (planned,) = plan_imports([tree], chosen_sources("mail")).imports
            report = await Importer(store, clock=lambda: 0).run(planned.job)
    finally:
        await store.close()
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(report.accepted, int(peak.split()[1]) // 1024)

for number, name in enumerate(sys.argv[1:]):
    asyncio.run(run(Path(name), Path(f"home{number}")))
"""


def mbox(path: Path, size_mib: int) -> Path:
    """Write mail of which most bytes are attachments, as in any mailbox."""
    chance = random.Random(7)
    number = 0
    with path.open("wb") as file:
        while file.tell() < size_mib * MIB:
            number += 1
            attached = base64.encodebytes(chance.randbytes(400_000))
            words = " ".join(f"w{chance.randrange(3000)}" for _ in range(200))
            file.write(
                f"From a@example.org Thu Jan  1 00:00:00 2026\nFrom: a@example.org\nSubject: number {number}\n"
                f"Message-ID: <{number}@example.org>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\n"
                f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
                f"--b\nContent-Type: text/plain\n\n{words}\n"
                f'--b\nContent-Type: image/x-raw; name="{number}.raw"\nContent-Transfer-Encoding: base64\n'
                f"Content-Disposition: attachment\n\n".encode()
            )
            file.write(attached + b"\n--b--\n\n")
    return path


def test_a_file_twelve_times_as_large_takes_no_more_memory(tmp_path: Path):
    files = [mbox(tmp_path / "small.mbox", SMALL_MIB), mbox(tmp_path / "large.mbox", LARGE_MIB)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, files)],
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * WAIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    (few, small), (many, large) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert many > 10 * few
    assert large - small < GROWTH_MIB
    assert large < PEAK_MIB
