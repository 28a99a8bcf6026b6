"""Two remote servers behind one registry: ``python examples/two_servers.py servers.json``.

The file holds the ``mcpServers`` block that MCP hosts use, http entries only. A server that cannot be reached does not
affect the others.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from headgate import Registry, import_servers


async def main(document: Any) -> None:
    """Import what can be imported, say what cannot, and list the operations."""
    async with await import_servers(document) as imported:
        for name, problem in imported.problems.items():
            print(f"{name}: {problem.message} {problem.hint}")
        registry = Registry(imported)
        for registration in registry:
            print(f"{registration.id}: {registration.description}")


if __name__ == "__main__":
    if len(sys.argv) < 2:  # noqa: PLR2004 - the name of the file
        sys.exit("usage: python examples/two_servers.py FILE")
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
