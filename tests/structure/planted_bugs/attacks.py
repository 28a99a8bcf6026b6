"""Mistakes that break a limit or a promise under attack. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

BUGS = (
    # Hidden text
    Bug(
        "tests/store/sqlite/test_search_work.py"
        "::test_hidden_text_changes_neither_the_answer_nor_the_work_of_a_search",
        "hidden texts are left out after their words were found",
        "src/headgate/store/search/visible_text.py",
        "return _in_memory(view.gid, narrow(Part(view.texts, read_leaves(database, view.gid), stays)))",
        "return _View(view.gid, view.texts, view.directory, view.languages, view.filter, stays)",
    ),
    # Slow and silent peers
    Bug(
        "tests/web/test_server.py::test_blank_lines_after_an_answer_do_not_hold_a_connection_open",
        "blank lines hold a connection open",
        "src/headgate/web/http.py",
        "            self._stop_receive_timer()\n            self._resume_idle_timer()\n",
        "            self._stop_receive_timer()\n",
    ),
    Bug(
        "tests/web/test_server.py::test_a_body_that_comes_slowly_but_comes_is_taken_whole",
        "a slow body is cut",
        "src/headgate/web/http.py",
        "if is_waiting or is_quick:",
        "if is_waiting:",
    ),
    Bug(
        "tests/web/test_server.py::test_a_large_answer_that_is_read_slowly_but_is_read_arrives_whole_and_one_that_is_not_read_is_cut",
        "a slow reader is cut off",
        "src/headgate/web/http.py",
        "if taken >= LEAST_BYTES_A_SECOND * SEND_SECONDS:",
        "if taken >= 1 << 40:",
    ),
    Bug(
        "tests/web/test_server.py::test_an_ingest_that_is_cut_short_says_what_is_stored_and_goes_on_with_its_key",
        "a body that is cut short gets no answer",
        "src/headgate/web/http.py",
        "elif not self._end_body():",
        "elif self:",
    ),
    Bug(
        "tests/web/test_pipelined.py::test_a_flood_of_requests_is_parsed_only_as_far_as_it_was_read",
        "floods are parsed as they come",
        "src/headgate/web/http.py",
        "while begin < len(data) and not self.pipeline and not self._is_aborted:",
        "while begin < len(data) and not self._is_aborted:",
    ),
    # Memory
    Bug(
        "tests/web/test_memory.py::test_requests_are_refused_before_the_interpreter_runs_out_of_memory",
        "work is begun however little memory is left",
        "src/headgate/memory.py",
        "    if left_bytes() < size_bytes + RESERVE_BYTES:",
        "    if left_bytes() < 0 - size_bytes:",
    ),
    # Large pages
    Bug(
        "tests/web/test_large_pages.py::test_pages_end_at_a_bound_in_bytes_and_lead_to_every_record_once",
        "pages have no bound in bytes",
        "src/headgate/store/queries/pages.py",
        "            if left < 0 and records:",
        "            if left < 0 and not records:",
    ),
    Bug(
        "tests/web/test_large_pages.py::test_related_records_count_for_the_bound",
        "related records do not count for a page",
        "src/headgate/store/queries/pages.py",
        "sum(len(child.body) for child in children.records)",
        "sum(len(child.body) for child in children.records[:0])",
    ),
    # Budgets, guesses, turns
    Bug(
        "tests/audit/test_budget.py::test_requests_at_the_same_time_cannot_pass_under_the_same_rest",
        "records are not counted when an answer leaves",
        "src/headgate/audit/budget.py",
        "write_at(handle, _LINE % (day, used + counts), 0)",
        "write_at(handle, _LINE % (day, used), 0)",
    ),
    Bug(
        "tests/audit/test_budget.py::test_no_other_process_counts_between_the_reading_and_the_writing_of_a_count",
        "budgets are counted without a lock",
        "src/headgate/audit/budget.py",
        "                lock(handle, wait=True)\n",
        "                if handle < 0:\n                    lock(handle, wait=True)\n",
    ),
    Bug(
        "tests/web/test_addresses.py::test_one_who_guesses_is_slowed_down_at_every_address_with_a_token_and_others_are_not",
        "guesses wait only if both their address and their beginning are used up",
        "src/headgate/auth/limits.py",
        "if not all(taken):",
        "if not any(taken):",
    ),
    Bug(
        "tests/web/test_wire.py::test_only_a_proxy_that_the_owner_named_is_believed_about_scheme_and_client",
        "every peer is believed about the address of a client",
        "src/headgate/web/server.py",
        'proxy_headers=bool(proxies),\n        forwarded_allow_ips=",".join(proxies),',
        'proxy_headers=True,\n        forwarded_allow_ips="*",',
    ),
    Bug(
        "tests/reading/test_turns.py::test_every_read_gets_its_turn_and_each_waiting_client_one_before_any_gets_a_second",
        "a client is served until it waits for nothing",
        "src/headgate/reading/turns.py",
        "            self._waiting.move_to_end(client)\n",
        "",
    ),
    Bug(
        "tests/reading/test_turns.py::test_too_many_waiting_reads_are_refused_with_what_to_do",
        "any number of reads of one client waits",
        "src/headgate/reading/turns.py",
        "if len(queue) >= MOST_WAITING:",
        "if len(queue) >= 10_000_000:",
    ),
    Bug(
        "tests/reading/test_search_work.py::test_a_search_that_would_read_too_much_finds_the_newest_and_says_that_it_is_partial",
        "a search that was cut is not called partial",
        "src/headgate/reading/search.py",
        "(search_partial(),) if page.is_cut else ()",
        "(search_partial(),) if page.is_index_building else ()",
    ),
    # Clocks, restores, keys, modes
    Bug(
        "tests/auth/test_admission.py::test_what_has_expired_stays_expired_when_the_clock_goes_back",
        "a clock that goes back revives a grant",
        "src/headgate/auth/latest_time.py",
        "        return max(now, noted)\n",
        "        return now\n",
    ),
    Bug(
        "tests/cli/test_store.py::test_a_grant_that_was_revoked_after_a_backup_does_not_come_back_with_it",
        "a restore keeps the grants",
        "src/headgate/cli/store.py",
        "end_at = None if keep_grants else now()",
        "end_at = None if keep_grants else None",
    ),
    Bug(
        "tests/audit/test_journal.py::test_what_cannot_be_checked_is_not_reported_as_changed",
        "a missing key is a change of the log",
        "src/headgate/audit/chain.py",
        "start = await _start(ledger, noted.key) if noted.is_later_key else GENESIS",
        "start = GENESIS",
    ),
    Bug(
        "tests/audit/test_journal.py::test_a_key_that_is_too_short_is_refused_and_left_alone",
        "a short key is used",
        "src/headgate/home.py",
        "if len(content) < least_bytes:",
        "if not least_bytes:",
    ),
    Bug(
        "tests/cli/test_store.py::test_a_restored_home_is_private_whatever_the_umask",
        "modes of restored directories follow the umask",
        "src/headgate/home.py",
        "            parent.mkdir(mode=0o700)\n            parent.chmod(0o700)\n",
        "            parent.mkdir()\n",
    ),
    Bug(
        "tests/test_home.py::test_a_link_in_a_home_is_refused",
        "links in a home are followed",
        "src/headgate/home.py",
        "        status = path.lstat()\n    except FileNotFoundError:",
        "        status = path.stat()\n    except FileNotFoundError:",
    ),
    Bug(
        "tests/reading/test_damaged.py::test_a_damaged_record_is_left_out_with_a_warning_that_names_it",
        "a damaged record ends its page",
        "src/headgate/store/queries/pages.py",
        "            if record is None:\n                continue\n",
        "            if record is None:\n                return records, place\n",
    ),
    # What clients send
    Bug(
        "tests/web/test_admission.py::test_a_package_whose_grants_are_all_revoked_is_challenged_where_agents_call",
        "a package whose grants are revoked gets no challenge",
        "src/headgate/web/refusals.py",
        "GrantInvalid, GrantRevoked, PackageRevoked),",
        "GrantInvalid, GrantRevoked),",
    ),
    Bug(
        "tests/web/test_admission.py::test_a_host_is_ours_by_name_or_because_it_is_at_home",
        "only the beginning of a host is read",
        "src/headgate/web/admission.py",
        "parts = _HOST.fullmatch(host)",
        "parts = _HOST.match(host)",
    ),
    Bug(
        "tests/mcp/serve/test_hosted.py::test_an_id_is_a_short_text_or_an_integer_in_every_era",
        "any number is an id",
        "src/headgate/mcp/body.py",
        '_INTEGER = re.compile(rb"-?[0-9]{1,19}")',
        '_INTEGER = re.compile(rb"[-+.0-9eE]+")',
    ),
    Bug(
        "tests/mcp/serve/test_hosted.py::test_an_id_is_a_short_text_or_an_integer_in_every_era",
        "an id has any length",
        "src/headgate/mcp/body.py",
        "<= MAX_ID_CHARS\n",
        "<= MAX_ID_CHARS * 4096\n",
    ),
    Bug(
        "tests/text/test_quote.py::test_what_counts_as_printed_shows_itself_but_for_what_is_hidden_all_the_same",
        "variation selectors are printed",
        "src/headgate/text/quote.py",
        "\\ufe00-\\ufe0f",
        "",
    ),
    Bug(
        "tests/text/test_quote.py::test_what_counts_as_printed_shows_itself_but_for_what_is_hidden_all_the_same",
        "an empty braille sign is printed",
        "src/headgate/text/quote.py",
        "\\u2800",
        "",
    ),
    Bug(
        "tests/text/test_quote.py::test_what_does_not_count_as_printed_is_escaped_where_it_is_not_seen",
        "private use is printed",
        "src/headgate/text/quote.py",
        "\\ue000-\\uf8ff",
        "",
    ),
    Bug(
        "tests/text/test_quote.py::test_what_does_not_count_as_printed_is_escaped_where_it_is_not_seen",
        "musical controls are printed",
        "src/headgate/text/quote.py",
        "\\U0001d173-\\U0001d17a",
        "",
    ),
    Bug(
        "tests/text/test_quote.py::test_what_does_not_count_as_printed_is_escaped_where_it_is_not_seen",
        "shorthand controls are printed",
        "src/headgate/text/quote.py",
        "\\U0001bca0-\\U0001bca3",
        "",
    ),
    Bug(
        "tests/store/test_hostile_lines.py::test_every_value_that_is_rejected_has_its_reason",
        "an object in a record has any number of members",
        "src/headgate/store/format/lines.py",
        "if kind is dict and len(value) > MAX_KEYS:",
        "if kind is dict and len(value) > 1 << 20:",
    ),
    Bug(
        "tests/store/test_hostile_lines.py::test_every_value_that_is_rejected_has_its_reason",
        "a record has any number of members",
        "src/headgate/store/format/lines.py",
        "    if len(values) > MAX_KEYS:",
        "    if len(values) > 1 << 20:",
    ),
)
