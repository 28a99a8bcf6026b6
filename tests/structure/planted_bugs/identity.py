"""Mistakes in who is let in, for how long, how often, and in what the log proves. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_RESTORED = "tests/console/test_restored.py::test_a_restore_ends_every_credential_unless_the_owner_keeps_them"

_BUDGET = "tests/reading/test_daily_budget.py"
_LOG = "tests/cli/test_audit.py"
_SERVICE = "src/headgate/auth/oauth/service.py"
_SERVERS = "tests/console/test_servers.py"

BUGS = (
    Bug(
        "tests/hostile/test_grants.py"
        "::test_a_grant_of_a_removed_connection_does_not_open_the_next_one_of_its_name",
        "the id of a removed connection is given again",
        "src/headgate/store/changes/accounts.py",
        "return exists or is_gone(database, connection_id)",
        "return exists",
    ),
    # Restored homes
    Bug(
        _RESTORED,
        "a restore keeps the owner tokens",
        "src/headgate/store/maintenance/backup.py",
        'len(ended("token", "revoke_owner_tokens", at))',
        "0 * at",
    ),
    Bug(
        _RESTORED,
        "a restore keeps the sessions",
        "src/headgate/store/maintenance/backup.py",
        '                ("owner_browser", "end_browser_secrets"),\n',
        "",
    ),
    Bug(
        _RESTORED,
        "a restore keeps the tokens of gateway callers",
        "src/headgate/store/sql/maintenance.sql",
        "kind IN ('gateway_caller', 'gateway_token')",
        "kind IN ('gateway_caller')",
    ),
    # Who a client is, and what it may call
    Bug(
        f"{_SERVERS}::test_a_program_that_registers_under_a_known_name_gets_neither_its_id_nor_its_remote_tools",
        "a registration gets the id of an approved client",
        _SERVICE,
        "same = next((other for other in unused if",
        "same = next((other for other in known if",
    ),
    Bug(
        f"{_SERVERS}::test_a_new_grant_lists_the_remote_tools_it_would_call_and_needs_the_password_again",
        "a client that may call remote tools needs no password again",
        "src/headgate/auth/oauth/entries.py",
        "(may_call or not self.client.is_approved)",
        "(not self.client.is_approved)",
    ),
    Bug(
        f"{_SERVERS}::test_a_new_grant_lists_the_remote_tools_it_would_call_and_needs_the_password_again",
        "remote tools that were allowed while the page was open are not shown again",
        "src/headgate/console/consent.py",
        "if review_of(terms, conditions, calls) != form",
        "if review_of(terms, conditions, ()) != form",
    ),
    Bug(
        f"{_SERVERS}::test_what_a_client_may_call_holds_for_the_grants_that_it_had_and_for_no_other",
        "every later grant of a client may call",
        "src/headgate/auth/gateway.py",
        "is_bound = caller is not None and (",
        "is_bound = caller is not None or (",
    ),
    Bug(
        "tests/console/test_consent.py::test_a_device_that_is_open_in_two_tabs_is_decided_once",
        "a device is decided twice",
        _SERVICE,
        "        if device is None or not self._is_waiting(device):\n            raise",
        "        if device is None:\n            raise",
    ),
    Bug(
        "tests/console/test_consent.py::test_a_device_code_is_found_however_it_is_typed",
        "a device code needs its hyphen",
        "src/headgate/console/consent.py",
        '    return f"{letters[:4]}-{letters[4:]}"\n',
        "    return typed.strip().upper()\n",
    ),
    # Daily budgets
    Bug(
        f"{_BUDGET}::test_a_page_is_cut_to_what_is_left_and_its_cursor_goes_on_the_next_day",
        "the search that crosses the budget is whole",
        "src/headgate/reading/home.py",
        "return plan if most is None else structs.replace(plan, limit=min(plan.limit, most))",
        "return plan if most is None or most else structs.replace(plan, limit=1)",
    ),
    Bug(
        f"{_BUDGET}::test_related_records_count_and_are_cut_too",
        "related records are shown beyond the budget",
        "src/headgate/reading/records.py",
        "if _key(child) in seen or len(seen) < most:",
        "if _key(child) in seen or most:",
    ),
    Bug(
        f"{_BUDGET}::test_records_that_other_requests_took_meanwhile_are_not_shown",
        "records that another request took are shown",
        "src/headgate/reading/local.py",
        "                if taken < count:\n",
        "                if taken < 0:\n",
    ),
    Bug(
        "tests/audit/test_budget.py"
        "::test_a_package_shows_what_the_smallest_of_its_budgets_leaves_and_counts_no_more",
        "records that another grant of a package refused stay counted",
        "src/headgate/audit/budget.py",
        "            if taken > fit:\n",
        "            if taken < fit:\n",
    ),
    # The gateway, the log, keys
    Bug(
        "tests/mcp/gateway/test_answers.py"
        "::test_an_operation_that_is_not_for_the_caller_is_refused_like_one_that_is_not_there",
        "the gateway shows that an operation is there",
        "src/headgate/mcp/gateway/answers.py",
        "            ids = [spec.id for spec in self.visible(identity)]\n",
        "            ids = [item.spec.id for item in self.registry]\n",
    ),
    Bug(
        "tests/mcp/gateway/test_long_answers.py::test_an_answer_is_for_its_caller_alone_and_ends_after_an_hour",
        "a stored answer is read by another caller",
        "src/headgate/mcp/gateway/stored.py",
        'name = "anyone" if caller is None else sha256(caller.encode()).hexdigest()[:32]',
        'name = "anyone"',
    ),
    Bug(
        "tests/mcp/client/test_scan.py"
        "::test_a_tool_that_hides_something_is_blocked_until_it_is_approved_and_others_are_not",
        "a tool that hides something is pinned at the first import",
        "src/headgate/mcp/client/from_mcp.py",
        "pins_of(tool for tool in tools if blocking(findings.get(tool.name, ())) is None)",
        "pins_of(tools)",
    ),
    Bug(
        f"{_SERVERS}::test_a_changed_tool_waits_with_its_graded_difference_and_is_approved_as_it_was_seen",
        "a tool is approved in another form than the page showed",
        "src/headgate/mcp/gateway/hosted.py",
        "            if offered.imported.listed_digest(tool) != digest:\n",
        "            if not digest:\n",
    ),
    Bug(
        "tests/cli/test_gateway_commands.py::test_check_judges_single_operations_and_calls_none",
        "check passes an operation that waits for approval",
        "src/headgate/cli/ops.py",
        '        return _WAITS, f"waits',
        '        return 0, f"waits',
    ),
    Bug(
        "tests/mcp/gateway/test_long_answers.py::test_a_call_that_cannot_be_noted_is_not_sent",
        "a call is sent that could not be noted",
        "src/headgate/mcp/gateway/stored.py",
        'raise CallError("RESOURCE_LIMIT", "There is no room to note the call.") from error',
        "return",
    ),
    Bug(
        "tests/mcp/gateway/test_long_answers.py"
        "::test_every_row_of_a_long_answer_is_read_exactly_once_by_following_the_offsets",
        "a row between two windows is left out",
        "src/headgate/mcp/gateway/selecting.py",
        "return Window(taken, _after(offset + len(taken), rows))",
        "return Window(taken, _after(offset + len(taken) + 1, rows))",
    ),
    Bug(
        "tests/mcp/gateway/test_batches.py"
        "::test_a_reference_that_cannot_be_followed_is_refused_before_anything_runs",
        "a call of a batch refers to its own answer",
        "src/headgate/mcp/gateway/plans.py",
        'not 1 <= int(match["step"]) < place',
        'not 1 <= int(match["step"]) <= place',
    ),
    Bug(
        "tests/console/test_servers.py::test_a_caller_without_a_grant_sees_and_calls_only_what_it_was_allowed",
        "an unknown token gets into the gateway",
        "src/headgate/web/admission.py",
        "            context.access = await self._admission.admit(token, context.route)\n"
        "        except AuthenticationFailed:\n"
        "            self._limits.count_failed_token(context.client_address, token)\n"
        "            raise\n",
        "            context.access = await self._admission.admit(token, context.route)\n"
        "        except AuthenticationFailed:\n"
        "            self._limits.count_failed_token(context.client_address, token)\n",
    ),
    Bug(
        "tests/console/test_servers.py"
        "::test_every_call_is_in_the_log_beside_the_reads_by_its_digest_and_never_its_values",
        "a call is not logged before it is sent",
        "src/headgate/mcp/gateway/answers.py",
        "            self.note(NotedCall(handle, caller, spec.id, digest, SENT, 0))\n",
        "            pass\n",
    ),
    Bug(
        f"{_LOG}::test_a_new_home_has_a_whole_log_and_one_whose_log_and_head_were_removed_has_not",
        "a log that was removed with its noted end is whole",
        "src/headgate/audit/chain.py",
        "if noted.head is None and (verdict.count or not noted.is_later_key):",
        "if noted.head is None and verdict.count:",
    ),
    Bug(
        f"{_LOG}::test_a_new_home_has_a_whole_log_and_one_whose_log_and_head_were_removed_has_not",
        "the count of entries beside the chain is not compared",
        "src/headgate/audit/chain.py",
        "if (last := max(counted, end.seq)) > head.seq:",
        "if (last := end.seq) > head.seq:",
    ),
    Bug(
        "tests/auth/test_keys.py::test_a_rotation_counts_in_a_process_that_runs",
        "a running server keeps the keys that were rotated",
        "src/headgate/auth/keys.py",
        "        if stamp != self._stamp:\n",
        "        if stamp is None:\n",
    ),
    Bug(
        "tests/auth/test_keys.py::test_processes_that_start_together_on_a_new_home_have_the_same_keys",
        "processes that start together make a key each",
        "src/headgate/home.py",
        "        lock(handle, wait=True)\n        yield\n",
        "        yield\n",
    ),
    Bug(
        "tests/store/test_encrypted_file.py::test_a_file_that_asks_for_endless_work_is_refused",
        "a backup may ask for a minute of work",
        "src/headgate/store/maintenance/encrypted_file.py",
        "_MOST_WORK = 20",
        "_MOST_WORK = 22",
    ),
    # Limits, and what strangers cost
    Bug(
        "tests/auth/test_sign_in_limits.py::test_workers_of_one_home_count_attempts_together",
        "each worker counts attempts for itself",
        "src/headgate/auth/limits.py",
        "return await self._shared.take(",
        "return True or await self._shared.take(",
    ),
    Bug(
        "tests/auth/test_sign_in_limits.py::test_the_name_that_is_used_most_is_not_the_first_to_be_forgotten",
        "a bucket in use is forgotten first",
        "src/headgate/auth/limits.py",
        "        self._levels.move_to_end(name)\n",
        "",
    ),
    Bug(
        "tests/web/test_admission.py::test_a_token_that_has_ended_and_goes_on_asking_does_not_fill_the_log",
        "every refusal of an ended token has an entry",
        "src/headgate/auth/admission.py",
        "if known.count <= _LOGGED_EACH or",
        "if known.count or",
    ),
    Bug(
        "tests/console/test_authorization_server.py"
        "::test_what_cannot_succeed_does_not_wait_for_the_writer_and_is_limited",
        "a guessed code waits for the writer",
        "src/headgate/store/ledger/oauth.py",
        "        try:\n            return await self._ledger",
        "        try:\n            return await self.change(work) or await self._ledger",
    ),
    Bug(
        "tests/console/test_authorization_server.py"
        "::test_what_cannot_succeed_does_not_wait_for_the_writer_and_is_limited",
        "guesses at the token endpoint have no limit",
        _SERVICE,
        "        self.limits.check_request(address)\n",
        "",
    ),
    # Clocks
    Bug(
        "tests/auth/test_admission.py::test_a_clock_that_is_wrong_for_a_moment_ends_nothing_for_good",
        "a reading that is years ahead is noted at once",
        "src/headgate/auth/clock.py",
        "or now - noted <= _MOST_AHEAD_US or",
        "or now - noted >= 0 or",
    ),
    Bug(
        "tests/auth/test_admission.py::test_a_clock_that_is_wrong_for_a_moment_ends_nothing_for_good",
        "rows that a wrong clock has ended are removed",
        "src/headgate/auth/oauth/service.py",
        "        rows.remove_ended(self.certain())\n        known",
        "        rows.remove_ended(self.now())\n        known",
    ),
    Bug(
        "tests/auth/test_admission.py::test_a_clock_that_has_gone_on_for_an_hour_is_believed",
        "a clock that is far ahead is never believed",
        "src/headgate/auth/clock.py",
        "or seconds >= _CERTAIN_AFTER_SECONDS)",
        "or seconds >= 1e9)",
    ),
    # What a grant means
    Bug(
        "tests/reading/test_dropped_fields.py"
        "::test_a_granted_field_that_gets_another_meaning_needs_a_new_grant",
        "a granted field is described otherwise, and stays granted",
        "src/headgate/policy/allowance.py",
        "return all(old is None or new is None or old == new for old, new in pairs)",
        "return all(old is None or new is None or old or new for old, new in pairs)",
    ),
    Bug(
        "tests/console/test_client_documents.py"
        "::test_where_no_document_can_be_fetched_the_page_says_so_and_clients_register",
        "documents are asked for where none can be fetched",
        "src/headgate/web/api/oauth.py",
        "takes_documents = service.now() >= service.documents.offline_until",
        "takes_documents = service.now() >= 0",
    ),
)
