"""What ``headgate import`` prints: previews, progress and summaries, with all text from files made printable."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import cast

from headgate.cli.terminal import many, printable, status_line
from headgate.sources.importing import ImportProgress, ImportReport
from headgate.sources.planning import ImportPreview, StreamPreview

_CELL_CHARS = 28
_FEWEST_CELL_CHARS = 6
_LINE_CHARS = 110
_GAP = "  "
_BAR_CHARS = 14
_REJECTS_SHOWN = 20
_MINUTE = 60


def preview_text(preview: ImportPreview) -> str:
    """Draw the columns and first rows of every stream that has any."""
    streams = [stream for stream in preview.streams if stream.rows] or preview.streams
    lines = [line for stream in streams for line in _stream_lines(stream)]
    lines += [
        f"  rejected: {printable(reject.place, 60)}: {printable(reject.reason, 80)}"
        for reject in preview.rejects
    ]
    return "\n".join(lines)


def _stream_lines(stream: StreamPreview) -> Iterable[str]:
    """Draw a stream with its columns one below the other: name, type, uses, and the value in each of the first rows."""
    yield f"  stream '{stream.stream}'"
    about = [
        (printable(column.name, _CELL_CHARS), column.type, ", ".join(column.roles))
        for column in stream.columns
    ]
    widths = [max(map(len, column)) for column in zip(*about, strict=True)]
    samples = [[_sample(row.get(column.name)) for row in stream.rows] for column in stream.columns]
    longest = [max(map(len, column)) for column in zip(*samples, strict=True)]
    most = _cell_chars(_LINE_CHARS - sum(widths) - len(_GAP) * len(widths), longest)
    widths += [min(width, most) for width in longest]
    for first, values in zip(about, samples, strict=True):
        cells = (*first, *(printable(value, most) for value in values))
        line = _GAP.join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        yield f"    {line.rstrip()}"


def _sample(value: object) -> str:
    """Write a value for people: a list as its parts, an object as JSON."""
    if isinstance(value, list):
        return printable(", ".join(map(str, cast("list[object]", value)[:_CELL_CHARS])), _CELL_CHARS)
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | bool) else value
    return printable(text, _CELL_CHARS)


def _cell_chars(room: int, longest: Sequence[int]) -> int:
    """Choose how much of a value is shown, so that every row has a place on the line."""
    left = room - len(_GAP) * len(longest)
    fits = (most for most in range(_CELL_CHARS, 0, -1) if sum(min(width, most) for width in longest) <= left)
    return max(next(fits, 0), _FEWEST_CELL_CHARS)


def report_lines(report: ImportReport) -> Iterable[str]:
    """Sum up one import."""
    for name, count in report.streams.items():
        if count.accepted or count.added or count.removed:
            gone = f", {count.removed:,} removed" if count.removed else ""
            yield (
                f"  {name}: {count.added:,} new"
                + (f", {count.known:,} known already" if count.known else "")
                + gone
            )
    if report.attachment_count:
        # Known ones among them are not stored again.
        yield f"  with {many(report.attachment_count, 'file')}"
    if report.reject_count:
        yield f"  {report.reject_count:,} rejected:"
        for reject in report.rejects[:_REJECTS_SHOWN]:
            yield f"    {printable(reject.place, 60)}: {printable(reject.reason, 120)}"
        if report.reject_count > _REJECTS_SHOWN:
            yield f"    and {report.reject_count - _REJECTS_SHOWN:,} more"
    if report.failure:
        yield f"  Reading ended early: {printable(report.failure, 200)}"


@contextmanager
def import_progress() -> Generator[Callable[[ImportProgress], None]]:
    """Show rows, rate and time left as a status line."""
    started = time.monotonic()
    with status_line() as show:
        yield lambda progress: show(progress_text(progress, time.monotonic() - started))


def progress_text(progress: ImportProgress, seconds: float) -> str:
    """Write how far an import is: a bar, the share and the time left as far as the source says them, rows and rate."""
    rows = f"{progress.rows:,} rows, {progress.rows / max(seconds, 0.001):,.0f} a second"
    if not (progress.total_bytes and progress.done_bytes):
        return f"importing  {rows}"
    share = min(progress.done_bytes / progress.total_bytes, 1)
    bar = ("#" * round(share * _BAR_CHARS)).ljust(_BAR_CHARS, "-")
    return f"importing [{bar}] {share * 100:.0f} %, {rows}, {_duration(seconds / share - seconds)} left"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), _MINUTE)
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
