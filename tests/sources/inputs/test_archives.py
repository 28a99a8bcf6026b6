"""Archives are read like directories, and never grow beyond bounds."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from headgate.errors import HeadgateError, InvalidRequest, ResourceLimit
from headgate.sources.inputs import archives
from headgate.sources.inputs.archives import opened_tree

FILES = {"a.csv": b"id,b\n1,x\n", "in/b.vcf": b"BEGIN:VCARD\n" * 1000}


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def tarred(files: dict[str, bytes], mode: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=f"w:{mode}") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("link.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return content.getvalue()


def contents(path: Path) -> dict[str, bytes]:
    with opened_tree(path) as tree:
        found: dict[str, bytes] = {}
        for file in tree.files:
            with file.open() as content:
                found[file.name] = content.read()
        return found


def written(place: Path, name: str, content: bytes) -> Path:
    path = place / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.zip", zipped(FILES)),
        ("x.tar", tarred(FILES, "")),
        ("x.tar.gz", tarred(FILES, "gz")),
        ("x.TGZ", tarred(FILES, "gz")),
        ("x.tar.bz2", tarred(FILES, "bz2")),
        ("x.tar.xz", tarred(FILES, "xz")),
    ],
)
def test_the_files_of_an_archive_are_a_tree(tmp_path: Path, name: str, content: bytes):
    path = written(tmp_path, name, content)
    assert contents(path) == FILES
    with opened_tree(path) as tree:
        assert (tree.label, [file.size_bytes for file in tree.files]) == ("x", [9, 12_000])
        assert tree.files[1].head == FILES["in/b.vcf"]
        with tree.files[0].on_disk() as copy:
            assert (copy.read_bytes(), copy.suffix) == (FILES["a.csv"], ".csv")
        assert not copy.exists()


def test_a_compressed_file_is_the_file(tmp_path: Path):
    path = written(tmp_path, "a.csv.gz", gzip.compress(FILES["a.csv"]))
    assert contents(path) == {"a.csv": FILES["a.csv"]}
    assert contents(path) == {"a.csv": FILES["a.csv"]}


def test_archives_in_an_archive_are_read_one_level_deep(tmp_path: Path):
    inner = zipped({"b.csv": b"b", "deep.zip": zipped({"c.csv": b"c"})})
    tar = tarred({"d.csv": b"d"}, "gz")
    path = written(
        tmp_path, "x.zip", zipped({"in.zip": inner, "t.tgz": tar, "e.csv.gz": gzip.compress(b"e")})
    )
    found = contents(path)
    assert found.pop("in.zip/deep.zip").startswith(b"PK")
    assert found == {"in.zip/b.csv": b"b", "t.tgz/d.csv": b"d", "e.csv": b"e"}


def test_hidden_files_are_left_out_and_office_documents_are_no_archives(tmp_path: Path):
    assert contents(
        written(tmp_path, "x.zip", zipped({".a": b"", "__MACOSX/b.csv": b"", "c.csv": b"c"}))
    ) == {"c.csv": b"c"}
    document = written(tmp_path, "w.docx", zipped({"c.csv": b"c"}))
    assert contents(document) == {"w.docx": document.read_bytes()}


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../x.csv", "a/../../x.csv", "..\\x.csv", "C:\\x.csv", "\\x.csv"]
)
def test_names_that_lead_out_of_the_archive_are_refused(tmp_path: Path, name: str):
    for path in (
        written(tmp_path, "x.zip", zipped({name: b"x"})),
        written(tmp_path, "x.tar", tarred({name: b"x"}, "")),
    ):
        with pytest.raises(InvalidRequest, match="leads out"):
            contents(path)


BOMB = bytes(archives.FREE_BYTES + 8 * 1024**2)


def test_what_unpacks_to_many_times_its_size_is_refused_before_it_is_read(tmp_path: Path):
    with pytest.raises(ResourceLimit):
        contents(written(tmp_path, "x.zip", zipped({"a.csv": BOMB})))
    with pytest.raises(ResourceLimit):
        contents(written(tmp_path, "x.tar.gz", tarred({"a.csv": BOMB}, "gz")))
    with pytest.raises(ResourceLimit):
        contents(written(tmp_path, "y.zip", zipped({"in.zip": zipped({"a.csv": BOMB})})))


def test_a_compressed_file_is_read_up_to_its_limit(tmp_path: Path):
    with pytest.raises(OSError, match="more than is allowed"):
        contents(written(tmp_path, "a.csv.gz", gzip.compress(BOMB)))


def test_a_member_that_is_damaged_is_an_error_of_reading_and_others_are_read(tmp_path: Path):
    good = zipped({"a.csv": b"aaaa" * 1000, "b.csv": b"b"})
    at = good.index(b"a.csv") + 5
    path = written(tmp_path, "x.zip", good[:at] + b"\xff\xff" + good[at + 2 :])
    with opened_tree(path) as tree:
        with pytest.raises(OSError, match=r"a\.csv is damaged"), tree.files[0].open() as content:
            content.read()
        with tree.files[1].open() as content:
            assert content.read() == b"b"


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz", "x.tar", "x.tar.xz"])
def test_what_is_no_archive_is_refused_with_one_sentence(tmp_path: Path, name: str):
    with pytest.raises(InvalidRequest, match="cannot be read"):
        contents(written(tmp_path, name, b"nothing of the kind" * 100))


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.zip", zipped(FILES)), ("x.tgz", tarred(FILES, "gz")), ("x.tar", tarred(FILES, ""))],
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_broken_archive_is_refused_or_read(tmp_path: Path, name: str, content: bytes, data: st.DataObject):
    at = data.draw(st.integers(0, len(content)))
    noise = data.draw(st.binary(max_size=8))
    is_cut = data.draw(st.booleans())
    path = written(tmp_path, name, content[:at] + noise + (b"" if is_cut else content[at + len(noise) :]))
    with contextlib.suppress(HeadgateError, OSError):
        contents(path)
