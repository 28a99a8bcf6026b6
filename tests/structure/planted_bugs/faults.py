"""Mistakes that faults and attacks would bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_ANY = "tests/store/sqlite/maintenance/test_any_declaration.py"
_SURVIVES = (
    f"{_ANY}::test_every_declaration_that_is_accepted_survives_backup_restore_check_erasure_and_export"
)
_PRUNING = "tests/audit/test_pruning.py"
_ACROSS = f"{_PRUNING}::test_who_read_lists_and_pages_go_on_across_what_was_pruned"
_FULL = "tests/hostile/store/test_full_home.py"
_HTTP = "src/headgate/web/http.py"
_HEADS = "tests/web/test_wire.py::test_a_request_with_too_large_a_head_is_not_run_alone_or_behind_others"
_KEYS = "tests/web/test_hostile_keys.py::test_no_collection_holds_every_key_that_clients_sent"
_LARGE = "tests/web/test_large_pages.py::test_no_answer_keeps_the_event_loop_waiting"
_STORE = "tests/store/test_maintenance.py"

BUGS = (
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
)
