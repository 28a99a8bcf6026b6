"""Mistakes of the store, of reads and of the log that faults bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_DAMAGED = "tests/store/test_damaged.py"
_STORED_ROWS = "src/headgate/store/changes/stored_rows.py"
_CHANGES = "src/headgate/store/queries/changes.py"
_LOOP_WALK = (
    "tests/store/sqlite/test_changes_work.py"
    "::test_the_event_loop_does_not_walk_a_stream_of_which_little_is_visible"
)
_LOG_IN_LOOP = (
    "tests/audit/test_long_logs.py::test_the_event_loop_neither_reads_nor_checks_nor_writes_the_log"
)
_BACKGROUND = "tests/store/sqlite/test_background.py"

BUGS = (
    # Damage
    Bug(
        f"{_DAMAGED}::test_a_new_version_is_declared_around_a_damaged_record "
        f"{_DAMAGED}::test_words_are_indexed_anew_around_a_damaged_record",
        "a damaged record stops work over all of them",
        _STORED_ROWS,
        "except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, *database.damage):",
        "except KeyError:",
    ),
    Bug(
        f"{_DAMAGED}::test_what_comes_in_unchanged_mends_a_damaged_record",
        "a damaged record is taken for what comes in again",
        "src/headgate/store/changes/shelf_changes.py",
        "if (old.digest, old.long, old.body) == (digest, split.long, split.body):",
        "if old.digest == digest:",
    ),
    Bug(
        "tests/store/test_connections.py::test_the_writer_forgets_a_catalog_whose_change_is_undone",
        "the writer remembers a catalog that was undone",
        "src/headgate/store/changes/writer.py",
        "            database.known_catalog = None\n",
        "",
    ),
    Bug(
        f"{_DAMAGED}::test_a_search_by_meaning_goes_around_a_damaged_page_and_names_the_record",
        "a search by meaning needs every row",
        "src/headgate/store/search/hits.py",
        "rows = readable_rows(database, [match.place.rid for match in matches])",
        "rows = {r[0]: r for r in database.rows(FoundRow, "
        "'SELECT rid,sid,record_id,emitted_at,ts,long,digest,body,changed FROM record')}",
    ),
    Bug(
        f"{_DAMAGED}::test_a_store_whose_words_cannot_be_indexed_anew_for_a_damaged_page_opens_and_is_read",
        "a store whose words cannot be indexed does not open",
        "src/headgate/store/changes/word_index.py",
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
        "src/headgate/store/engines/sqlite.py",
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
        "src/headgate/audit/activity.py",
        "while entries := await ledger.entries(after, _AT_ONCE):",
        "while entries := await ledger.entries(after, 10**9):",
    ),
    # Rules
    Bug(
        "tests/policy/test_hiding.py::test_characters_that_are_not_seen_keep_no_rule_from_hiding",
        "characters that are not seen part words",
        "src/headgate/words.py",
        "\\u200b-\\u200f",
        "\\u200c-\\u200f",
    ),
    Bug(
        "tests/policy/test_hiding.py::test_a_rule_by_value_hides_records_whose_field_has_it",
        "an address is only seen at the end of a text",
        "src/headgate/policy/hiding.py",
        'equals(match[0].replace(" ", "").strip(".\'")) for match in _ADDRESS.finditer(text)',
        "equals(match) for match in text.split()[-1:]",
    ),
    Bug(
        "tests/store/test_rules.py::test_a_rule_hides_whatever_a_search_for_its_words_finds",
        "rules cut texts into words in another way than search",
        "src/headgate/policy/hiding.py",
        """yield f" {' '.join(words_of(form))} \"""",
        """yield f" {' '.join(form.casefold().split())} \"""",
    ),
    Bug(
        "tests/store/test_rules.py::test_records_are_compared_again_when_rules_find_more_than_before",
        "records are compared with rules once",
        "src/headgate/store/changes/hiding.py",
        "move(database, catalog, shelves[sid], list(rids), at=self._now())",
        "list(found)",
    ),
    # Background work
    Bug(
        f"{_BACKGROUND}::test_a_task_that_fails_is_logged_once_shown_and_starves_none_after_it",
        "a failing idle task hides those after it",
        "src/headgate/store/changes/writer.py",
        "self._tried_again[task.name] = time.monotonic() + seconds",
        "return False",
    ),
    Bug(
        f"{_BACKGROUND}::test_the_thread_of_vectors_goes_on_after_any_failure",
        "the thread of vectors ends at failures of others",
        "src/headgate/store/changes/vector_making.py",
        "except Exception as error:  # noqa: BLE001 - a thread that ends in silence is worse than any failure",
        "except MemoryError as error:",
    ),
    # Reads and files of PostgreSQL
    Bug(
        "tests/store/postgres/test_reader_threads.py"
        "::test_reads_that_their_callers_left_before_their_turn_are_never_done",
        "reads stay in the queue when their callers leave",
        "src/headgate/store/engines/postgres_readers.py",
        "self._asked.remove(waiting)",
        "pass",
    ),
    Bug(
        "tests/store/postgres/test_large_files.py"
        "::test_a_large_file_passes_through_little_memory_and_few_connections",
        "a file is whole in memory before it is stored",
        "src/headgate/store/postgres/blobs.py",
        'parts = chain([file.read(_PART_BYTES)], iter(partial(file.read, _PART_BYTES), b""))',
        'parts = [*chain([file.read(_PART_BYTES)], iter(partial(file.read, _PART_BYTES), b""))]',
    ),
    # Files
    Bug(
        "tests/store/test_unused_files.py::test_a_file_goes_with_the_last_record_that_uses_it",
        "files of deleted records stay",
        "src/headgate/store/changes/retention.py",
        "remove_gone(database, lambda gone: self._remove(database, gone))",
        "remove_gone(database, lambda gone: None)",
    ),
    Bug(
        "tests/store/test_unused_files.py::test_a_file_waits_for_its_record_and_for_those_that_read_it",
        "files go before their records come",
        "src/headgate/store/changes/retention.py",
        "stored_before = now - WAIT_US",
        "stored_before = now",
    ),
    Bug(
        "tests/store/test_unused_files.py::test_what_killed_uploads_left_goes_and_what_goes_on_stays",
        "half a file stays for ever",
        "src/headgate/store/changes/retention.py",
        "self._remove_unfinished(now)",
        "pass",
    ),
    # Search
    Bug(
        "tests/store/test_search.py::test_a_filter_holds_in_streams_of_one_name_of_several_connectors",
        "a filter takes streams of one name for one",
        "src/headgate/store/queries/scope.py",
        "by_stream.setdefault((shelf.stream.stid, shelf.name), [])",
        "by_stream.setdefault((0, shelf.name), [])",
    ),
    Bug(
        "tests/store/test_search.py::test_texts_that_changed_are_forgotten_however_many_wait_to_be_noted",
        "a text that left takes the one with it that came in its place",
        "src/headgate/store/sql/word_segments.py",
        "        left = self.numbers[self.last_gids >= gid]",
        "        left = self.numbers",
    ),
    Bug(
        "tests/store/test_search.py::test_texts_that_changed_are_forgotten_however_many_wait_to_be_noted",
        "a merge brings back texts that left",
        "src/headgate/store/sql/word_segments.py",
        "    stays = ~gone.among(gid, texts.numbers)",
        "    stays = np.ones(len(texts), np.bool_)",
    ),
    Bug(
        "tests/store/sqlite/test_word_index.py::"
        "test_a_batch_that_changes_one_text_reads_the_numbers_of_no_segment",
        "a batch that changes one text reads the numbers of its shelf",
        "src/headgate/store/sql/word_segments.py",
        "_WAITING_MOST = 256",
        "_WAITING_MOST = 0",
    ),
    Bug(
        "tests/store/test_search.py::test_a_word_of_any_length_is_found",
        "the index holds long words whole",
        "src/headgate/words.py",
        "return [word[:WORD_CHARS] for word in words] if",
        "return list(words) if",
    ),
    Bug(
        "tests/reading/test_turns.py::test_reads_that_their_callers_left_do_not_count_among_those_that_wait",
        "reads that were left count among those that wait",
        "src/headgate/reading/turns.py",
        "            queue.remove(turn)",
        "            pass",
    ),
)
