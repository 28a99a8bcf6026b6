"""Run the long tests, each file in a process for itself, and show what they measured, file by file.

`python tools/soak.py` runs all of them; `python tools/soak.py tests/web/test_load.py` runs some. A file that does not
end in time is stopped and counts as failed; the others go on.
"""

from __future__ import annotations

import argparse
import ast
import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 3 * 3600.0
_MARK = "pytest.mark.soak"
_NOTHING_TO_RUN = 5


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file: how it ended, how long it took, its counts and its figures."""

    file: str
    outcome: str
    seconds: float
    counts: str = ""
    figures: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether every test of the file passed or was skipped."""
        return self.outcome == "passed"


def soak_files(tests: Path) -> list[Path]:
    """Find the files that hold long tests."""
    return [
        file for file in sorted(tests.rglob("test_*.py")) if has_long_tests(file.read_text(encoding="utf-8"))
    ]


def has_long_tests(code: str) -> bool:
    """Say whether code uses the mark of long tests; in a string it is not used."""
    if _MARK not in code:
        return False
    names = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute))
    return any(ast.unparse(name) == _MARK for name in names)


def run_file(file: Path, limit_seconds: float) -> FileResult:
    """Run the long tests of one file; what they print goes through."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        # The family in which tests may add figures to the report.
        options = (
            "-m",
            "soak",
            "-p",
            "no:cacheprovider",
            "-o",
            "junit_family=xunit1",
            f"--junitxml={report}",
        )
        command = [sys.executable, "-m", "pytest", *options, str(file)]
        with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as running:
            try:
                code = running.wait(limit_seconds)
            except subprocess.TimeoutExpired:
                # With the programs that its tests started.
                os.killpg(running.pid, signal.SIGKILL)
                return FileResult(str(file), "did not end in time", time.monotonic() - started)
        outcome = "passed" if code == 0 else "has no test to run" if code == _NOTHING_TO_RUN else "failed"
        counts, figures = read_report(report) if report.exists() else ("", ())
    return FileResult(str(file), outcome, time.monotonic() - started, counts, figures)


def read_report(report: Path) -> tuple[str, tuple[str, ...]]:
    """Read how many tests there were and what they measured."""
    tree = ET.parse(report)  # noqa: S314 - written by pytest a moment ago
    suites = list(tree.iter("testsuite"))
    names = ("tests", "failures", "errors", "skipped")
    totals = {name: sum(int(suite.get(name, "0")) for suite in suites) for name in names}
    counts = ", ".join(f"{count} {name}" for name, count in totals.items() if count or name == "tests")
    figures = (one.get("value", "") for one in tree.iter("property") if one.get("name") == "figure")
    return counts, tuple(sorted(figures))


def summary(results: Iterable[FileResult]) -> str:
    """Write the figures of each file below its name."""
    lines: list[str] = []
    for one in results:
        lines.append(f"{one.file}: {one.outcome} after {one.seconds:.0f} s ({one.counts or 'no report'})")
        lines += [f"    {figure}" for figure in one.figures]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run the files and print the summary; gives the exit code."""
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--limit-seconds", type=float, default=LIMIT_SECONDS, help="for one file")
    options = parser.parse_args(arguments)
    files: list[Path] = options.files or [file.relative_to(ROOT) for file in soak_files(ROOT / "tests")]
    results: list[FileResult] = []
    for number, file in enumerate(files, 1):
        print(f"\n== {number} of {len(files)}: {file}", flush=True)
        results.append(run_file(file, options.limit_seconds))
    print(f"\n== Summary\n{summary(results)}")
    return 0 if all(one.is_good for one in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
