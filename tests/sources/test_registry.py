"""Which source reads which file."""

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.schema.declare import read_declaration
from headgate.sources.declaring import NUMBER, TEXT, TIME, StreamSpec, declaration
from headgate.sources.formats.values import RowKeys
from headgate.sources.inputs.disk import tree_of
from headgate.sources.inputs.tree import InputTree
from headgate.sources.planning import detect
from headgate.sources.protocol import Certainty, Recognised, Source


@dataclass(frozen=True)
class Taking(Source):
    """A source that takes files by their ending."""

    name: str
    suffix: str
    certainty: Certainty
    title: str = ""

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        files = [file for file in tree.files if file.suffix == self.suffix]
        return [Recognised(self.name, tree.label, files, self.certainty)] if files else []


def test_the_surest_source_reads_a_file_and_each_file_is_read_once(tmp_path):
    for name in ("a.txt", "b.csv"):
        (tmp_path / name).write_text("x")
    found = detect(
        tree_of(tmp_path),
        [
            Taking("any", ".txt", Certainty.GENERIC),
            Taking("chat", ".txt", Certainty.EXPORT),
            Taking("table", ".csv", Certainty.GENERIC),
        ],
    )
    assert [(one.source, [file.name for file in one.files]) for one in found] == [
        ("chat", ["a.txt"]),
        ("table", ["b.csv"]),
    ]


def test_a_source_still_reads_the_files_that_a_surer_one_leaves(tmp_path):
    for name in ("chat.txt", "note.txt"):
        (tmp_path / name).write_text("x")

    class Chats(Taking):
        def detect(self, tree: InputTree) -> Sequence[Recognised]:
            return [Recognised("chats", "", [tree.find("chat.txt")], Certainty.EXPORT)]

    found = detect(tree_of(tmp_path), [Taking("notes", ".txt", Certainty.GENERIC), Chats("chats", "", 3)])
    assert [(one.source, [file.name for file in one.files]) for one in found] == [
        ("chats", ["chat.txt"]),
        ("notes", ["note.txt"]),
    ]


def test_hidden_files_and_links_are_left_out(tmp_path):
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "seen.txt").write_text("content")
    (tmp_path / "link").symlink_to(tmp_path / "in" / "seen.txt")
    (only,) = tree_of(tmp_path).files
    assert (only.name, only.head, only.suffix, only.stem) == ("in/seen.txt", b"content", ".txt", "seen")


def test_identical_rows_of_a_file_stay_apart_and_those_of_another_file_are_the_same():
    first, second = RowKeys(), RowKeys()
    keys = [first.key("2026-03-01", -4.5, "Bakery") for _ in range(2)]
    assert len(set(keys)) == 2
    assert [second.key("2026-03-01", -4.5, "Bakery") for _ in range(2)] == keys
    assert second.key("2026-03-01", -4.51, "Bakery") not in keys


def test_a_declaration_made_of_a_specification_is_accepted_and_its_version_follows_its_content():
    spec = StreamSpec(
        name="payments",
        label="Payments",
        detail="One line of a statement.",
        fields={"id": TEXT, "amount": NUMBER, "booked_at": TIME, "payee": TEXT},
        time="booked_at",
        title="payee",
        words=("payee",),
        groups=("payee",),
    )
    document = declaration("bank", "Bank", [spec])
    stream = read_declaration(document).streams["payments"]
    assert stream.consent_time_field == "booked_at"
    assert stream.query.aggregations.sum == ("amount",)
    assert document["declaration_version"] == declaration("bank", "Bank", [spec])["declaration_version"]
    assert document["declaration_version"] != declaration("bank", "Money", [spec])["declaration_version"]
