"""The work of a search, counted and not timed: steps of SQLite, rows and calls of Python functions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

from headgate.model.plan import SearchPlan
from headgate.model.rows import SearchPage
from headgate.store.engines import sqlite as engine
from headgate.store.search.find import find
from headgate.store.search.meaning import SearchMemory
from headgate.store.sql.catalog import current
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import open_reader


@dataclass(frozen=True)
class Work:
    """What one search did."""

    #: Opcodes that SQLite ran, by statement.
    steps: tuple[tuple[str, int], ...]
    #: Calls of Python functions of this program.
    calls: int


class CountingReader:
    """A reader of a store that counts what its searches do."""

    def __init__(self, home: Path) -> None:
        self._database = open_reader(home / FILE, register=engine.prepare_reader)
        self._memory = SearchMemory()
        self._steps: list[tuple[str, int]] = []
        self._calls = 0
        self._database.db.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._note)

    def _note(self, event: dict[str, Any]) -> None:
        self._steps.append((event["sql"], event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]))

    def _call(self, frame: FrameType, event: str, _argument: Any) -> None:
        self._calls += event == "call" and "headgate" in frame.f_code.co_filename

    def search(self, plan: SearchPlan) -> tuple[SearchPage, Work]:
        """Search, and count; the second time, when nothing is read that is remembered."""
        catalog = current(self._database)
        find(self._database, catalog, self._memory, plan)
        self._steps, self._calls = [], 0
        sys.setprofile(self._call)
        try:
            page = find(self._database, catalog, self._memory, plan)
        finally:
            sys.setprofile(None)
        return page, Work(tuple(self._steps), self._calls)

    def plain_search(self, plan: SearchPlan) -> SearchPage:
        """Search without counting."""
        self._database.db.trace_v2(0, None)
        with self._database.reading():
            return find(self._database, current(self._database), self._memory, plan)

    def close(self) -> None:
        """Close the file."""
        self._database.db.close()
