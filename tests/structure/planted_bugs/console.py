"""Mistakes on the owner's pages. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_ACTIVITY = "tests/console/test_activity_page.py"

BUGS = (
    Bug(
        f"{_ACTIVITY}::test_a_number_of_records_opens_the_line_of_each_with_its_link_and_what_was_shown",
        "an entry opens the records of its neighbours as well",
        "src/headgate/audit/activity.py",
        "for entry in entries if entry.seq <= last)",
        "for entry in await self._ledger.entries(0, _MOST_SCANNED))",
    ),
    Bug(
        f"{_ACTIVITY}::test_a_refusal_says_in_words_what_was_asked_for_and_the_log_has_no_words_of_the_caller",
        "the log holds what a caller wrote as a name",
        "src/headgate/reading/asked_for.py",
        "for name in dict.fromkeys(named) if name in declared)",
        "for name in dict.fromkeys(named) if name)",
    ),
    Bug(
        f"{_ACTIVITY}::test_the_log_is_narrowed_to_days_however_long_it_is",
        "the last day of the log is left out",
        "src/headgate/console/activity.py",
        "until=None if until is None else until + DAY_US,",
        "until=until,",
    ),
)
