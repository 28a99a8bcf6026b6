"""The thread that makes vectors in the background: it reads and embeds, and the writer puts the vectors in.

The model is slow and needs no lock of the store, so neither readers nor the writer wait for it. Of several processes
on a home, the one that holds a lock file does this work.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from functools import partial
from pathlib import Path

from headgate.errors import HeadgateError
from headgate.store.semantic.models import MeaningModel
from headgate.store.sqlite.catalog import Catalog, current
from headgate.store.sqlite.database import Database, open_reader, translate_errors
from headgate.store.sqlite.write import vector_making
from headgate.store.sqlite.write.vector_making import Portion
from headgate.store.sqlite.writer import Writer
from headgate.system import lock, open_private
from headgate.telemetry import get_logger

_LOCK = "vectors.lock"
#: How often to look for texts that another process has stored, and how long to wait after a failure.
_LOOK_SECONDS = 5.0
_FAILED_SECONDS = 30.0
_READ_SECONDS = 30.0
#: While much is to be made, the log says now and then how much is left.
_PORTIONS_PER_LINE = 32


class VectorThread:
    """Makes vectors until it is closed."""

    def __init__(self, path: Path, writer: Writer, model: MeaningModel) -> None:
        self._path = path
        self._writer = writer
        self._model = model
        self._changed = threading.Condition()
        #: How often texts were reported, and how many of these reports have been dealt with.
        self._reported = 1
        self._seen = 0
        self._is_closing = False
        self._catalog = Catalog()
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
        file = open_private(self._path.with_name(_LOCK), os.O_RDWR | os.O_CREAT)
        database = open_reader(self._path)
        try:
            while not self._is_closing:
                self._round(database, file)
        finally:
            database.db.close()
            os.close(file)

    def _round(self, database: Database, file: int) -> None:
        """Make everything that is to be made, then wait for more."""
        reported = self._reported
        seconds = _LOOK_SECONDS
        try:
            if _is_mine(file):
                self._make_all(database)
                self._seen = reported
        except HeadgateError as failure:
            get_logger().warning("vectors_not_made", code=failure.code)
            seconds = _FAILED_SECONDS
        with self._changed:
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_closing or self._reported > reported, seconds)

    def _make_all(self, database: Database) -> None:
        count = 0
        for number in itertools.count():
            portion = (
                None if self._is_closing else self._next(database, logs=number % _PORTIONS_PER_LINE == 1)
            )
            if portion is None:
                break
            made = vector_making.embed(portion, self._model)
            asyncio.run(self._writer.run(partial(vector_making.put, portion=portion, made=made)))
            count += len(portion.texts)
        if count:
            get_logger().info("vectors_made", count=count)

    def _next(self, database: Database, *, logs: bool) -> Portion | None:
        key = vector_making.model_key(self._model.embedder.identity)
        with translate_errors(), database.reading(_READ_SECONDS):
            self._catalog = current(database, self._catalog)
            if logs:
                count = vector_making.pending_records(database, self._catalog, key)
                get_logger().info("vectors_pending", count=count)
            return vector_making.next_portion(database, self._catalog, key)


def _is_mine(file: int) -> bool:
    try:
        lock(file)
    except BlockingIOError:
        return False
    return True
