import pytest
from hypothesis import settings

# A busy machine is not a slow program.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def anyio_backend():
    return "asyncio"
