"""Run every benchmark: `python -m bench`, or some of them: `python -m bench store --records 1000000`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence

from bench import (
    aggregates,
    chain,
    console,
    engines,
    importing,
    maintenance,
    mcp,
    model,
    rest,
    search,
    semantic,
    store,
    workers,
)
from bench.scale import report as scale

ALL: Mapping[str, Callable[[Sequence[str]], None]] = {
    "model": lambda _: model.main(),
    "rest": lambda _: rest.main(),
    "mcp": lambda _: mcp.main(),
    "store": store.main,
    "engines": engines.main,
    "aggregates": aggregates.main,
    "chain": chain.main,
    "search": search.main,
    "semantic": semantic.main,
    "maintenance": maintenance.main,
    "importing": importing.main,
    "console": console.main,
    "workers": workers.main,
    "scale": scale.main,
}


def main() -> int:
    """Run the benchmarks that were asked for."""
    names = list(itertools.takewhile(lambda text: not text.startswith("-"), sys.argv[1:]))
    asked = names or list(ALL)
    unknown = [name for name in asked if name not in ALL]
    if unknown:
        print(f"bench: there is no benchmark '{unknown[0]}'; there are {', '.join(ALL)}", file=sys.stderr)
        return 64
    for name in asked:
        ALL[name](sys.argv[1 + len(names) :])
    return 0


if __name__ == "__main__":
    sys.exit(main())
