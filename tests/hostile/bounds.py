"""How much a hostile case may cost: memory and the processor's time, both of this very process."""

import re
import time
from pathlib import Path

MEGABYTE = 1024 * 1024


class Memory:
    """How far the process's memory rises above where it was."""

    def __enter__(self):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self.before = self._peak()
        return self

    def __exit__(self, *_):
        self.growth_bytes = self._peak() - self.before

    @staticmethod
    def _peak():
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


class Effort:
    """How much of the processor's time something takes, whatever else runs on this machine."""

    def __enter__(self):
        self.before = time.process_time()
        return self

    def __exit__(self, *_):
        self.seconds = time.process_time() - self.before
