"""Time small things fairly, and print them side by side."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from statistics import median


def microseconds(work: Callable[[], object], *, rounds: int = 15) -> float:
    """Give the median time of one call, from rounds long enough for the clock."""
    timer = timeit.Timer(work)
    loops, _ = timer.autorange()
    loops = max(1, loops // 10)
    return median(timer.repeat(rounds, loops)) / loops * 1e6


def print_ratios(title: str, floor: str, rows: dict[str, float]) -> None:
    """Print each figure in microseconds and as a multiple of the floor's."""
    print(f"\n{title}\n{'':40} {'us':>9} {'x floor':>8}")
    for name, figure in rows.items():
        print(f"{name:40} {figure:9.2f} {figure / rows[floor]:8.2f}{'  (floor)' if name == floor else ''}")
