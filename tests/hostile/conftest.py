"""What the hostile cases share."""

import asyncio

import pytest

from tests.hostile.bounds import MEGABYTE, Memory
from tests.mcp.client.importing import call, importing


@pytest.fixture(scope="session")
def everything_is_loaded():
    """Let no case pay for what is loaded once."""

    async def load():
        async with importing() as (_, imported):
            await call(imported[0])

    asyncio.run(load())


@pytest.fixture
def little_memory(everything_is_loaded):
    """Less than 32 megabytes more than before, the hostile server's own included."""
    with Memory() as memory:
        yield
    assert memory.growth_bytes < 32 * MEGABYTE
