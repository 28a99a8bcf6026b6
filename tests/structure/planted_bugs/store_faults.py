"""Mistakes of the store, of reads and of the log that faults bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_DAMAGED = "tests/store/test_damaged.py"
_LONG_TEXTS = "src/headgate/store/relational/write/long_texts.py"
_CHANGES = "src/headgate/store/relational/read/changes.py"
_LOOP_WALK = (
    "tests/store/sqlite/test_changes_work.py"
    "::test_the_event_loop_does_not_walk_a_stream_of_which_little_is_visible"
)
_LOG_IN_LOOP = (
    "tests/audit/test_long_logs.py::test_the_event_loop_neither_reads_nor_checks_nor_writes_the_log"
)

BUGS = (
    # Damage
    Bug(
        f"{_DAMAGED}::test_a_new_version_is_declared_around_a_damaged_record "
        f"{_DAMAGED}::test_words_are_indexed_anew_around_a_damaged_record",
        "a damaged record stops work over all of them",
        _LONG_TEXTS,
        "except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, *database.damage):",
        "except KeyError:",
    ),
    Bug(
        f"{_DAMAGED}::test_what_comes_in_unchanged_mends_a_damaged_record",
        "a damaged record is taken for what comes in again",
        "src/headgate/store/relational/write/shelf_changes.py",
        "if (old.digest, old.long, old.body) == (digest, split.long, split.body):",
        "if old.digest == digest:",
    ),
    Bug(
        f"{_DAMAGED}::test_a_search_by_meaning_goes_around_a_damaged_page_and_names_the_record",
        "a search by meaning needs every row",
        "src/headgate/store/relational/read/meaning.py",
        "rows = readable_rows(self._database, [one.place.rid for one in shown])",
        "rows = {r[0]: r for r in self._database.rows(FoundRow, "
        "'SELECT rid,sid,record_id,emitted_at,ts,long,digest,body,changed FROM record')}",
    ),
    Bug(
        f"{_DAMAGED}::test_a_store_whose_words_cannot_be_indexed_anew_for_a_damaged_page_opens_and_is_read",
        "a store whose words cannot be indexed does not open",
        "src/headgate/store/relational/write/word_index.py",
        "with suppress(*database.damage):",
        "with suppress():",
    ),
    # Changes
    Bug(
        _LOOP_WALK,
        "the event loop walks streams for changes",
        _CHANGES,
        "work = _WorkLeft(_LOOP_WORK if is_in_loop else _WORK_MOST)",
        "work = _WorkLeft(_WORK_MOST)",
    ),
    Bug(
        _LOOP_WALK,
        "granted keys are looked for in every record",
        _CHANGES,
        "if plan.reach.resources is not None:",
        "if plan.reach.resources is None:",
    ),
    Bug(
        "tests/store/test_changes.py"
        "::test_a_reader_hears_of_what_left_its_time_however_little_a_request_looks_at",
        "what left a reader's time is passed over",
        _CHANGES,
        "(r.changed IS NOT NULL OR NOT",
        "(r.changed IS NULL OR NOT",
    ),
    # The log
    Bug(
        _LOG_IN_LOOP,
        "the log is scanned in the event loop",
        "src/headgate/store/sqlite/ledger.py",
        "return await asyncio.get_running_loop().run_in_executor(self._scans, self._scan, work)",
        "return self._scan(work)",
    ),
    Bug(
        _LOG_IN_LOOP,
        "the log is written in the event loop",
        "src/headgate/audit/activity.py",
        "yield await asyncio.to_thread(written, piece)",
        "yield written(piece)",
    ),
    Bug(
        _LOG_IN_LOOP,
        "the whole log is in memory to be sent",
        "src/headgate/audit/report.py",
        "while found := await ledger.entries(after, _AT_ONCE):",
        "while found := await ledger.entries(after, 10**9):",
    ),
)
