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


_USAGE = f"""usage: python -m bench [benchmark ...] [options of the benchmark]

Without a name every benchmark runs: {", ".join(ALL)}"""
_USAGE_ERROR = 64


def main() -> int:
    """Run the benchmarks that were asked for; options belong to the benchmark that is named before them."""
    names = list(itertools.takewhile(lambda text: not text.startswith("-"), sys.argv[1:]))
    options = sys.argv[1 + len(names) :]
    if options and not names:
        is_help = bool({"-h", "--help"} & set(options))
        print(_USAGE, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else _USAGE_ERROR
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"bench: there is no benchmark '{unknown[0]}'; there are {', '.join(ALL)}", file=sys.stderr)
        return _USAGE_ERROR
    for name in names or ALL:
        ALL[name](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
