"""Report the missing extra instead of the missing module."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from headgate.errors import ConfigInvalid


@contextmanager
def needs_extra(name: str) -> Generator[None]:
    """Guard an import that works only with an extra installed.

    Raises:
        ConfigInvalid: a module of the extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "headgate":
            raise
        raise ConfigInvalid(
            f"This command needs the '{name}' extra ({error.name} is not installed).",
            hint=f"Install it with: pip install 'headgate[{name}]'",
        ) from error
