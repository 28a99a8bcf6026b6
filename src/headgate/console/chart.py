"""A chart of bars, drawn on the server: what each client read on each day."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.console.formatting import day, number
from headgate.console.pages import View
from headgate.model.ids import ClientId
from headgate.model.instants import DAY_US

_WIDTH, _HEIGHT = 720, 190
_LEFT, _BOTTOM, _TOP = 56, 34, 20
_SERIES = 4
_OTHERS = "others"
_BAR_SHARE = 0.72


def reads_chart(
    reads: Mapping[int, Mapping[ClientId, int]], today: int, days: int, called: Mapping[str, str]
) -> View:
    """Draw the records read on each of the last days, stacked by client; the largest clients have a colour."""
    names = _series(reads)
    top = _rounded_up(max((sum(of_day.values()) for of_day in reads.values()), default=0))
    floor, step = _HEIGHT - _BOTTOM, (_WIDTH - _LEFT) / days
    first = today - days + 1
    bars: list[View] = []
    for at in range(first, today + 1):
        x, y = _LEFT + (at - first) * step + step * (1 - _BAR_SHARE) / 2, float(floor)
        for series, name in enumerate(names, 1):
            count = _count(reads.get(at, {}), name, names)
            height = count / top * (floor - _TOP)
            y -= height
            if count:
                title = f"{day(at * DAY_US)}: {called.get(name, name)}, {number(count)} records"
                bars.append(
                    View(x=x, y=y, width=step * _BAR_SHARE, height=height, series=series, title=title)
                )
    ticks = [
        View(at=_WIDTH if at == today else _LEFT + (at - first + 0.5) * step, label=day(at * DAY_US)[:-5])
        for at in range(today, first, -7)
    ]
    levels = [
        View(at=floor - share * (floor - _TOP), label=number(int(top * share))) for share in (0, 0.5, 1)
    ]
    total = sum(sum(of_day.values()) for of_day in reads.values())
    legend = tuple((series, called.get(name, name)) for series, name in enumerate(names, 1))
    return View(
        width=_WIDTH,
        height=_HEIGHT,
        left=_LEFT,
        floor=floor,
        bars=tuple(bars),
        days=tuple(reversed(ticks)),
        levels=tuple(levels),
        legend=legend,
        total=total,
    )


def _series(reads: Mapping[int, Mapping[ClientId, int]]) -> list[str]:
    totals: dict[str, int] = {}
    for of_day in reads.values():
        for client, count in of_day.items():
            totals[client] = totals.get(client, 0) + count
    names = sorted(totals, key=lambda name: -totals[name])
    return names if len(names) <= _SERIES + 1 else [*names[:_SERIES], _OTHERS]


def _count(of_day: Mapping[ClientId, int], name: str, names: list[str]) -> int:
    if name == _OTHERS:
        return sum(count for client, count in of_day.items() if client not in names)
    return of_day.get(ClientId(name), 0)


def _rounded_up(value: int) -> int:
    """Round up to a number that is easy to read: 1, 2 or 5 with noughts."""
    power = 1
    while True:
        for step in (2, 4, 10):
            if value <= step * power:
                return step * power
        power *= 10
