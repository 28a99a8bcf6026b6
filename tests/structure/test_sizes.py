from __future__ import annotations

from pathlib import Path

from tests.structure.sizes import code_lines, size_problems

ROOT = Path(__file__).parents[2]


def test_modules_and_functions_of_the_package_are_small():
    assert size_problems((ROOT / "src").rglob("*.py")) == []


def test_modules_and_functions_of_the_tests_are_small():
    assert size_problems((ROOT / "tests").rglob("*.py")) == []


def test_a_planted_long_module_is_found(tmp_path: Path):
    planted = tmp_path / "long.py"
    planted.write_text("x = 1\n" * 501, encoding="utf-8")
    assert size_problems([planted]) == [f"{planted} has 501 lines; at most 500"]


def test_a_planted_long_function_is_found(tmp_path: Path):
    planted = tmp_path / "deep.py"
    planted.write_text("def f():\n" + "    x = 1\n\n" * 60, encoding="utf-8")
    assert size_problems([planted]) == [f"{planted}: f has 61 lines; at most 60"]


def test_planted_functions_that_are_long_on_the_whole_are_found(tmp_path: Path):
    planted = tmp_path / "wordy.py"
    planted.write_text("".join(f"def f{n}():\n" + "    x = 1\n" * 40 for n in range(10)), encoding="utf-8")
    assert len(size_problems([planted])) == 2


def test_a_planted_module_name_that_says_nothing_is_found(tmp_path: Path):
    planted = tmp_path / "utils.py"
    planted.write_text("", encoding="utf-8")
    assert size_problems([planted]) == [f"{planted} has a name that says nothing"]


def test_what_is_written_here_of_the_authorization_server_is_small():
    assert code_lines((ROOT / "src/headgate/auth/oauth").rglob("*.py")) < 900


def test_lines_of_code_are_counted_without_blanks_comments_and_docstrings(tmp_path: Path):
    planted = tmp_path / "counted.py"
    planted.write_text(
        '"""Doc.\n\nMore."""\n\nimport io\n\n# why\n\n\ndef f(\n    x,\n):\n    """Doc."""\n    return """a\nb"""\n'
    )
    assert code_lines([planted]) == 6
