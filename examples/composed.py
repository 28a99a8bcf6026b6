"""A local operation made of a remote one: ``python examples/composed.py URL``.

Without an argument it calls the server of ``examples/server.py``. The remote tools stay internal. Outsiders reach only
``notes/shout``, which may call ``remote/echo`` and nothing else, with the token of the import and never with one of
the caller.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from headgate import (
    CompositionAuthority,
    HandlerRegistration,
    OperationContext,
    OperationSpec,
    OperationType,
    Registry,
    ScopedEnv,
    Visibility,
    from_mcp,
)

SPEC = OperationSpec(
    "shout",
    "notes",
    op_type=OperationType.QUERY,
    visibility=Visibility.EXTERNAL,
    description="Echo a text, loudly.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    output_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def shout(value: Any, context: OperationContext) -> dict[str, str]:
    """Call the remote tool, and change its result."""
    assert context.env is not None
    blocks = await context.env.call("remote/echo", {"message": value["text"]})
    return {"text": blocks[0]["text"].upper() + "!"}


async def main(url: str) -> None:
    """Put both into one registry, and call the local one."""
    local = HandlerRegistration(
        SPEC,
        shout,
        composition_authority=CompositionAuthority("notes"),
        scoped_env=ScopedEnv(frozenset({"remote/echo"})),
    )
    async with from_mcp(url, "remote") as imported:
        registry = Registry([*imported, local])
        envelope = await registry.execute("notes/shout", {"text": "hello"})
        print(envelope.unwrap()["text"])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8322/mcp"))
