"""Repositories for tests, made by git itself."""

import os
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ines Albrecht",
    "GIT_AUTHOR_EMAIL": "ines@example.org",
    "GIT_AUTHOR_DATE": "2026-03-01T09:00:00+01:00",
    "GIT_COMMITTER_NAME": "Jonas Weiher",
    "GIT_COMMITTER_EMAIL": "jonas@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": os.environ.get("PATH", os.defpath),
}


def git(repository: Path, *arguments: str, given: bytes | None = None, at: str = "02T09:00:00+01:00") -> str:
    command = ["git", "-C", str(repository), *arguments]
    environment = {**IDENTITY, "GIT_COMMITTER_DATE": f"2026-03-{at}"}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, input=given)
    return done.stdout.decode("utf-8", "replace")


def canal(directory: Path) -> Path:
    """Make a repository of five commits, one of them a merge."""
    made = directory / "canal"
    made.mkdir(parents=True)
    git(made, "init", "-q", "-b", "main")
    messages = ["Dig\n\nA long\nreason.", "Open the gate | ü", "Close\x1eit"]
    for number, message in enumerate(messages, 2):
        (made / "gate.txt").write_text("water\n" * number)
        (made / f"deep-{number}").mkdir()
        (made / f"deep-{number}" / "ß.txt").write_text(message)
        git(made, "add", "-A")
        git(made, "commit", "-q", "-m", message, at=f"0{number}T09:00:00+01:00")
    git(made, "checkout", "-q", "-b", "side", "HEAD~1")
    git(made, "rm", "-q", "deep-2/ß.txt")
    git(made, "commit", "-q", "-m", "Fill", at="06T09:00:00Z")
    git(made, "checkout", "-q", "main")
    git(made, "merge", "-q", "--no-edit", "side", at="07T09:00:00Z")
    return made


def logged(repository: Path) -> dict[str, dict[str, object]]:
    """What ``git log`` writes about the commits, by hash."""
    form = "%H%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B%x1d"
    found: dict[str, dict[str, object]] = {}
    for text in git(repository, "log", f"--format={form}").split("\x1d")[:-1]:
        name, parents, *rest, message = text.lstrip("\n").split("\0")
        author, author_email, authored, committer, committer_email, committed = rest
        found[name] = {
            "parents": parents.split(),
            "author": author,
            "author_email": author_email,
            "authored": int(authored),
            "committer": committer,
            "committer_email": committer_email,
            "committed": int(committed),
            "message": message,
        }
    return found


def logged_files(repository: Path) -> set[tuple[str, str, str]]:
    """The changed files that ``git log`` names: commit, kind and path."""
    words = ("log", "--no-renames", "--name-status", "-z", "--format=%x1d%H")
    kinds = {"A": "added", "M": "changed", "D": "removed", "T": "changed"}
    found: set[tuple[str, str, str]] = set()
    for text in git(repository, *words).split("\x1d")[1:]:
        name, *parts = text.replace("\n", "").strip("\0").split("\0")
        pairs = [part for part in parts if part]
        found |= {(name, kinds[kind], path) for kind, path in zip(pairs[::2], pairs[1::2], strict=True)}
    return found
