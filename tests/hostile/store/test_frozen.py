"""F4: a home that may not be written is read on as far as disclosures can be written; writes say why not."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import StorageUnusable
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId
from headgate.store.maintenance.sqlite_home import reading_store, writing_store
from headgate.store.sqlite.database import SqliteDatabase, _open_frozen
from tests.hostile.store.scene import batch, damages, line
from tests.in_process import local_program
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

ROOT = Path(__file__).parents[3]
REFUSED = [503, "storage_read_only"]


@dataclass(frozen=True)
class Scene:
    home: Home
    mine: str
    owner: str
    client: str


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    async def make() -> Scene:
        async with local_program(tmp_path) as program:
            await program.declare("mail", declaration())
            mine = ConnectionId(await program.connect("mail", "Home"))
            await program.services.store.ingest(batch(mine, [line(f"k{n}") for n in range(30)]))
            token = await program.grant(grant(stream_grant("messages", "id", connections=(mine,))))
            return Scene(program.services.home, mine, program.owner, token)

    return asyncio.run(make())


@functools.cache
def can_mount() -> bool:
    found = shutil.which("unshare")
    return found is not None and subprocess.run([found, "-rm", "true"], check=False).returncode == 0


def run_there(frozen: list[Path], code: str, *words: str) -> str:
    """Run Python where these paths cannot be written: mounted so, or without the permission."""
    command = [sys.executable, "-c", code, *words]
    if frozen and can_mount():
        mounts = "".join(
            f"mount --bind {path} {path} && mount -o remount,ro,bind {path} {path} && "
            for path in (shlex.quote(str(path)) for path in frozen)
        )
        command = ["unshare", "-rm", "sh", "-c", f"{mounts}exec {shlex.join(command)}"]
    elif frozen and os.geteuid() == 0:
        pytest.skip("the superuser may write everything, and nothing can be mounted here")
    modes = {path: path.stat().st_mode for path in frozen}
    try:
        for path in frozen if not can_mount() else ():
            path.chmod(path.stat().st_mode & 0o555)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(scene: Scene, frozen: list[Path]) -> dict[str, Any]:
    words = [str(scene.home.path), scene.mine, scene.owner, scene.client]
    code = (
        "import runpy; runpy.run_module('tests.hostile.store.frozen', run_name='__main__', alter_sys=False)"
    )
    return json.loads(run_there(frozen, code, *words))


def command(scene: Scene, frozen: list[Path], *words: str) -> str:
    code = "import sys; sys.argv[0] = 'headgate'; from headgate.cli.main import run; run()"
    return run_there(frozen, code, "--home", str(scene.home.path), *words)


def everything(home: Home) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.path.rglob("*") if path.is_file()}


def test_on_a_home_that_may_not_be_written_nothing_is_shown_and_nothing_taken_and_both_say_why(scene: Scene):
    before = everything(scene.home)
    answers = ask(scene, [scene.home.path])
    assert answers["healthz"] == [200, "ok"]
    assert answers["readyz"] == [200, "degraded"]
    # No disclosure can be written, so nothing may be shown; the store itself goes on reading.
    assert answers["client"] == answers["owner"] == answers["ingest"] == REFUSED
    assert (answers["page"], answers["search"], answers["new"]) == (25, 25, 0)
    assert everything(scene.home) == before


def test_where_only_the_store_may_not_be_written_reads_go_on_and_their_disclosures_are_kept(scene: Scene):
    answers = ask(scene, [scene.home.path / "records.db"])
    assert answers["readyz"] == [200, "degraded"]
    assert answers["client"] == answers["owner"] == [200, 5]
    assert answers["ingest"] == REFUSED
    assert (answers["page"], answers["search"], answers["new"]) == (25, 25, 0)
    journals = list((scene.home.path / "journals").iterdir())
    assert sum(path.read_bytes().count(b"\n") for path in journals) >= 2
    # Who may write next takes them over.
    shown = command(scene, [], "audit", "verify")
    assert "whole" in shown
    assert list((scene.home.path / "journals").iterdir()) == []
    with reading_store(scene.home) as database:
        blocks = [block for (block,) in database.all("SELECT events FROM audit")]
    events = [json.loads(line) for block in blocks for line in block.splitlines()]
    assert [sum(len(part["record_ids"]) for part in event["parts"]) for event in events].count(5) == 2
    assert damages(scene.home) == []


def test_care_that_only_reads_works_on_a_home_that_may_not_be_written(scene: Scene, tmp_path: Path):
    assert "30 records of 1 connection;" in command(scene, [scene.home.path], "store", "stats")
    assert "found no damage" in command(scene, [scene.home.path], "store", "fsck")
    made = tmp_path / "made"
    assert "Backed up 30 records" in command(scene, [scene.home.path], "store", "backup", str(made))
    assert "Backup verified" in command(scene, [made], "store", "restore", "--verify", str(made))


def test_a_log_that_was_not_moved_into_the_file_is_read_as_well(scene: Scene):
    with writing_store(scene.home) as database:
        database.run("UPDATE shelf SET updated_at = 7")
        # As a process that is killed leaves them.
        for ending in ("", "-wal", "-shm"):
            source = f"{database.path}{ending}"
            shutil.copy(source, f"{source}.aside")
    for ending in ("", "-wal", "-shm"):
        aside = Path(f"{scene.home.path / 'records.db'}{ending}.aside")
        aside.rename(f"{scene.home.path / 'records.db'}{ending}")
    code = (
        "import sys; from pathlib import Path; from headgate.store.sqlite.database import open_reader; "
        "print(open_reader(Path(sys.argv[1])).value('SELECT updated_at FROM shelf'))"
    )
    path = str(scene.home.path / "records.db")
    assert run_there([scene.home.path], code, path) == "7\n"


def test_a_file_that_was_written_after_all_is_not_read_on(scene: Scene):
    path = scene.home.path / "records.db"
    opened, looks = _open_frozen(path)
    reader = SqliteDatabase(path, opened, frozen=looks)
    with reader.reading():
        assert reader.value("SELECT count(*) FROM record") == 30
    with writing_store(scene.home) as database:
        database.run("UPDATE shelf SET updated_at = 7")
        database.db.wal_checkpoint()
    with pytest.raises(StorageUnusable, match="written since"), reader.reading():
        pass
    reader.db.close()


def test_a_home_without_a_store_that_may_not_be_written_is_refused(tmp_path: Path):
    home = open_home(tmp_path / "home")
    code = (
        "import sys; from pathlib import Path; from headgate.errors import StorageReadOnly\n"
        "from headgate.home import Home; from tests.hostile.store.scene import open_store\n"
        "try:\n    open_store(Home(Path(sys.argv[1])))\n"
        "except StorageReadOnly as error: print(error.message)\n"
    )
    assert "none can be made" in run_there([home.path], code, str(home.path))
