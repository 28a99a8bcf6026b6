"""What fails in the background of a store is logged once and tried again, and stops nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate import tasks
from headgate.home import open_home
from headgate.store.changes import vector_making, writer as writers
from headgate.store.engines.sqlite import SqliteStore, start_writer
from headgate.store.models.model import MeaningModel
from headgate.store.sql.database import Database
from headgate.store.sqlite import FILE
from headgate.tasks import Supervisor
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger
from tests.store.semantic.meaning import WordEmbedder, find, keys, made

_SECONDS = 30


class Task:
    """An idle task that has always something to do, and fails some times before it is done."""

    def __init__(self, name: str, failures: float) -> None:
        self.name = name
        self.tries = 0
        self.done = 0
        self._failures = failures
        self._changed = threading.Condition()

    def plan(self, database: Database) -> bool:
        del database
        return True

    def step(self, database: Database) -> bool:
        del database
        with self._changed:
            self.tries += 1
            self._changed.notify_all()
            if self.tries <= self._failures:
                raise ValueError(self.tries)
            self.done += 1
        return True

    def wait_for(self, *, tries: int = 0, done: int = 0) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.tries >= tries and self.done >= done, _SECONDS)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "IDLE_SECONDS", 0)
    monkeypatch.setattr(tasks, "FIRST_PAUSE_SECONDS", 0.001)


def _logged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, BaseException]]:
    """Take what the supervisor logs: which loop, and what failed with its traceback."""
    lines: list[tuple[str, BaseException]] = []

    class Log:
        def warning(self, _event: str, *, subject: str, exc_info: BaseException, **_more: Any) -> None:
            lines.append((subject, exc_info))

    monkeypatch.setattr(tasks, "get_logger", Log)
    return lines


def test_a_task_that_fails_is_logged_once_shown_and_starves_none_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lines, supervisor = _logged(monkeypatch), Supervisor()
    bad, good = Task("bad", float("inf")), Task("good", 0)
    open_home(tmp_path / "home")
    writer = start_writer(tmp_path / "home" / FILE, idle_tasks=(bad, good), supervisor=supervisor)
    assert bad.wait_for(tries=3)
    assert good.wait_for(done=3)
    assert not writer.is_settled
    (trouble,) = supervisor.troubles()
    asyncio.run(writer.close())
    assert (trouble.loop, trouble.subject, trouble.code) == (writers.LOOP, "bad", "unexpected")
    ((subject, error),) = lines
    assert subject == "bad"
    assert isinstance(error, ValueError)
    assert error.__traceback__ is not None


def test_a_task_that_works_again_is_no_longer_shown_as_failing(tmp_path: Path):
    supervisor, task = Supervisor(), Task("late", 2)
    open_home(tmp_path / "home")
    writer = start_writer(tmp_path / "home" / FILE, idle_tasks=(task,), supervisor=supervisor)
    assert task.wait_for(done=2)
    asyncio.run(writer.close())
    assert supervisor.troubles() == ()


class FailingEmbedder(WordEmbedder):
    """A model whose runtime fails some times in its own way."""

    failures = 2

    def embed(self, texts: Sequence[str]) -> Any:
        if self.failures:
            self.failures -= 1
            raise ValueError(texts)
        return super().embed(texts)


def test_the_thread_of_vectors_goes_on_after_any_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines, supervisor = _logged(monkeypatch), Supervisor()
    model = MeaningModel(FailingEmbedder)
    bare = SqliteStore(open_home(tmp_path / "home"), lambda: NOW, model, supervisor=supervisor)
    store = Driven("sqlite", tmp_path / "home", bare)
    ledger = Ledger(store, connections=1)
    ledger.put({"id": "a", "title": "harbour"})
    made(ledger)
    assert keys(find(ledger, "harbour")) == ["a"]
    assert [type(error) for _, error in lines] == [ValueError]
    assert [one.loop for one in supervisor.troubles() if one.loop == vector_making.LOOP] == []
    store.close()
