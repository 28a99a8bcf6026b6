"""What ``headgate import`` prints: previews, progress and summaries, with all text from files made printable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.sources.importing import ImportProgress, ImportReport
    from headgate.sources.previewing import ImportPreview, StreamPreview

_CELL_CHARS = 28
_LINE_CHARS = 110
_REJECTS_SHOWN = 20
_KIB = 1024
_MINUTE = 60


def printable(value: object, most: int = _CELL_CHARS) -> str:
    """Write a value on one line, without characters that a terminal would obey."""
    text = "" if value is None else str(value)
    shown = "".join(one if one.isprintable() else " " for one in text[: most + 1])
    return shown if len(text) <= most else f"{shown[: most - 1]}…"


def preview_text(preview: ImportPreview) -> str:
    """Draw the columns and first rows of every stream that has any."""
    shown = [one for one in preview.streams if one.rows] or preview.streams
    lines = [line for one in shown for line in _stream_lines(one)]
    lines += [
        f"  rejected: {printable(one.place, 60)}: {printable(one.reason, 80)}" for one in preview.rejects
    ]
    return "\n".join(lines)


def _stream_lines(stream: StreamPreview) -> Iterable[str]:
    yield f"  stream '{stream.stream}'"
    cells = [
        (printable(one.name), one.type, ", ".join(one.roles), *_samples(stream.rows, one.name))
        for one in stream.columns
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"    {line[:_LINE_CHARS].rstrip()}"


def _samples(rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Return the values of one column, one for each row: a row of the table shows a column of the file."""
    return [printable(row.get(name)) for row in rows]


def report_lines(report: ImportReport) -> Iterable[str]:
    """Sum up one import."""
    for name, count in report.streams.items():
        if count.accepted or count.added or count.removed:
            known = count.accepted - count.added
            gone = f", {count.removed:,} removed" if count.removed else ""
            yield f"  {name}: {count.added:,} new" + (f", {known:,} known already" if known else "") + gone
    if report.attachment_count:
        yield f"  {report.attachment_count:,} files stored"
    if report.reject_count:
        yield f"  {report.reject_count:,} rejected:"
        for one in report.rejects[:_REJECTS_SHOWN]:
            yield f"    {printable(one.place, 60)}: {printable(one.reason, 120)}"
        if report.reject_count > _REJECTS_SHOWN:
            yield f"    and {report.reject_count - _REJECTS_SHOWN:,} more"
    if report.failure:
        yield f"  Reading ended early: {printable(report.failure, 200)}"


@contextmanager
def import_progress() -> Generator[Callable[[ImportProgress], None]]:
    """Show rows, rate and time left on one line of standard error, if it is a terminal; erase it at the end."""
    is_shown, started, last = sys.stderr.isatty(), time.monotonic(), ""

    def show(progress: ImportProgress) -> None:
        nonlocal last
        if not is_shown:
            return
        text = progress_text(progress, time.monotonic() - started)
        sys.stderr.write(f"\r{text.ljust(len(last))}")
        sys.stderr.flush()
        last = text

    try:
        yield show
    finally:
        if last:
            sys.stderr.write(f"\r{' ' * len(last)}\r")


def progress_text(progress: ImportProgress, seconds: float) -> str:
    """Write how far an import is: rows, rate, share and time left as far as the source says them."""
    text = f"importing  {progress.rows:,} rows, {progress.rows / max(seconds, 0.001):,.0f} a second"
    if progress.total_bytes and progress.done_bytes:
        share = min(progress.done_bytes / progress.total_bytes, 1)
        text += f", {share * 100:.0f} %, {_duration(seconds / share - seconds)} left"
    return text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size_text(count: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if count < _KIB:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KIB
    return f"{count:.1f} GiB"
