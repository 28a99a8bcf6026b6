"""Mistakes on the owner's pages. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_RECORD = "tests/console/test_record_page.py"
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
    Bug(
        "tests/console/test_doors.py::test_a_mistyped_address_of_the_console_is_a_page_of_it",
        "a mistyped address of two parts has no page",
        "src/headgate/console/addresses.py",
        "for place in range(depth + 1))",
        "for place in range(1))",
    ),
    Bug(
        "tests/cli/test_search.py::test_nothing_found_ends_with_1_and_a_wrong_name_says_what_there_is",
        "a search without hits ends like one with hits",
        "src/headgate/cli/search.py",
        "_NOTHING_FOUND = 1",
        "_NOTHING_FOUND = 0",
    ),
    Bug(
        "tests/console/test_week.py::test_home_counts_the_records_of_each_source_once_a_week_with_the_week_before_beside_it",
        "what was read last week counts as this week",
        "src/headgate/audit/activity.py",
        "week = (now - read.event.at) // (7 * DAY_US)",
        "week = (now - read.event.at) // (14 * DAY_US)",
    ),
    Bug(
        "tests/console/test_widths.py::test_no_page_is_wider_than_its_screen_whatever_the_names",
        "a long name makes the cards of a phone wider than it",
        "src/headgate/console/static/console.css",
        "  .grid { grid-template-columns: repeat(2, minmax(0, 1fr)) }",
        "  .grid { grid-template-columns: 1fr 1fr }",
    ),
    Bug(
        "tests/console/test_found_again.py::test_an_import_is_found_again_from_home_and_from_add_data",
        "a running import is on no page but its own",
        "src/headgate/console/home.py",
        "if known.is_running]",
        "if known.percent > 100]",
    ),
    Bug(
        f"{_RECORD}::test_mail_is_a_subject_people_a_date_and_a_text_with_its_thread_and_quoted_text_folded",
        "what a reply quotes stands among the technical fields",
        "src/headgate/console/layout.py",
        '        ("quoted",),\n',
        "        (),\n",
    ),
    Bug(
        f"{_RECORD}::test_never_show_this_hides_one_record_from_agents_at_once_and_says_so",
        "never show this hides every record whose key begins so",
        "src/headgate/console/record.py",
        "ChosenRule(RuleKind.VALUE, key, name, stream)",
        'ChosenRule(RuleKind.VALUE, f"{key}*", name, stream)',
    ),
    Bug(
        f"{_RECORD}::test_a_stream_is_narrowed_to_days_words_and_a_field_and_shown_with_columns",
        "the last day of a list is left out",
        "src/headgate/console/narrowed.py",
        "_day(self.until) + timedelta(days=1)",
        "_day(self.until)",
    ),
)
