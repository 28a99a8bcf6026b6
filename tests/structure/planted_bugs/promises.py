"""Mistakes that break what is promised of backups, keys, hosts, messages, output and consent. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_AUDIT = "tests/cli/test_audit.py"
_CHANGED = f"{_AUDIT}::test_a_changed_log_has_another_exit_code_than_one_that_cannot_be_checked"
_LOST = f"{_AUDIT}::test_a_log_whose_key_was_lost_is_not_called_changed_here_or_where_it_is_restored"
_RESTORED = f"{_AUDIT}::test_a_log_is_checked_as_before_where_its_backup_is_restored"
_HEAD = "tests/audit/test_journal.py::test_a_damaged_head_is_reported_and_entries_still_reach_the_chain"
_DOWNLOAD = "tests/console/test_backup.py"
_HOST = (
    "tests/web/test_wire.py::test_a_host_that_is_not_ours_is_refused_at_every_address_and_does_not_come_back"
)
_LARGE = (
    "tests/web/test_addresses.py::test_a_body_that_is_too_large_is_refused_with_a_code_wherever_one_is_read"
)
_IDS = "tests/web/test_messages.py::test_an_id_that_is_no_string_or_integer_or_is_long_is_refused"
_LONG = "tests/web/test_messages.py::test_no_long_text_of_a_message_comes_back"
_JSON = "tests/cli/test_json.py::test_with_json_nothing_else_is_printed_where_there_is_no_home"
_KEYS = "tests/store/test_ingest.py::test_an_object_may_have_a_thousand_members_and_no_more"
_LATE = (
    "tests/console/test_consent.py"
    "::test_an_approval_of_a_new_client_on_a_page_that_was_open_too_long_needs_the_password_again"
)
_PASSKEY = (
    "tests/console/test_passkeys.py"
    "::test_a_passkey_given_again_makes_the_session_fresh_for_a_grant_to_a_new_client"
)
_USED = (
    "tests/console/test_consent.py::test_neither_the_use_of_a_session_nor_a_wrong_password_is_a_new_sign_in"
)
_CHAIN = "src/headgate/audit/chain.py"
_CONSENT = "src/headgate/console/consent.py"
_HOME = "src/headgate/home.py"
_WIRING = "src/headgate/wiring.py"
_LINES = "src/headgate/store/format/lines.py"
_REFUSALS = "src/headgate/web/refusals.py"
_SERVER = "src/headgate/mcp/serve/server.py"
_SESSIONS = "src/headgate/auth/sessions.py"
_VERIFY = "src/headgate/cli/audit.py"

BUGS = (
    # Backups and the check of the log
    Bug(
        "tests/cli/test_store.py::test_a_backup_has_the_keys_or_says_that_it_has_not",
        "a backup leaves out a key",
        _HOME,
        'for path in home.keys.glob("[!.]*"))\n    return (*keys,',
        'for path in home.keys.glob("[!.i]*"))\n    return (*keys,',
    ),
    Bug(
        "tests/cli/test_store.py::test_a_backup_has_the_keys_or_says_that_it_has_not",
        "every backup says that it has the keys",
        "src/headgate/store/maintenance/backup.py",
        'has_keys = any(name.startswith("keys/") for name in manifest.files)',
        "has_keys = bool(manifest.files)",
    ),
    Bug(
        _RESTORED,
        "a backup leaves out the end of the log",
        _HOME,
        "for name in (AUDIT_HEAD, AUDIT_START) if",
        "for name in (AUDIT_START,) if",
    ),
    Bug(
        _LOST,
        "a backup leaves out that the key was lost",
        _HOME,
        "for name in (AUDIT_HEAD, AUDIT_START) if",
        "for name in (AUDIT_HEAD,) if",
    ),
    Bug(
        _RESTORED,
        "an encrypted backup has only keys beside the store",
        "src/headgate/store/engines/commands.py",
        "commands_of(home).back_up(place, progress, names=names)",
        'commands_of(home).back_up(place, progress, names=[one for one in names if "/" in one])',
    ),
    Bug(
        _RESTORED,
        "a backup of a database has no keys",
        "src/headgate/store/engines/postgres_commands.py",
        "_RowCopy(source, progress), self._home, target, names=names",
        "_RowCopy(source, progress), self._home, target, names=names[:0]",
    ),
    Bug(
        _RESTORED,
        "a restore into a database leaves out the keys",
        "src/headgate/store/maintenance/backup.py",
        'if name != FILE and not name.startswith(f"{BLOBS}/") and',
        "if name == FILE and",
    ),
    Bug(
        f"{_DOWNLOAD}::test_a_backup_is_downloaded_and_only_its_passphrase_opens_it",
        "a downloaded backup has only keys beside the store",
        _WIRING,
        "names=small_files(home)",
        'names=[one for one in small_files(home) if "/" in one]',
    ),
    Bug(
        f"{_DOWNLOAD}::test_a_backup_holds_the_records_of_a_home_in_a_database_and_not_an_old_file",
        "a downloaded backup is one of a file",
        _WIRING,
        "        home = place_of(self.settings, self.home)\n        return backup_to_send",
        "        home = self.home\n        return backup_to_send",
    ),
    Bug(
        _LOST,
        "the key of a log in a database is never missed",
        "src/headgate/store/engines/opening.py",
        "    return has_log(open_place(home.url, home.name))",
        "    return not home.url",
    ),
    Bug(
        _CHANGED,
        "a changed log ends like one that cannot be checked",
        _VERIFY,
        'raise IntegrityBroken(\n            f"The log is broken',
        'raise LogUnverifiable(\n            f"The log is broken',
    ),
    Bug(
        _CHANGED,
        "a log that cannot be checked ends like a changed one",
        _VERIFY,
        "raise LogUnverifiable(f\"{document['unchecked']}",
        "raise IntegrityBroken(f\"{document['unchecked']}",
    ),
    # Damaged keys and a damaged head
    Bug(
        f"{_AUDIT}::test_a_key_that_is_empty_or_short_is_refused_in_one_line_and_left_alone",
        "an empty key is made anew",
        _HOME,
        "    if content is None:\n        with _creating(path.parent):\n            content = read_private(path)\n"
        "            if content is None:\n",
        "    if not content:\n        with _creating(path.parent):\n            content = read_private(path)\n"
        "            if not content:\n",
    ),
    Bug(
        "tests/auth/test_keys.py::test_a_damaged_password_of_resource_servers_is_refused_and_left_alone",
        "blanks make a password long enough",
        "src/headgate/auth/documents.py",
        "if len(content) < _SECRET_BYTES or not",
        "if not content or not",
    ),
    Bug(
        _HEAD,
        "a damaged end of the log is none",
        _CHAIN,
        'raise LogUnverifiable(f"{home.path / AUDIT_HEAD} is damaged.") from error',
        "return None if error else None",
    ),
    Bug(
        _HEAD,
        "a damaged end of the log is written over",
        _CHAIN,
        "    known = read_head(home)\n    if known",
        "    try:\n        known = read_head(home)\n    except LogUnverifiable:\n        known = None\n    if known",
    ),
    # Hosts, messages, sizes
    Bug(
        _HOST,
        "a refused host is named in the refusal",
        "src/headgate/web/admission.py",
        "            raise MisdirectedRequest\n",
        '            raise MisdirectedRequest(f"This server is not {headers.host}.")\n',
    ),
    Bug(
        _HOST,
        "a refused host is in a header",
        _REFUSALS,
        "    headers = [JSON, PRIVATE]\n",
        '    headers = [JSON, PRIVATE, (b"link", context.origin.encode("latin-1"))]\n',
    ),
    Bug(
        _LARGE,
        "what is too large is refused with plain text",
        _REFUSALS,
        "    body = {**_described(error, context), **error.data}\n",
        "    if error.status == 413:\n        return HttpReply(error.message.encode(), 413)\n"
        "    body = {**_described(error, context), **error.data}\n",
    ),
    Bug(
        _LARGE,
        "the SDK refuses what is too large for the gateway",
        "src/headgate/web/mcp.py",
        "request.body(MAX_GATEWAY_BYTES)",
        "request.body(2 * MAX_GATEWAY_BYTES)",
    ),
    Bug(
        f"{_IDS} {_LONG}",
        "messages to the gateway are not checked",
        "src/headgate/web/mcp.py",
        "(MAX_GATEWAY_BYTES)\n    if not _is_fit(body):\n        return _UNFIT\n",
        "(MAX_GATEWAY_BYTES)\n",
    ),
    Bug(
        _IDS,
        "a boolean is an id",
        "src/headgate/web/mcp.py",
        '_INTEGER = re.compile(rb"-?[0-9]{1,19}")',
        '_INTEGER = re.compile(rb"-?[0-9]{1,19}|true|false")',
    ),
    Bug(
        _LONG,
        "a method of any length comes back",
        "src/headgate/web/mcp.py",
        "len(bytes(members.method)) <= MAX_METHOD_BYTES and ",
        "",
    ),
    Bug(_LONG, "a URI of any length comes back", _SERVER, '"uri": uri[:256]', '"uri": uri'),
    Bug(_LONG, "the name of a tool comes back at any length", _SERVER, "params.name[:128]", "params.name"),
    # Output
    Bug(
        _JSON,
        "a hint stands beside an empty list of rules",
        "src/headgate/cli/rules.py",
        "    put(rules, lines, as_json=as_json)\n    if not (rules or as_json):",
        '    put(rules, lines, as_json=as_json)\n    if not rules:\n        typer.echo("There is no rule.")\n'
        "    if not (rules or as_json):",
    ),
    Bug(
        "tests/cli/test_json.py::test_with_json_warnings_are_on_standard_error",
        "the log goes to standard output",
        "src/headgate/wiring.py",
        "configure_logs(settings.log_level, settings.log_format, sys.stderr)",
        "configure_logs(settings.log_level, settings.log_format, sys.stdout)",
    ),
    Bug(
        "tests/cli/test_watch.py::test_a_name_that_is_not_unicode_is_escaped_in_json",
        "names of files that are not Unicode are printed as they are",
        "src/headgate/cli/terminal.py",
        'return text.encode("utf-8", "backslashreplace").decode()',
        "return text",
    ),
    # Records
    Bug(
        _KEYS,
        "a record has a thousand and one members",
        _LINES,
        "    if len(values) > MAX_KEYS:",
        "    if len(values) > MAX_KEYS + 1:",
    ),
    Bug(
        _KEYS,
        "only the values of fields have a bound of members",
        _LINES,
        "if kind is dict and len(value) > MAX_KEYS:",
        "if kind is dict and depth == 1 and len(value) > MAX_KEYS:",
    ),
    # Consent
    Bug(
        _LATE,
        "a new client is approved long after the sign-in",
        _CONSENT,
        "needs_proof(is_fresh=request.session.is_fresh, may_call=bool(calls))",
        "needs_proof(is_fresh=True, may_call=bool(calls))",
    ),
    Bug(
        _PASSKEY,
        "a new client is shown long after the sign-in",
        _CONSENT,
        "needs_proof(is_fresh=request.session.is_fresh, may_call=may_call)",
        "needs_proof(is_fresh=True, may_call=may_call)",
    ),
    Bug(
        _USED,
        "the use of a session is a new sign-in",
        _SESSIONS,
        "stored = replace(stored, used_at=now)",
        "stored = replace(stored, used_at=now, proved_at=now)",
    ),
    Bug(
        _USED,
        "any password confirms",
        _SESSIONS,
        "        await self._check(password, cookies)\n        await self._note_proof(session)",
        "        await self._note_proof(session)",
    ),
    Bug(
        _PASSKEY,
        "any answer of a passkey confirms",
        _SESSIONS,
        "        await self.passkeys.check(party, session.stored.digest, answer)\n",
        "",
    ),
)
