"""A faulty server and an import of it, for the length of a block."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from headgate.mcp.client.from_mcp import from_mcp
from headgate.operations.registration import OperationContext
from tests.hostile.server import faulty_server


@asynccontextmanager
async def importing(*, token=None, options=None, pins=None, **server: Any):
    async with (
        faulty_server(**server) as started,
        await from_mcp(started.url, "ns", token, options=options, pins=pins) as imported,
    ):
        yield started, imported


def context(registration, **more: Any):
    return OperationContext("request-1", capabilities=registration.capabilities, **more)


async def call(registration, value=None, **more: Any):
    return await registration.handler(value, context(registration, **more))


async def until(holds):
    """Wait for a condition that has no event, at most five seconds."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what is waited for belongs to the other side
            await asyncio.sleep(0)
