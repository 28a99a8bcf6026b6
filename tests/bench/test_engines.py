from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from bench.engines import MOST_GROWTH, Read, Size, agree, best_median, lines_of, p95_of_best, shown

pytestmark = pytest.mark.anyio
STORES: Any = ("sqlite", "postgres")


async def ask(_store: Any, number: int) -> int:
    return number + 1


def sizes(read: Read) -> list[Size]:
    return [Size(records, STORES, {"a read": read}) for records in (100, 1000)]


def lines(read: Read, small: list[float], large: list[float]) -> list[str]:
    """Show a read whose figures are those of SQLite and PostgreSQL, of the smaller and of the larger home."""
    figures = {"a read": [small, large]}
    return [shown(lines_of(sizes(read), figures, at)).splitlines()[-1].split() for at in range(2)]  # pyright: ignore[reportReturnType]


def test_a_read_within_its_limit_is_ok_and_one_beyond_it_is_a_miss():
    small, large = lines(Read(ask, 1, 0.2), [0.01, 0.2], [0.01, 0.201])
    assert small == ["a", "read", "0.010", "0.200", "0.20", "ok"]
    assert large == ["a", "read", "0.010", "0.201", "0.20", "1.00x", "MISS"]


def test_a_limit_beyond_sqlite_moves_with_sqlite():
    read = Read(ask, 1, 0.5, is_beyond_sqlite=True)
    small, large = lines(read, [1.0, 1.5], [3.0, 3.6])
    assert small[-1] == "ok"
    assert large[4:] == ["3.50", "2.40x", "MISS"]


def test_only_a_read_that_must_stay_level_misses_by_its_growth():
    grown = [0.01, 0.1 * MOST_GROWTH * 1.01]
    assert lines(Read(ask, 1, 1, is_level=True), [0.01, 0.1], grown)[1][-1] == "MISS"
    assert lines(Read(ask, 1, 1), [0.01, 0.1], grown)[1][-1] == "ok"


async def test_both_engines_must_give_the_same_answer_and_one_that_is_not_empty():
    def differs(store: Any, number: int) -> Awaitable[int]:
        return ask(store, number + (store == "postgres" and number == 3))

    async def gives_nothing(_store: Any, _number: int) -> tuple[int, ...]:
        return ()

    size = sizes(Read(ask, 5, 1))[0]
    await agree(size, size.reads["a read"])
    with pytest.raises(AssertionError, match="differ"):
        await agree(size, Read(differs, 5, 1))
    with pytest.raises(AssertionError, match="empty"):
        await agree(size, Read(gives_nothing, 5, 1))


def test_what_a_shared_host_takes_away_in_one_turn_is_not_counted():
    quick, slow = [float(n) for n in range(1, 101)], [float(n + 500) for n in range(1, 101)]
    assert best_median([slow, quick, slow]) == 50.5
    # Each question counts by its quickest turn, so that another turn may be slow for another question.
    mixed = [quick[:50] + slow[50:], slow[:50] + quick[50:]]
    assert p95_of_best(mixed) == p95_of_best([quick])
    assert 95 <= p95_of_best(mixed) <= 96.5
