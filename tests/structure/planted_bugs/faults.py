"""Mistakes that faults and attacks would bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_ANY = "tests/store/sqlite/maintenance/test_any_declaration.py"
_SURVIVES = (
    f"{_ANY}::test_every_declaration_that_is_accepted_survives_backup_restore_check_erasure_and_export"
)
_FOLDING = "tests/audit/test_folding.py"
_AROUND = "tests/audit/test_folded_lists.py::test_a_sum_around_others_is_listed_backwards_once_and_after_them"
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
        "src/headgate/store/projection.py",
        "return _UNSPELLABLE.search(name) is None",
        "return True",
    ),
    Bug(
        _SURVIVES,
        "columns of an export are named as the fields are",
        "src/headgate/sources/exporting.py",
        "if one.casefold() not in taken)",
        "if one not in taken)",
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
        "src/headgate/store/relational/write/blobs.py",
        "if not is_blob_id(blob_id):",
        "if not blob_id:",
    ),
    # Large answers
    Bug(
        _LARGE,
        "large answers are drawn in the event loop",
        "src/headgate/reading/drawing.py",
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
        "src/headgate/reading/local.py",
        "await draw(size, self._as_shown, served, show)",
        "self._as_shown(served, show)",
    ),
    # What strangers send
    Bug(
        _KEYS,
        "every host that was asked for is remembered",
        "src/headgate/web/guard.py",
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
        "src/headgate/store/relational/catalog.py",
        "scopes: BoundedMemo[Reach, SqlScope | None] = field(default_factory=lambda: BoundedMemo(1024))",
        "scopes: BoundedMemo[Reach, SqlScope | None] = field(default_factory=lambda: BoundedMemo(1 << 20))",
    ),
    Bug(
        "tests/store/test_projection.py::test_no_type_is_made_for_fields_that_are_asked_for_once",
        "a type is made for every choice of fields",
        "src/headgate/store/projection.py",
        "_READS_BEFORE_TYPE = 8",
        "_READS_BEFORE_TYPE = 1",
    ),
    Bug(
        _KEYS,
        "every decision on a record is remembered",
        "src/headgate/reading/memo.py",
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
        "src/headgate/store/sqlite/readonly.py",
        "except (StorageReadOnly, StorageFull) as trouble:",
        "except StorageReadOnly as trouble:",
    ),
    Bug(
        f"{_FULL}::test_a_home_that_was_stopped_by_a_full_disk_is_listed_verified_and_served",
        "a full home says that it is ready",
        "src/headgate/web/health.py",
        '"ready" if reads.store.is_writable else "degraded"',
        '"ready"',
    ),
    Bug(
        f"{_FULL}::test_a_grant_is_revoked_when_there_is_no_room_for_anything_else",
        "a revocation has no reserve",
        "src/headgate/store/sqlite/ledger.py",
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
        "src/headgate/store/relational/catalog_sum.py",
        "return noted is not None and noted != catalog_sum(database)",
        "return noted is not None and noted == 0",
    ),
    Bug(
        f"{_STORE}::test_planted_damage_is_found",
        "a store that lacks a fact about itself is whole",
        "src/headgate/store/relational/maintenance/fsck.py",
        "for name in sorted({*FACTS} - known):",
        "for name in sorted({*FACTS} - {*FACTS}):",
    ),
    Bug(
        "tests/store/sqlite/maintenance/test_fsck.py::test_a_damaged_name_of_a_column_is_found",
        "names of columns are not checked",
        "src/headgate/store/sqlite/maintenance/fsck.py",
        "*_check_tables(database), ",
        "",
    ),
    Bug(
        "tests/store/sqlite/test_word_index.py"
        "::test_bounds_of_a_leaf_that_are_not_those_of_its_texts_are_a_damage",
        "bounds of leaves are not checked",
        "src/headgate/store/relational/maintenance/word_check.py",
        "return is_named and is_bounded and is_filtered",
        "return is_named and is_filtered",
    ),
    # The log of disclosures
    Bug(
        f"{_FOLDING}::test_entries_between_which_a_number_is_missing_are_not_folded",
        "entries are folded over a gap",
        "src/headgate/audit/chain.py",
        "if block.first != before.seq + 1 or not _has_its_seal(key, before, block):",
        "if not _has_its_seal(key, before, block):",
    ),
    Bug(
        _AROUND,
        "sums are listed backwards by the last read they stand for",
        "src/headgate/model/ledger.py",
        "key=lambda one: -one.first)",
        "key=lambda one: -one.seq)",
    ),
    Bug(
        _AROUND,
        "the newest entries are those whose last read is before a place",
        "src/headgate/store/ledger.py",
        "block.entries_backwards() if entry.first < end)",
        "block.entries_backwards() if entry.seq < end)",
    ),
    Bug(
        _AROUND,
        "a page goes on before the last read of its last entry",
        "src/headgate/audit/activity.py",
        "return LogPage(tuple(reads), entry.first)",
        "return LogPage(tuple(reads), entry.seq)",
    ),
    Bug(
        _AROUND,
        "a page without hits goes on before the last read of its last entry",
        "src/headgate/audit/activity.py",
        "entries[-1].first if len(entries)",
        "entries[-1].seq if len(entries)",
    ),
    Bug(
        _AROUND,
        "a listing goes on before the last read of an entry",
        "src/headgate/audit/report.py",
        "before = found[-1].first",
        "before = found[-1].seq",
    ),
)
