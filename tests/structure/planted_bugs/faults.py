"""Mistakes that faults and attacks would bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_ANY = "tests/store/sqlite/maintenance/test_any_declaration.py"
_SURVIVES = (
    f"{_ANY}::test_every_declaration_that_is_accepted_survives_backup_restore_check_erasure_and_export"
)
_PRUNING = "tests/audit/test_pruning.py"
_ACROSS = f"{_PRUNING}::test_who_read_lists_and_pages_go_on_across_what_was_pruned"
_BYTES = "tests/mcp/serve/test_bytes.py"
_DOCUMENTS = "tests/mcp/serve/test_documents.py"
_FULL = "tests/hostile/store/test_full_home.py"
_HTTP = "src/headgate/web/http.py"
_HEADS = "tests/web/test_wire.py::test_a_request_with_too_large_a_head_is_not_run_alone_or_behind_others"
_KEYS = "tests/web/test_hostile_keys.py::test_no_collection_holds_every_key_that_clients_sent"
_LARGE = "tests/web/test_large_pages.py::test_no_answer_keeps_the_event_loop_waiting"
_STORE = "tests/store/test_maintenance.py"
_QUOTED = "tests/web/test_quoted.py"
_CLAUSES = "src/headgate/policy/clauses.py"

BUGS = (
    # Refusals
    Bug(
        "tests/test_nearest.py::test_the_connection_of_a_name_is_offered_alone_and_the_nearest_comes_first",
        "a connection is not found by what the owner calls it",
        "src/headgate/policy/choose.py",
        "if label.casefold() == connection_id.casefold()]",
        "if label == connection_id]",
    ),
    # Skills
    Bug(
        "tests/mcp/serve/test_skill.py::test_a_client_of_the_skills_extension_lists_the_skill_and_can_verify_what_it_reads",
        "the digest of the skill is not of what is read",
        "src/headgate/mcp/serve/skill.py",
        "    content = skill_text(kinds).encode()\n",
        "    content = skill_text(kinds)[:-1].encode()\n",
    ),
    # Keys of accounts
    Bug(
        "tests/sources/test_account_keys.py::test_a_new_calendar_account_has_keys_that_every_id_carries_and_removes_by_them",
        "the form of an account's keys is not fixed when it is added",
        "src/headgate/sources/accounts.py",
        'form = {"form": job.form} if known is None else {}',
        "form: dict[str, int] = {}",
    ),
    Bug(
        "tests/sources/test_account_keys.py::test_a_new_calendar_account_has_keys_that_every_id_carries_and_removes_by_them",
        "what an account no longer has is removed by the server's ids",
        "src/headgate/sources/parts.py",
        "key=[plain_id(part) if isinstance(part, str) else part for part in item.key]",
        "key=list(item.key)",
    ),
    # Bookmarks
    Bug(
        "tests/policy/test_bookmarks.py::test_a_bookmark_of_an_older_version_is_valid_until_it_ends",
        "bookmarks of older versions are refused",
        "src/headgate/policy/cursors.py",
        "if not token.startswith(Kind.CHANGES):",
        "if token:",
    ),
    Bug(
        "tests/policy/test_bookmarks.py::test_a_bookmark_ends_within_an_hour_of_its_time",
        "a bookmark ends before its time",
        "src/headgate/auth/keys.py",
        "(-(-at // _HOUR)).to_bytes",
        "(at // _HOUR).to_bytes",
    ),
    # Lists for the owner
    Bug(
        "tests/cli/test_mistyped.py::test_a_sample_is_the_line_of_what_is_granted",
        "a sample shows what the grant would withhold",
        "src/headgate/reading/preview.py",
        "line_body(line, {name: value for name, value in values.items() if name in granted.fields})",
        "line_body(line, values)",
    ),
    Bug(
        "tests/console/test_lists.py::test_a_list_shows_when_who_how_much_and_what_as_answers_do",
        "the owner's lists do not say how much",
        "src/headgate/console/lines.py",
        'amount=line.get("amount", ""),',
        'amount="",',
    ),
    # Backups, exports
    Bug(
        _SURVIVES,
        "names with quotes are taken for members of a msgspec type",
        "src/headgate/store/format/records.py",
        "return _UNSPELLABLE.search(name) is None",
        "return True",
    ),
    Bug(
        _SURVIVES,
        "columns of an export are named as the fields are",
        "src/headgate/sources/exporting.py",
        "if candidate.casefold() not in taken\n",
        "if candidate not in taken\n",
    ),
    Bug(
        "tests/sources/test_exports.py::test_an_export_touches_no_file_that_a_record_names_as_it_likes",
        "an export names files by what a record holds",
        "src/headgate/sources/exporting.py",
        "if isinstance(blob_id, str) and is_blob_id(blob_id) and",
        "if isinstance(blob_id, str) and",
    ),
    Bug(
        "tests/sources/test_exports.py::test_an_export_touches_no_file_that_a_record_names_as_it_likes",
        "a file is read by any name",
        "src/headgate/store/sqlite/blobs.py",
        "if not is_blob_id(blob_id):",
        "if not blob_id:",
    ),
    # Large answers
    Bug(
        _LARGE,
        "large answers are drawn in the event loop",
        "src/headgate/reading/home.py",
        "if size_bytes <= _LOOP_BYTES:",
        "if size_bytes >= 0:",
    ),
    Bug(
        _LARGE,
        "pages are shortened for models in the event loop",
        "src/headgate/mcp/serve/records.py",
        "return await draw(len(answer.content), _page_outcome,",
        "return await draw(0, _page_outcome,",
    ),
    Bug(
        _LARGE,
        "documents are drawn in the event loop",
        "src/headgate/reading/records.py",
        "await draw(size, _as_shown, read, served, show)",
        "_as_shown(read, served, show)",
    ),
    # Documents
    Bug(
        f"{_DOCUMENTS}::test_no_name_and_no_value_can_pass_for_the_line_of_another_field",
        "the second line of a value can pass for another field",
        "src/headgate/text/fields.py",
        'text.replace("\\n", _INDENT)',
        "text",
    ),
    Bug(
        f"{_DOCUMENTS}::test_what_is_nested_is_one_line_and_its_texts_cannot_add_a_member",
        "a text in a list can pass for two",
        "src/headgate/text/fields.py",
        "and not _SIGNS.search(text)",
        "",
    ),
    Bug(
        f"{_DOCUMENTS}::test_a_document_has_the_title_that_a_search_shows",
        "a document is named by the usual fields alone",
        "src/headgate/text/document.py",
        "    if line is None:\n        return title(row), field\n",
        "    if line is None or line.title:\n        return title(row), field\n",
    ),
    Bug(
        f"{_DOCUMENTS}::test_a_record_of_4_000_characters_is_whole_with_its_quoted_text",
        "what is beside a text is left to other calls",
        "src/headgate/text/document.py",
        "        if sizes[path] <= left:\n",
        "        if sizes[path] <= min(left, 160):\n",
    ),
    Bug(
        f"{_BYTES}::test_a_document_and_a_window_that_were_not_asked_for_more_have_at_most_24_000_bytes",
        "every document may be large",
        "src/headgate/mcp/serve/fetch.py",
        "TOOL_RESULT if named or query.expand else UNASKED_RESULT",
        "TOOL_RESULT",
    ),
    Bug(
        f"{_BYTES}::test_a_window_around_a_match_that_is_cut_still_holds_the_match",
        "a window that is cut keeps the context before the match",
        "src/headgate/mcp/serve/field.py",
        "limit_chars=shorter, before_chars=None, after_chars=None",
        "limit_chars=shorter",
    ),
    # What strangers send
    Bug(
        _KEYS,
        "every host that was asked for is remembered",
        "src/headgate/web/admission.py",
        "@lru_cache(maxsize=256)",
        "@lru_cache(maxsize=None)",
    ),
    Bug(
        _KEYS,
        "every guessed token is remembered",
        "src/headgate/auth/limits.py",
        "if len(self._levels) > _MAX_BUCKETS:",
        "if len(self._levels) > 1_000_000:",
    ),
    Bug(
        _KEYS,
        "every choice of fields is compiled",
        "src/headgate/store/sql/catalog.py",
        "scopes: BoundedMemo[Reach, Any] = field(default_factory=lambda: BoundedMemo(1024))",
        "scopes: BoundedMemo[Reach, Any] = field(default_factory=lambda: BoundedMemo(1 << 20))",
    ),
    Bug(
        "tests/store/test_projection.py::test_no_type_is_made_for_fields_that_are_asked_for_once",
        "a type is made for every choice of fields",
        "src/headgate/store/format/records.py",
        "_READS_BEFORE_TYPE = 8",
        "_READS_BEFORE_TYPE = 1",
    ),
    Bug(
        _KEYS,
        "every decision on a record is remembered",
        "src/headgate/reading/home.py",
        "if len(self._records) >= _MOST:",
        "if len(self._records) >= 1_000_000:",
    ),
    Bug(
        _HEADS,
        "any number of headers is taken",
        _HTTP,
        "if len(self.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:",
        "if size > MAX_HEADER_BYTES:",
    ),
    Bug(
        _HEADS,
        "long headers are taken if they come at once",
        _HTTP,
        "if len(self.headers) > MAX_HEADERS or size > MAX_HEADER_BYTES:",
        "if len(self.headers) > MAX_HEADERS:",
    ),
    Bug(
        _HEADS,
        "a request whose head is refused is run",
        _HTTP,
        "            self._refuse_head()\n            return\n        if not self.url",
        "            self._refuse_head()\n        if not self.url",
    ),
    Bug(
        "tests/web/test_wire.py::test_a_target_with_a_host_agrees_with_the_header",
        "the host of a target may be another",
        _HTTP,
        'is_same = target.netloc.lower() == headers.get(b"host", b"").lower()',
        "is_same = bool(headers)",
    ),
    # Full disks
    Bug(
        f"{_FULL}::test_a_home_without_reserves_is_listed_and_verified_on_a_full_disk",
        "a home that has no room to be written is not read either",
        "src/headgate/store/engines/sqlite.py",
        "except (StorageReadOnly, StorageFull) as trouble:",
        "except StorageReadOnly as trouble:",
    ),
    Bug(
        f"{_FULL}::test_a_home_that_was_stopped_by_a_full_disk_is_listed_verified_and_served",
        "a full home says that it is ready",
        "src/headgate/web/pages.py",
        '"ready" if reads.store.is_writable else "degraded"',
        '"ready"',
    ),
    Bug(
        f"{_FULL}::test_a_grant_is_revoked_when_there_is_no_room_for_anything_else",
        "a revocation has no reserve",
        "src/headgate/store/engines/sqlite.py",
        "if not self._reserve.release():",
        "if self._reserve:",
    ),
    # Grants
    Bug(
        "tests/reading/test_dropped_fields.py::test_a_field_dropped_and_declared_again_needs_a_new_grant",
        "an old grant shows a field that was dropped and declared again",
        "src/headgate/policy/allowance.py",
        "_means_the_same(declared[0][name], fields[name]) for fields in declared)",
        "_means_the_same(declared[0][name], fields[name]) for fields in declared[-1:])",
    ),
    # Damage
    Bug(
        f"{_STORE}::test_planted_damage_is_found"
        f" {_STORE}::test_a_document_that_decides_what_is_shown_is_not_changed_unnoticed",
        "the sum of the catalog is not compared",
        "src/headgate/store/sql/catalog.py",
        "return noted is not None and noted != catalog_sum(database)",
        "return noted is not None and noted == 0",
    ),
    Bug(
        f"{_STORE}::test_planted_damage_is_found",
        "a store that lacks a fact about itself is whole",
        "src/headgate/store/maintenance/fsck.py",
        "for name in sorted({*FACTS} - known):",
        "for name in sorted({*FACTS} - {*FACTS}):",
    ),
    Bug(
        "tests/store/sqlite/maintenance/test_fsck.py::test_a_damaged_name_of_a_column_is_found",
        "names of columns are not checked",
        "src/headgate/store/maintenance/fsck.py",
        "*_check_tables(database), ",
        "",
    ),
    Bug(
        "tests/store/sqlite/test_word_index.py"
        "::test_bounds_of_a_leaf_that_are_not_those_of_its_texts_are_a_damage",
        "bounds of leaves are not checked",
        "src/headgate/store/maintenance/shelf_check.py",
        "return is_named and is_bounded and is_filtered",
        "return is_named and is_filtered",
    ),
    # The log of disclosures
    Bug(
        f"{_PRUNING}::test_entries_between_which_a_number_is_missing_are_not_moved",
        "entries are pruned over a gap",
        "src/headgate/audit/pruning.py",
        "if block.first != self.head.seq + 1 or not has_its_seal(self._key, self.head, block):",
        "if not has_its_seal(self._key, self.head, block):",
    ),
    Bug(
        f"{_PRUNING}::test_entries_that_were_changed_are_not_moved",
        "entries are pruned whatever their seals are",
        "src/headgate/audit/pruning.py",
        "if block.first != self.head.seq + 1 or not has_its_seal(self._key, self.head, block):",
        "if block.first != self.head.seq + 1:",
    ),
    Bug(
        f"{_PRUNING}::test_nothing_is_moved_beyond_the_noted_end_of_the_chain",
        "the noted end of the chain may be pruned away",
        "src/headgate/audit/pruning.py",
        "if noted is None or block.last > noted.seq or not",
        "if noted is None or not",
    ),
    Bug(
        f"{_PRUNING}::test_of_two_that_prune_at_once_one_is_refused_and_nothing_is_lost",
        "what another process has pruned meanwhile is pruned again",
        "src/headgate/store/ledger/ledger.py",
        "if pruned.first != (1 if row is None else row[0] + 1):",
        "if pruned.first < 1:",
    ),
    Bug(
        f"{_PRUNING}::test_the_seal_of_a_line_covers_all_of_it_also_where_nothing_follows",
        "the seal of the line for pruned entries does not cover the seal it carries",
        "src/headgate/audit/chain.py",
        "before.seal + block.pruned.end_seal + block.events",
        "before.seal + block.events",
    ),
    Bug(
        f"{_PRUNING}::test_a_file_that_is_there_is_not_overwritten",
        "pruning overwrites a file",
        "src/headgate/audit/pruning.py",
        "os.O_WRONLY | os.O_CREAT | os.O_EXCL",
        "os.O_WRONLY | os.O_CREAT",
    ),
    Bug(
        _ACROSS,
        "a page goes on before the last of pruned entries",
        "src/headgate/audit/activity.py",
        "return LogPage(tuple(reads), entry.first)",
        "return LogPage(tuple(reads), entry.seq)",
    ),
    Bug(
        _ACROSS,
        "a page without hits goes on before the last of pruned entries",
        "src/headgate/audit/activity.py",
        "entries[-1].first if len(entries)",
        "entries[-1].seq if len(entries)",
    ),
    Bug(
        _ACROSS,
        "a listing goes on before the last of pruned entries",
        "src/headgate/audit/activity.py",
        "before = entries[-1].first",
        "before = entries[-1].seq",
    ),
    # Answers without hits
    Bug(
        "tests/web/test_schema_words.py::"
        "test_a_search_without_hits_says_what_is_covered_and_what_its_filter_lets_through",
        "a search that only counts is taken for one without hits",
        "src/headgate/reading/search.py",
        "if page.hits or page.count or",
        "if page.hits or",
    ),
    # What a record repeats of another
    Bug(
        f"{_QUOTED}::test_records_that_hold_the_words_only_in_quoted_text_are_counted_apart",
        "quoted text counts like any other",
        "src/headgate/store/search/scope.py",
        "is_quoted = name in reach.quoted_fields",
        "is_quoted = False",
    ),
    Bug(
        f"{_QUOTED}::test_pages_show_every_match_once_and_those_that_quote_it_last",
        "those that quote a word are no part of the count",
        "src/headgate/reading/search.py",
        "else page.count + page.partial_count + page.quoted_count",
        "else page.count + page.partial_count",
    ),
    Bug(
        f"{_QUOTED}::test_only_those_are_counted_and_added_up_that_hold_the_words_themselves",
        "the number of those that quote the words is not of the filter",
        "src/headgate/store/search/counting.py",
        "AggregatePlan(plan.reach, Metric.COUNT, filters=plan.filters)",
        "AggregatePlan(plan.reach, Metric.COUNT)",
    ),
    Bug(
        f"{_QUOTED}::test_values_are_not_read_from_quoted_text_unless_it_is_named",
        "values are read from quoted text",
        _CLAUSES,
        "own = tuple(name for name in fields if name not in quoted)",
        "own = fields",
    ),
    Bug(
        f"{_QUOTED}::test_a_thread_is_not_a_hit_beside_its_messages_unless_it_is_asked_for",
        "a stream is searched beside the one that it repeats",
        _CLAUSES,
        "return searched if query.streams is not None else tuple(_without_repeats(searched, query))",
        "return searched",
    ),
    Bug(
        f"{_QUOTED}::test_a_thread_is_found_where_its_messages_are_not_shown_whole",
        "a stream is left out although not every record that it repeats is shown",
        _CLAUSES,
        "is_whole = scope.time is None and scope.resources is None",
        "is_whole = True",
    ),
    Bug(
        "tests/policy/test_repeats.py::test_by_meaning_quoted_text_is_compared_only_where_it_is_named",
        "by meaning a text is found again where it is quoted",
        "src/headgate/policy/decide.py",
        "compared = tuple(name for name in compared if name not in quoted)",
        "compared = tuple(compared)",
    ),
)
