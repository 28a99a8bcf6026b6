"""The backup of the page Settings: encrypted, whole, for the owner alone, and nothing of it stays behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.audit.activity import all_entries, read_event
from headgate.errors import AuthenticationFailed, Conflict
from headgate.home import open_home, small_files
from headgate.store.engines import commands
from headgate.store.maintenance import encrypted_backup as encrypted
from tests import postgres
from tests.console.browsers import PASSWORD, Browser, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
PATH = "/console/settings/backup"
WORDS = "nine slow barges"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        await made.declare("mail", declaration())
        connection = await made.connect("mail", "Home mail")
        await made.ingest(connection, "messages", [record(f"m{n}", subject="canary") for n in range(60)])
        yield made


def files_of(program: LocalProgram) -> set[str]:
    return {path.name for path in program.services.home.path.rglob("*")}


async def test_a_backup_is_downloaded_and_only_its_passphrase_opens_it(program: LocalProgram, tmp_path: Path):
    await program.get("/v1/streams", program.owner)
    await program.services.pump.flush()
    browser, before = await signed_in(program), files_of(program)
    sent = await browser.post(PATH, passphrase=WORDS, again=WORDS)
    assert sent.status == 200
    assert sent.header("content-disposition") == 'attachment; filename="headgate-2027-01-15.age"'
    assert sent.header("content-length") == str(len(sent.content))
    assert sent.header("cache-control") == "no-store"
    assert b"canary" not in sent.content
    # The download itself is logged meanwhile, and the log's head is written beside the old one first.
    await program.services.pump.flush()
    assert files_of(program) - before <= {"backup.lock"}
    file = tmp_path / "sent.age"
    file.write_bytes(sent.content)
    home = open_home(tmp_path / "other")
    with commands.decrypted_backup(file, home, WORDS) as directory:
        copied = commands.verify_backup(directory, lambda _done, _total: None)
        beside = small_files(program.services.home)
        assert {"audit-head.json", "keys/audit", "keys/seal.json"} <= {*beside}
        assert [name for name in beside if not (directory / name).is_file()] == []
        assert (directory / "keys" / "audit").read_bytes() == (
            program.services.home.keys / "audit"
        ).read_bytes()
    assert copied.record_count == 60
    with pytest.raises(AuthenticationFailed), commands.decrypted_backup(file, home, WORDS + "!"):
        pass
    await program.services.pump.flush()
    assert f"POST {PATH}" in [read_event(one).via async for one in all_entries(program.services.ledger)]


async def test_a_backup_needs_the_password_of_the_last_minutes_and_a_form_of_the_page(program: LocalProgram):
    browser = await signed_in(program)
    program.clock.at += 6 * 60 * 1_000_000
    asked = await browser.post(PATH, passphrase=WORDS, again=WORDS)
    assert (asked.status, asked.location) == (303, "/console/confirm?next=%2Fconsole%2Fsettings")
    await browser.post("/console/confirm", password=PASSWORD, next="/console/settings")
    assert (await browser.post(PATH, passphrase=WORDS, again=WORDS, form_key="0" * 64)).status == 403
    stranger = await Browser(program).post(PATH, passphrase=WORDS, again=WORDS)
    assert (stranger.location or "").startswith("/console/sign-in")


@pytest.mark.parametrize(
    ("passphrase", "again", "shows"),
    [("short", "short", "at least 10 characters"), (WORDS, WORDS + "?", "The two passphrases differ")],
)
async def test_a_passphrase_that_is_short_or_mistyped_makes_no_backup(
    program: LocalProgram, passphrase: str, again: str, shows: str
):
    shown = await (await signed_in(program)).post(PATH, passphrase=passphrase, again=again)
    assert shown.status == 400
    assert shows in shown.words
    assert passphrase not in shown.text


async def test_two_backups_at_once_are_refused_instead_of_mixed(program: LocalProgram):
    browser = await signed_in(program)
    with encrypted.workplace(program.services.home):
        shown = await browser.post(PATH, passphrase=WORDS, again=WORDS)
    assert shown.status == Conflict.status
    assert "is being made" in shown.words
    assert (await browser.post(PATH, passphrase=WORDS, again=WORDS)).status == 200


@pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
async def test_a_backup_holds_the_records_of_a_home_in_a_database_and_not_an_old_file(tmp_path: Path):
    async with local_program(tmp_path) as before:
        await before.declare("mail", declaration())
    flags = {"store_url": postgres.database_url(), "store_home": postgres.new_home_name()}
    async with local_program(tmp_path, **flags) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        await program.ingest(connection, "messages", [record(f"m{n}") for n in range(3)])
        sent = await (await signed_in(program)).post(PATH, passphrase=WORDS, again=WORDS)
    assert sent.status == 200
    file = tmp_path / "sent.age"
    file.write_bytes(sent.content)
    with commands.decrypted_backup(file, open_home(tmp_path / "other"), WORDS) as directory:
        assert commands.verify_backup(directory, lambda _done, _total: None).record_count == 3
