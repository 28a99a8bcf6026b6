"""Every hostile case against storage and intake, and the tests that show how it ends."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIRST, LAST = 67, 83
ROWS = """
67 a field called '"];drop table' is a name and nothing else
    store/test_rows.py::test_row_67_field_names_are_names_and_nothing_else
68 text with NUL is refused with its place, and the good lines stay
    store/test_rows.py::test_row_68_nul_is_refused_with_its_place_and_the_good_lines_stay
69 the id ../../etc/passwd is reached by its handle alone and makes no file
    store/test_rows.py::test_row_69_any_key_is_reached_by_itself_alone_and_makes_no_file
70 of two lines for one record in a batch the last counts
    store/test_rows.py::test_row_70_of_two_lines_for_one_record_the_last_counts
71 a repeated Idempotency-Key gets the answer of the first, or a conflict
    store/test_rows.py::test_rows_71_and_72_a_repeated_batch_is_answered_as_before_and_taken_once
72 a batch whose acknowledgement was lost is there once after it is sent again
    store/test_rows.py::test_rows_71_and_72_a_repeated_batch_is_answered_as_before_and_taken_once
    store/test_killed.py::test_ten_kills_lose_nothing_and_tear_nothing
73 a full disk takes no part of a batch; what cannot be disclosed is not shown
    store/test_full.py::test_a_batch_that_finds_no_room_is_absent_as_a_whole_and_reads_go_on
    store/test_full.py::test_a_file_that_may_not_grow_is_reported_as_no_space_and_recovers_without_a_restart
    store/test_edges.py::test_row_73_a_full_disk_takes_no_part_of_a_batch_and_shows_nothing_undisclosed
74 a file that is garbage is refused, by name, and left as it is
    store/test_corrupt.py::test_a_damaged_file_is_refused_and_not_changed
    store/test_corrupt.py::test_a_log_of_garbage_is_refused_and_not_changed
75 a flipped byte is an error of that record alone; a changed or shortened log of disclosures is noticed
    store/test_corrupt.py::test_a_flipped_byte_is_reported_for_that_record_alone_and_fsck_names_it
    store/test_edges.py::test_row_75_a_flipped_byte_is_an_error_of_that_record_alone
    ../audit/test_sqlite_chain.py::test_what_was_changed_behind_its_back_is_noticed
76 a clock that jumps back ten years revives nothing
    store/test_edges.py::test_row_76_a_clock_that_jumps_back_revives_nothing_and_reorders_nothing
    ../store/sqlite/maintenance/test_retention.py::test_a_clock_that_jumps_back_removes_nothing
77 sixteen writers and a long reader meet no error
    store/test_crowd.py::test_sixteen_writers_in_each_of_two_processes_and_a_long_reader_meet_no_error
78 a file of a newer version is refused; a migration that is stopped is resumed
    store/test_migrated.py::test_a_newer_store_is_refused_and_not_changed
    store/test_migrated.py::test_a_migration_killed_at_any_write_leaves_the_old_state_or_the_new_and_is_resumed
79 a server that is stopped under load drains; stopped twice it ends at once; nothing is torn
    store/test_edges.py::test_row_79_a_server_asked_to_stop_under_load_keeps_what_it_acknowledged
    store/test_edges.py::test_row_79_a_server_that_is_stopped_twice_ends_at_once_says_so_and_tears_nothing
80 packed content is refused and never unpacked
    store/test_edges.py::test_row_80_packed_records_are_refused_and_never_unpacked
81 rows of CSV are refused, and no formula leaves the house as a cell
    store/test_edges.py::test_row_81_rows_of_csv_are_refused_and_a_formula_is_a_text_like_any_other
82 an erased record leaves no byte, also when erasing is stopped and done again
    store/test_erase.py::test_an_erased_record_leaves_no_byte
    store/test_stopped.py::test_a_killed_command_leaves_the_old_state_or_the_new_and_ends_when_run_again
83 a record too large is refused, and its neighbours stay
    store/test_rows.py::test_row_83_a_record_too_large_is_refused_and_its_neighbours_stay
"""


def table(text: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for row in filter(str.strip, text.splitlines()):
        if row.startswith(" "):
            found[max(found)].append(row.strip())
        else:
            found[int(row.split()[0])] = []
    return found


@cache
def checks_of(path: Path) -> frozenset[str]:
    """Name the tests of a file that every run includes and that look at something."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        one.name
        for one in tree.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any("soak" in ast.unparse(mark) or "skip" in ast.unparse(mark) for mark in one.decorator_list)
    )


def test_every_row_is_there():
    assert list(table(ROWS)) == list(range(FIRST, LAST + 1))


@pytest.mark.parametrize("row", range(FIRST, LAST + 1))
def test_every_row_has_tests_that_exist(row: int):
    named = table(ROWS)[row]
    assert named
    for name in named:
        path, _, test = name.partition("::")
        assert test in checks_of(HERE / path), name
