"""Two remote servers behind one registry: ``python examples/two_servers.py servers.json``.

The file holds the ``mcpServers`` block that MCP hosts use, http entries only. A server that cannot be reached does not
affect the others.
"""

from __future__ import annotations

import asyncio
import sys

from headgate import Registry, from_servers


async def main(path: str) -> None:
    """Import what can be imported, say what cannot, and list the operations."""
    async with from_servers(path) as imported:
        for name, problem in imported.problems.items():
            print(f"{name}: {problem.message} {problem.hint}")
        registry = Registry(imported)
        for registration in registry:
            print(f"{registration.id}: {registration.description}")


if __name__ == "__main__":
    if len(sys.argv) < 2:  # noqa: PLR2004 - the name of the file
        sys.exit("usage: python examples/two_servers.py FILE")
    asyncio.run(main(sys.argv[1]))
