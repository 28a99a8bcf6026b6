"""Measure operations and imports: ``python -m bench.operations``; fails when a limit is exceeded."""

from __future__ import annotations

import sys

from bench.operations import client, registry, validators


def main() -> int:
    """Print the figures; return 1 when one is over its limit."""
    found = registry.measure()
    print(f"handler alone          {found.handler_us:8.2f} us processor {found.handler_wall_us:8.2f} us wall")
    print(f"registry.execute       {found.execute_us:8.2f} us processor {found.execute_wall_us:8.2f} us wall")
    print(f"registry overhead      {found.overhead_us:8.2f} us processor (limit {registry.LIMIT_US:.0f})")
    for one in validators.measure():
        ratio = one.python_us / one.rust_us
        print(f"{one.case:32} {one.rust_us:10.2f} us, jsonschema {one.python_us:12.2f} us ({ratio:.0f}x)")
    return max(client.main(), 0 if found.overhead_us < registry.LIMIT_US else 1)


if __name__ == "__main__":
    sys.exit(main())
