"""Commits of a repository, read without trusting it and without starting git."""

import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from headgate.model.instants import instant
from headgate.sources import git as module
from headgate.sources.git import GIT
from headgate.sources.inputs.archives import opened_tree
from headgate.sources.inputs.disk import tree_of
from headgate.sources.protocol import Mark
from tests.sources.git.repositories import canal, git, logged, logged_files
from tests.sources.reading import check_resume, read_all, rejects_of, rows_of, stored, tree_from

ROOT = Path(__file__).parents[3]


@pytest.fixture
def repository(tmp_path):
    return canal(tmp_path)


def only_repository(path):
    (found,) = GIT.detect(tree_of(path))
    return found


def seconds(text: str) -> int:
    return instant(text) // 1_000_000


def check_like_git(path, items) -> None:
    """The rows are what ``git log`` writes, commit by commit and file by file."""
    rows = {row["id"]: row for row in rows_of(items, "commits")}
    expected = logged(path)
    assert rows.keys() == expected.keys()
    for name, one in expected.items():
        row = rows[name]
        assert row.get("parents", []) == one["parents"]
        assert row.get("parent_id") == next(iter(one["parents"]), None)
        for field in ("author", "author_email", "committer", "committer_email"):
            assert row[field] == one[field]
        assert (seconds(row["authored_at"]), seconds(row["committed_at"])) == (
            one["authored"],
            one["committed"],
        )
        assert row["message"] == one["message"].strip()
    changes = rows_of(items, "changes")
    assert {(row["commit_id"], row["kind"], row["path"]) for row in changes} == logged_files(path)
    assert sum(row["files_changed"] for row in rows.values()) == len(changes)


def test_the_commits_of_a_repository_are_those_of_git(repository):
    found = only_repository(repository)
    items = read_all(GIT, found)
    assert rejects_of(items) == []
    check_like_git(repository, items)
    first = rows_of(items, "commits")[-1]
    assert first == {
        "id": first["id"],
        "title": "Dig",
        "message": "Dig\n\nA long\nreason.",
        "author": "Ines Albrecht",
        "author_email": "ines@example.org",
        "authored_at": "2026-03-01T08:00:00Z",
        "committer": "Jonas Weiher",
        "committer_email": "jonas@example.org",
        "committed_at": "2026-03-02T08:00:00Z",
        "files_changed": 2,
    }
    assert found.title == "Commits canal"


def test_packed_objects_and_names_are_read_alike(repository):
    loose = read_all(GIT, only_repository(repository))
    git(repository, "gc", "-q", "--aggressive", "--prune=now")
    assert not list((repository / ".git" / "objects").glob("[0-9a-f][0-9a-f]/*"))
    assert not (repository / ".git" / "refs" / "heads" / "main").exists()
    assert read_all(GIT, only_repository(repository)) == loose


def test_a_bare_repository_and_a_hidden_directory_are_read_alike(repository, tmp_path):
    plain = rows_of(read_all(GIT, only_repository(repository)))
    git(tmp_path, "clone", "-q", "--bare", str(repository), "copy.git")
    bare = only_repository(tmp_path / "copy.git")
    assert bare.title == "Commits copy"
    assert rows_of(read_all(GIT, bare)) == plain
    hidden = only_repository(repository / ".git")
    assert rows_of(read_all(GIT, hidden)) == plain


def test_repositories_in_a_folder_are_each_a_connection(repository, tmp_path):
    canal(tmp_path / "other")
    git(tmp_path, "clone", "-q", "--bare", str(repository), "mill.git")
    titles = sorted(found.title for found in GIT.detect(tree_of(tmp_path)))
    assert titles == ["Commits canal/.git", "Commits mill", "Commits other/canal/.git"]


def test_a_repository_of_longer_hashes_is_read(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Dig")
    (row,) = rows_of(read_all(GIT, only_repository(tmp_path)))
    assert row["id"] == git(tmp_path, "rev-parse", "HEAD").strip()
    git(tmp_path, "gc", "-q")
    assert rows_of(read_all(GIT, only_repository(tmp_path))) == [row]


def test_reading_goes_on_from_every_mark(repository, monkeypatch):
    monkeypatch.setattr(module, "_STEP", 1)
    found = only_repository(repository)
    assert sum(isinstance(item, Mark) for item in read_all(GIT, found)) == 6
    check_resume(GIT, found)


def test_an_interrupted_reading_goes_on_below_the_commit_where_it_began(repository):
    found = only_repository(repository)
    rows = rows_of(read_all(GIT, found), "commits")
    git(repository, "commit", "-q", "--allow-empty", "-m", "New", at="09T09:00:00Z")
    state = {found.files[0].name: {"head": rows[0]["id"], "commits": 1}}
    resumed = read_all(GIT, found, state)
    assert rows_of(resumed, "commits") == rows[1:]
    again = read_all(GIT, found)
    assert len(rows_of(again, "commits")) == 6
    assert stored(again, resumed) == stored(again, again)


def test_a_message_of_another_encoding_is_read(repository):
    git(
        repository,
        "-c",
        "i18n.commitEncoding=ISO-8859-1",
        "commit",
        "-q",
        "--allow-empty",
        "-F",
        "-",
        given=b"Gr\xfc\xdfe",
    )
    assert rows_of(read_all(GIT, only_repository(repository)), "commits")[-1]
    titles = {row["title"] for row in rows_of(read_all(GIT, only_repository(repository)), "commits")}
    assert "Grüße" in titles


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a file behind when it is started."""
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    script.chmod(0o755)
    return script


def test_nothing_that_a_repository_names_is_started_or_fetched(repository, trap):
    programs = "core.fsmonitor core.pager gpg.program diff.external diff.x.textconv core.sshCommand pager.log"
    for name in programs.split():
        git(repository, "config", name, str(trap))
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::{trap}",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
    }.items():
        git(repository, "config", name, value)
    tree = git(repository, "rev-parse", "HEAD~1^{tree}").strip()
    (repository / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    items = read_all(GIT, only_repository(repository))
    assert len(rows_of(items, "commits")) == 5
    assert {reject.reason for reject in rejects_of(items)} == {
        "The files that it changed are missing or damaged."
    }
    assert not (trap.parent / "started").exists()


def test_objects_of_another_repository_are_not_read(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--shared", str(repository), "borrower")
    items = read_all(GIT, only_repository(tmp_path / "borrower"))
    assert rows_of(items) == []
    assert [reject.reason for reject in rejects_of(items)] == ["It is missing or damaged."]


def test_a_shallow_clone_gives_what_it_has(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repository}", "shallow")
    items = read_all(GIT, only_repository(tmp_path / "shallow"))
    assert [row["title"] for row in rows_of(items, "commits")] == ["Merge branch 'side'"]
    assert len(rejects_of(items)) == 2


@pytest.mark.parametrize(
    "head",
    ["", "ref: refs/heads/none", "ref: ../../../etc/passwd", "ref: HEAD", "\xff\0", "-" * 40, "0" * 40],
)
def test_a_broken_head_is_rejected(repository, head):
    (repository / ".git" / "HEAD").write_bytes(head.encode("latin-1"))
    items = read_all(GIT, only_repository(repository))
    assert (rows_of(items), len(rejects_of(items))) == ([], 1)
    assert isinstance(items[-1], Mark)


def test_a_link_is_not_followed(repository, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to(repository / ".git")
    assert GIT.detect(tree_of(tmp_path / "linked")) == []


def write_object(repository: Path, content: bytes) -> str:
    return git(
        repository, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", given=content
    ).strip()


def commit_text(repository: Path, **changed: str) -> bytes:
    lines = {
        "tree": git(repository, "rev-parse", "HEAD^{tree}").strip(),
        "parent": git(repository, "rev-parse", "HEAD").strip(),
        "author": "Ines <ines@example.org> 1000 +0000",
        "committer": "Ines <ines@example.org> 1000 +0000",
        **changed,
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items()).encode() + b"\nMade by hand\n"


@pytest.mark.parametrize(
    ("changed", "rejected"),
    [
        ({"parent": "../../../../etc/passwd"}, True),
        ({"parent": "f" * 40}, True),
        ({"tree": "f" * 40}, True),
        ({"author": "Ines <ines@example.org> 99999999999999999 +0000"}, False),
        ({"author": "Ines <ines@example.org> -5 +0000"}, False),
        ({"author": "Ines <ines@example.org> 5 +99999999"}, False),
        ({"author": "Ines"}, True),
        ({"author": "<> 0 +0000"}, False),
        ({"author": "I\0nes <x\0y> 0 +0000"}, False),
        ({"encoding": "no-such-charset"}, False),
    ],
)
def test_commits_that_no_git_would_make_stop_nothing(repository, changed, rejected):
    made = write_object(repository, commit_text(repository, **changed))
    (repository / ".git" / "HEAD").write_text(made)
    items = read_all(GIT, only_repository(repository))
    assert bool(rejects_of(items)) == rejected
    assert isinstance(items[-1], Mark)


def test_an_object_under_the_name_of_another_is_refused(repository):
    head = git(repository, "rev-parse", "HEAD").strip()
    forged = write_object(repository, commit_text(repository))
    folder = repository / ".git" / "objects"
    target = folder / head[:2] / head[2:]
    target.unlink()
    target.write_bytes((folder / forged[:2] / forged[2:]).read_bytes())
    items = read_all(GIT, only_repository(repository))
    assert (rows_of(items), len(rejects_of(items))) == ([], 1)


def test_an_object_that_unpacks_to_much_more_is_refused(repository, monkeypatch):
    monkeypatch.setattr(module, "MAX_OBJECT_BYTES", 100_000)
    big = commit_text(repository) + b"a" * 200_000
    (repository / ".git" / "HEAD").write_text(write_object(repository, big))
    assert len(rejects_of(read_all(GIT, only_repository(repository)))) == 1
    git(repository, "update-ref", "refs/heads/big", (repository / ".git" / "HEAD").read_text())
    git(repository, "repack", "-q", "-a", "-d")
    items = read_all(GIT, only_repository(repository))
    assert (rows_of(items), len(rejects_of(items))) == ([], 1)


def test_a_difference_that_makes_something_large_is_refused_before_it_is_made():
    # Two sizes, then nothing: what it would make is never looked at.
    huge = bytes([10, *([255] * 5), 1])
    with pytest.raises(ValueError, match="too large"):
        module._refuse_delta(huge)
    module._refuse_delta(bytes([200, 1, 10]))
    module._refuse_delta(b"")


def test_directories_in_directories_without_end_are_not_walked(repository, monkeypatch):
    """Ten times ten times ten directories of one content take a few objects and would be walked a thousand times."""
    monkeypatch.setattr(module, "MAX_READS", 200)
    name = git(repository, "mktree", given=b"").strip()
    for _ in range(6):
        listed = "".join(f"040000 tree {name}\td{number}\n" for number in range(10))
        name = git(repository, "mktree", given=listed.encode()).strip()
    (repository / ".git" / "HEAD").write_text(write_object(repository, commit_text(repository, tree=name)))
    (reject,) = rejects_of(read_all(GIT, only_repository(repository)))
    assert reject.reason == "The files that it changed are missing or damaged."


def test_of_very_many_files_the_first_are_listed(repository, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILES", 1)
    rows = rows_of(read_all(GIT, only_repository(repository)), "commits")
    assert max(row["files_changed"] for row in rows) == 1


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    made = canal(tmp_path_factory.mktemp("packed"))
    git(made, "gc", "-q", "--prune=now")
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    which=st.sampled_from(["pack", "idx", "packed-refs", "HEAD"]),
    at=st.integers(0, 100_000),
    noise=st.one_of(st.none(), st.binary(min_size=1, max_size=40)),
)
@example(which="idx", at=99_999, noise=b"\x00\x80")
def test_damage_anywhere_stops_nothing(packed, which, at, noise):
    """Cut or overwritten at any place, the rest that can be read is read, and what is read is what git wrote."""
    right = stored(read_all(GIT, only_repository(packed)))
    names = {"pack": "objects/pack/*.pack", "idx": "objects/pack/*.idx"}
    (path,) = (packed / ".git").glob(names.get(which, which))
    before, mode = path.read_bytes(), path.stat().st_mode
    at %= len(before)
    path.chmod(0o644)
    try:
        path.write_bytes(before[:at] if noise is None else before[:at] + noise + before[at + len(noise) :])
        items = read_all(GIT, only_repository(packed))
    finally:
        path.write_bytes(before)
        path.chmod(mode)
    assert isinstance(items[-1], Mark)
    for key, row in stored(items).items():
        assert {**row, "files_changed": 0} == {**right[key], "files_changed": 0}


def test_a_loose_object_with_another_content_is_rejected(repository):
    head = git(repository, "rev-parse", "HEAD").strip()
    path = repository / ".git" / "objects" / head[:2] / head[2:]
    path.unlink()
    path.write_bytes(zlib.compress(b"commit 3\0abc"))
    items = read_all(GIT, only_repository(repository))
    assert (rows_of(items), len(rejects_of(items))) == ([], 1)


def test_a_directory_without_a_repository_is_left_alone():
    assert GIT.detect(tree_from({"a.txt": b"x", "HEAD": b"x", "git/HEAD": b"ref: x"})) == []


def test_a_repository_in_an_archive_is_rejected_in_a_sentence(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(repository), "copy.git")
    with zipfile.ZipFile(tmp_path / "copy.zip", "w") as archive:
        for path in sorted((tmp_path / "copy.git").rglob("*")):
            archive.write(path, path.relative_to(tmp_path))
    with opened_tree(tmp_path / "copy.zip") as tree:
        (found,) = GIT.detect(tree)
        (reject,) = rejects_of(read_all(GIT, replace(found, files=found.files[:1])))
    assert "unpack it" in reject.reason


def test_the_history_of_this_repository_is_that_of_git(tmp_path):
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    git(tmp_path, "clone", "-q", "--bare", str(ROOT), "copy.git")
    items = read_all(GIT, only_repository(tmp_path / "copy.git"))
    assert rejects_of(items) == []
    check_like_git(tmp_path / "copy.git", items)
