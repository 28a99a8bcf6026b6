"""The engines under test, each driven from plain functions: every call is run to its end."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.home import open_home
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.engines.store import Store
from headgate.store.postgres.migrate import open_place
from tests import postgres

NOW = 1_790_000_000_000_000


def _postgres(directory: Path) -> Store:
    place = open_place(postgres.database_url(), str(directory))
    return PostgresStore(place, itertools.count(NOW).__next__, connections=1)


#: Everything in this folder runs with each of these.
ENGINES: Mapping[str, Callable[[Path], Store]] = {
    "sqlite": lambda directory: SqliteStore(open_home(directory), itertools.count(NOW).__next__),
    **({"postgres": _postgres} if postgres.programs() else {}),
}


class Driven:
    """A store whose methods wait for their answer."""

    def __init__(self, engine: str, directory: Path, bare: Store | None = None) -> None:
        self._runner = asyncio.Runner()
        self.engine = engine
        self.directory = directory
        self.bare = bare or ENGINES[engine](directory)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.bare, name)
        if not inspect.iscoroutinefunction(method):
            return method
        return lambda *args, **kwargs: self._runner.run(method(*args, **kwargs))

    def together(self, *calls: Awaitable[Any]) -> list[Any]:
        """Make several calls at once; a failure is given in the place of its answer."""

        async def gathered() -> list[Any]:
            return await asyncio.gather(*calls, return_exceptions=True)

        return self._runner.run(gathered())

    def run(self, work: Any) -> Any:
        """Run anything that has to be awaited."""
        return self._runner.run(work)

    def opened_again(self) -> Driven:
        """Close the store and open it as a new process would."""
        self.close()
        return Driven(self.engine, self.directory)

    def close(self) -> None:
        """Close the store and its loop."""
        self._runner.run(self.bare.close())
        self._runner.close()


@contextmanager
def fresh(engine: str) -> Generator[Driven]:
    """Open an empty store for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="headgate-store-") as directory:
        store = Driven(engine, Path(directory) / "home")
        try:
            yield store
        finally:
            store.close()
