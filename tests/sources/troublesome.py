"""A source whose files do to their process what they say, installed as another package's is."""

from __future__ import annotations

from pathlib import Path

#: Each line of a file is a row, or names what happens to the process that reads it.
_SOURCE = r"""
import os
import re
import signal
import time

from headgate.sources.declaring import TEXT, StreamSpec, declaration
from headgate.sources.file_source import read_each
from headgate.sources.protocol import Certainty, Recognised, Row, Source
from headgate.sources.reading_note import NOTE

PID_FILES = []
LINES = StreamSpec(name="lines", label="Lines", detail="A line.", fields={"id": TEXT, "text": TEXT})


def note_pid(path):
    PID_FILES.append(path)
    with open(path, "w") as written:
        written.write(str(os.getpid()))


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


# Where nothing ends them, they end by themselves after a while: a test has to see that, and the machine to stay.


def allocate():
    held = [bytearray(16 * 1024 * 1024) for _ in range(192)]


def loop():
    end = time.monotonic() + 30
    while time.monotonic() < end:
        pass


def hold():
    re.match("(a+)+$", "a" * 29 + "b")  # Without giving Python's lock back.


def fail():
    raise RuntimeError("a mistake of the parser")


def linger():
    for _ in range(3000):  # It makes steps, and gives nothing.
        NOTE.step()
        time.sleep(0.01)
    open(f"{PID_FILES[-1]}.lingered", "w").close()


TROUBLES = {each.__name__: each for each in (crash, allocate, loop, hold, fail, linger)}


class Troublesome(Source):
    name = "troublesome"
    title = "Troublesome"
    streams = (LINES,)

    def detect(self, tree):
        files = [file for file in tree.files if file.suffix == ".trouble" and file.head]
        for file in files:
            begin, _, rest = file.open().read(1000).decode().partition("\n")
            if begin == "at once":
                crash()
            elif begin == "at first":
                note_pid(rest.strip())
                linger()
        return [Recognised(self.name, "Troublesome", files, Certainty.EXPORT)] if files else []

    def read(self, found, resume):
        return read_each(found, resume, self._read)

    def _read(self, file, content):
        for number, line in enumerate(content.read().decode().splitlines(), 1):
            if line.startswith("pid "):
                note_pid(line[4:])
            elif line in TROUBLES:
                TROUBLES[line]()
            yield Row("lines", {"id": f"{file.name}-{number}", "text": line}, place=f"{file.name} {number}")


SOURCE = Troublesome()
"""


def install(place: Path) -> dict[str, str]:
    """Install the source below a directory, and give the environment in which it is found."""
    package = place / "packages"
    info = package / "troublesome-1.dist-info"
    info.mkdir(parents=True)
    (package / "troublesome.py").write_text(_SOURCE, encoding="utf-8")
    (info / "entry_points.txt").write_text(
        "[headgate.sources]\ntroublesome = troublesome:SOURCE\n", encoding="utf-8"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: troublesome\nVersion: 1\n", encoding="utf-8")
    return {"PYTHONPATH": str(package)}
