"""A real IMAP server for tests: Dovecot, with one account and its mail in a directory."""

import os
import pwd
import shutil
import socket
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

USER, PASSWORD = "ada@example.org", "correct-hörse"
_CONFIG = """
base_dir = {root}/run
state_dir = {root}/state
log_path = {root}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain login xoauth2
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:{root}/mail
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
passdb {{
  driver = static
  mechanisms = xoauth2
  args = nopassword=y
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={root}/home
}}
namespace inbox {{
  inbox = yes
  mailbox Trash {{
    auto = create
    special_use = \\Trash
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
"""


@dataclass(frozen=True)
class Account:
    """An account, and how to reach it."""

    port: int
    mail: Path
    owner: int

    @property
    def settings(self) -> dict[str, str]:
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "security": "none",
            "user": USER,
            "secret": "env:MAIL_PASSWORD",
        }

    def deliver(self, folder: str, *messages: bytes, flags: str = "") -> None:
        """Put messages into a folder as a delivery agent does."""
        directory = self.mail / (f".{folder}" if folder != "INBOX" else "")
        for name in ("", "cur", "new", "tmp"):
            (directory / name).mkdir(parents=True, exist_ok=True)
            os.chown(directory / name, self.owner, -1)
        for message in messages:
            count = sum(1 for _ in self.mail.rglob("*"))
            path = directory / "cur" / f"17000{count:05}.M{count}.host:2,{flags}"
            path.write_bytes(message)
            os.chown(path, self.owner, -1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def account(root: Path):
    """Run a server until the end."""
    if not shutil.which("dovecot"):
        pytest.skip("dovecot is not on this machine")
    # Dovecot reads no mail as root.
    person = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    group = subprocess.run(
        ["id", "-gn", person.pw_name], capture_output=True, text=True, check=True
    ).stdout.strip()
    found = Account(_free_port(), root / "mail", person.pw_uid)
    for name in ("", "run", "state", "mail", "home"):
        (root / name).mkdir(exist_ok=True, mode=0o755)
        os.chown(root / name, person.pw_uid, -1)
    config = root / "dovecot.conf"
    config.write_text(
        _CONFIG.format(root=root, user=person.pw_name, group=group, password=PASSWORD, port=found.port),
        "utf-8",
    )
    server = subprocess.Popen(["dovecot", "-F", "-c", str(config)])
    try:
        _wait(server, found.port, root / "log")
        yield found
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait(server: subprocess.Popen, port: int, log: Path) -> None:
    for _ in range(200):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as probe:
            if probe.recv(4) == b"* OK":
                return
        with suppress(subprocess.TimeoutExpired):
            server.wait(timeout=0.05)
            break
    pytest.fail(f"dovecot did not start: {log.read_text() if log.exists() else ''}")
