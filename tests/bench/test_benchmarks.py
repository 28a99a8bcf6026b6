"""Each benchmark of PostgreSQL is one command that runs to its end, at a small size and on a server for this test."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bench.database import copied, running
from bench.homes import NOW
from bench.records import HOME, declaration
from bench.scale.many_homes import copy_homes, first_home, name_of
from headgate.home import open_home
from headgate.model.ids import StreamName
from headgate.model.plan import PagePlan, Reach
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.postgres.database import HomePlace
from headgate.store.postgres.migrate import open_place
from tests.postgres import Server, database_url

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that the server's account may enter, with a path short enough for its socket."""
    directory = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    with running(place / ".cache" / "bench" / "postgres") as started:
        yield started


def bench(place: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.soak
def test_both_engines_are_compared_by_one_command_and_copied_once(place: Path, server: Server):
    del server
    arguments = ("store", "--engine", "postgres", "--records", "200", "--turns", "1", "--ingested", "200")
    first, second = bench(place, *arguments), bench(place, *arguments)
    assert "copying" in first
    assert "copying" not in second
    for operation in ("single record", "page of 25, merged over 20", "window of 4 096", "search, 200 words"):
        assert re.search(rf"^{operation}.*\d\.\d{{3}} +\d+\.\d{{3}}.* (ok|MISS)$", second, re.MULTILINE)
    assert re.search(r"^ingest in one stream.* 3000  (ok|MISS)$", second, re.MULTILINE)


@pytest.mark.soak
def test_workers_are_compared_by_one_command(place: Path, server: Server):
    del server
    text = bench(place, "workers", "--records", "100", "--seconds", "0.2", "--turns", "1")
    rows = re.findall(r"^single record +(\d) +(\d+) +(\d+) +(\d+) +(\d+) ", text, re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "2", "4"]
    assert all(int(figure) > 0 for row in rows for figure in row)


@pytest.mark.soak
def test_many_homes_are_simulated_by_one_command(place: Path, server: Server):
    del server
    text = bench(place, "scale", "--homes", "12", "--records", "40")
    assert re.search(r"^ +12 +\d+\.\d", text, re.MULTILINE)
    found = re.search(r"connections with all kinds of requests +(\d+)\.0", text)
    assert found is not None
    assert 5 <= int(found[1]) <= 20
    assert re.search(r"^ +single record +[1-9]", text, re.MULTILINE)
    assert "1000 homes of 100000 records" in text


async def test_the_homes_of_the_simulation_answer_like_the_one_they_are_copies_of():
    url = database_url().replace("/headgate?", "/many_homes?")
    with psycopg.connect(database_url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE many_homes")
    await first_home(url, 60)
    copy_homes(url, 2, 9)
    pages = [await messages(HomePlace(url, number)) for number in (1, 4, 9)]
    assert len(pages[0]) > 20
    assert pages[0] == pages[1] == pages[2]
    assert open_place(url, name_of(9), makes=False).home == 9


async def messages(place: HomePlace) -> object:
    store = PostgresStore(place, lambda: NOW)
    try:
        ids = tuple(one.id for one in await store.connections())
        stream = (await store.declarations())[HOME].streams[StreamName("messages")]
        return (await store.page(PagePlan(Reach(stream.name, ids, tuple(stream.fields)), 100))).records
    finally:
        await store.close()


async def test_a_home_is_copied_again_only_when_it_has_changed(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
):
    home = open_home(tmp_path / "home")
    store = SqliteStore(home, lambda: NOW)
    await store.declare(HOME, declaration())
    await store.close()
    written: list[str] = []
    for number in (0, 0, 1):
        there = await asyncio.to_thread(copied, server, home, number, "copied_again")
        assert open_place(there.url, "main", makes=False).home == 1
        written.append(capsys.readouterr().out)
    assert [bool(text) for text in written] == [True, False, True]
