"""Mistakes by which data of two origins becomes one. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_DROPPED = "tests/console/test_pages.py::test_files_that_are_dropped_together_come_in_as_each_would_alone"
_MONEY = "tests/sources/money/test_money.py"

BUGS = (
    Bug(
        _DROPPED,
        "files that are dropped together become one import",
        "src/headgate/sources/uploads.py",
        "    return sorted(directory.iterdir())\n",
        "    return [directory]\n",
    ),
    Bug(
        f"{_MONEY}::test_equal_lines_of_two_accounts_without_numbers_both_stay",
        "accounts without numbers are one",
        "src/headgate/sources/money/ledger.py",
        "(self.label or UNNAMED).casefold()",
        "UNNAMED",
    ),
    Bug(
        f"{_MONEY}::test_importing_again_into_a_connection_of_before_adds_nothing",
        "older connections are read in the newest form",
        "src/headgate/sources/importing.py",
        "self._job.form if is_new else 1",
        "self._job.form",
    ),
)
