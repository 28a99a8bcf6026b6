"""Run every benchmark: `python -m bench`, or some of them: `python -m bench model`."""

from __future__ import annotations

import sys

from bench import mcp, model, rest

ALL = {"model": model.main, "rest": rest.main, "mcp": mcp.main}


def main() -> int:
    """Run the benchmarks that were asked for."""
    asked = sys.argv[1:] or list(ALL)
    unknown = [name for name in asked if name not in ALL]
    if unknown:
        print(f"bench: there is no benchmark '{unknown[0]}'; there are {', '.join(ALL)}", file=sys.stderr)
        return 64
    for name in asked:
        ALL[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
