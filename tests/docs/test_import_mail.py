"""The page on importing mail: its commands run as they are written, and it names every field."""

from __future__ import annotations

import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pytest

from headgate.sources.mail.imap import IMAP
from tests.docs.commands import SHELL_FUNCTION
from tests.on_socket import environment
from tests.sources.mail.dovecot import PASSWORD, account
from tests.sources.mail.mails import ANSWER, LETTER, STREAMS, mbox

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "import-mail.md").read_text(encoding="utf-8")
*FILES, ACCOUNT = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


def run(directory: Path, script: str, **extra: str) -> str:
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=directory, env=environment(directory, extra), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "Mail").mkdir()
    (tmp_path / "Mail" / "Inbox.mbox").write_bytes(mbox(LETTER, ANSWER))
    return tmp_path


def with_program(script: str) -> str:
    return SHELL_FUNCTION + script


def test_the_commands_import_mail_and_grant_it_and_a_second_time_add_nothing(directory: Path):
    first = run(directory, with_program("".join(FILES)))
    assert "messages: 2 new" in first
    again = run(directory, with_program(FILES[0]))
    assert "messages: 0 new, 2 known already" in again


def test_a_takeout_is_taken_as_the_zip_it_comes_in(directory: Path):
    with zipfile.ZipFile(directory / "takeout.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Takeout/Mail/All mail.mbox", mbox(b"X-Gmail-Labels: Inbox\n" + LETTER, ANSWER))
    assert "messages: 2 new" in run(
        directory, with_program("headgate --home ./home import --yes takeout.zip")
    )


def test_the_commands_on_an_account_fetch_mail_from_a_server_and_a_second_time_nothing(tmp_path: Path):
    with tempfile.TemporaryDirectory(prefix="imap") as place:
        Path(place).chmod(0o755)
        with account(Path(place)) as server:
            server.deliver("INBOX", LETTER, ANSWER)
            real = ACCOUNT.replace(
                "host=imap.example.org", f"host=127.0.0.1 --set port={server.port} --set security=none"
            )
            assert "messages: 2 new" in run(tmp_path, with_program(real), MAIL_PASSWORD=PASSWORD)
            server.deliver("INBOX", LETTER.replace(b"<one@", b"<three@"))
            again = run(tmp_path, with_program(ACCOUNT.splitlines()[1]), MAIL_PASSWORD=PASSWORD)
    assert "messages: 1 new" in again


def test_the_page_names_every_field_and_setting():
    for name, stream in STREAMS.items():
        row = next(line for line in PAGE.split("\n") if line.startswith(f"| `{name}` |"))
        assert set(re.findall(r"`(\w+)`", row)) == {name, *stream.fields} - {"id"}
    assert set(re.findall(r"`(\w+)`", PAGE.partition("| setting | meaning |")[2])) >= set(IMAP.settings)
