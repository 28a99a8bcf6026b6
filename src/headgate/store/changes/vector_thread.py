"""The thread that makes vectors in the background: it reads and embeds, and the writer puts the vectors in.

The model is slow and needs no lock of the store, so neither readers nor the writer wait for it. Of several processes
on a home, the one that holds a lock file does this work.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from headgate.store.changes import vector_making
from headgate.store.changes.vector_making import Portion
from headgate.store.models.model import MeaningModel
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.tasks import Supervisor
from headgate.telemetry import get_logger

#: How often to look for texts that another process has stored.
_LOOK_SECONDS = 5.0
#: By which name failures are shown.
LOOP = "vectors"
#: While much is to be made, the log says now and then how much is left.
_PORTIONS_PER_LINE = 32


class VectorStore(Protocol):
    """What the thread needs of an engine."""

    def scan(self, work: Callable[[Database, Catalog], Any]) -> Any:
        """Read on a connection for this alone."""
        ...

    async def change(self, work: Callable[[Database], None]) -> None:
        """Do some work in one write transaction."""
        ...

    def has_turn(self) -> bool:
        """Return whether this process makes the vectors: of several, one does."""
        ...

    def end_turn(self) -> None:
        """Let another process make them."""
        ...


class VectorThread:
    """Makes vectors until it is closed."""

    def __init__(self, store: VectorStore, model: MeaningModel, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._store = store
        self._model = model
        self._changed = threading.Condition()
        #: How often texts were reported, and how many of these reports have been dealt with.
        self._reported = 1
        self._seen = 0
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="headgate-vectors", daemon=True)
        self._thread.start()

    def report(self) -> None:
        """Let the thread look for new texts now."""
        with self._changed:
            self._reported += 1
            self._changed.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait until everything that was reported has its vectors; returns whether it has."""
        with self._changed:
            reported = self._reported
            return self._changed.wait_for(lambda: self._seen >= reported, seconds)

    def close(self) -> None:
        """End the thread after the portion it is at."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._is_closing:
                self._round()
        finally:
            self._store.end_turn()

    def _round(self) -> None:
        """Make everything that is to be made, then wait for more; after a failure, whatever it is, longer each time."""
        reported = self._reported
        try:
            if self._store.has_turn():
                self._make_all()
                self._seen = reported
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence is worse than any failure
            self._wait(lambda: self._is_closing, self._supervisor.failed(LOOP, error))
        else:
            self._supervisor.worked(LOOP)
            self._wait(lambda: self._is_closing or self._reported > reported, _LOOK_SECONDS)

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> None:
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(is_over, seconds)

    def _make_all(self) -> None:
        count = 0
        for number in itertools.count():
            portion = None if self._is_closing else self._next(logs=number % _PORTIONS_PER_LINE == 1)
            if portion is None:
                break
            made = vector_making.embed(portion, self._model)
            asyncio.run(self._store.change(partial(vector_making.put, portion=portion, made=made)))
            count += len(portion.texts)
        if count:
            get_logger().info("vectors_made", count=count)

    def _next(self, *, logs: bool) -> Portion | None:
        key = vector_making.model_key(self._model.embedder.identity)

        def work(database: Database, catalog: Catalog) -> Portion | None:
            if logs:
                count = vector_making.pending_records(database, catalog, key)
                get_logger().info("vectors_pending", count=count)
            return vector_making.next_portion(database, catalog, key)

        return self._store.scan(work)
