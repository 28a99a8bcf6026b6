"""Mistakes by which the files of other programs would be stored wrongly without a word."""

from __future__ import annotations

from tests.structure.planted import Bug

_TABLES = "tests/sources/tables/test_tables.py"
_CALENDAR = "tests/sources/test_calendar.py"
_ZONES = "src/headgate/sources/calendar/zones.py"
_COLUMNS = "src/headgate/sources/tables/columns.py"
_ICS = "tests/sources/test_calendar_exports.py"
_CALENDARS = "src/headgate/sources/exports/calendar.py"
_BANKS = "tests/sources/money/test_bank_tables.py"
_NEWER = "tests/sources/money/test_qif_mt940.py"
_WORKBOOKS = "tests/sources/money/test_statement_workbooks.py"
_SIGNS = "src/headgate/sources/money/signs.py"
_BANK_TABLES = "src/headgate/sources/money/bank_tables.py"

BUGS = (
    Bug(
        f"{_TABLES}::test_numbers_of_more_digits_than_a_number_holds_stay_as_they_are_written",
        "a number of 20 digits becomes one that is near it",
        "src/headgate/sources/tables/columns.py",
        "[] if is_long(text) else [way for",
        "[way for",
    ),
    Bug(
        f"{_TABLES}::test_decimals_of_more_digits_than_a_number_holds_stay_as_they_are_written",
        "a decimal of 20 digits becomes one that is near it",
        _COLUMNS,
        "value.adjusted() >= EXACT_DIGITS",
        "value.adjusted() >= 2 * EXACT_DIGITS",
    ),
    Bug(
        "tests/sources/money/test_money.py::test_days_of_a_camt_statement_may_have_a_zone",
        "a day with a zone is no day",
        "src/headgate/sources/formats/written.py",
        "(?:[ T,].*|Z|[+-][0-9]{2}:[0-9]{2})?$",
        "(?:[ T,].*|Z)?$",
    ),
    Bug(
        f"{_CALENDAR}::test_zones_have_many_names",
        "a zone in another case has no offset",
        _ZONES,
        '_spellings().get(candidate.casefold(), "")',
        '_spellings().get(candidate, "")',
    ),
    Bug(
        f"{_CALENDAR}::test_a_zone_that_is_not_known_is_reported_once_and_its_times_are_stored_without_it",
        "a zone that is not known is passed over in silence",
        _ZONES,
        "if zone is None]",
        "if zone is not None and False]",
    ),
    Bug(
        f"{_CALENDAR}::test_a_series_in_a_zone_of_another_case_has_the_ids_that_it_always_had",
        "importing a calendar again adds its series once more",
        _ZONES,
        "if self.is_loose and not self.is_day else self.key",
        "if False else self.key",
    ),
    Bug(
        f"{_CALENDAR}::test_a_zone_is_found_wherever_the_file_defines_it",
        "a zone that an event before it asked for stays unknown",
        _ZONES,
        "                    del self._found[asked]\n",
        "",
    ),
    Bug(
        f"{_CALENDAR}::test_a_moved_occurrence_of_whole_days_stands_once_however_it_names_its_day",
        "a day that was moved stands at both days",
        "src/headgate/sources/calendar/source.py",
        "for key in event.replaces.keys)",
        "for key in [event.replaces.key])",
    ),
    Bug(
        f"{_CALENDAR}::test_a_moved_occurrence_of_whole_days_stands_once_however_it_names_its_day",
        "a day that was left out stands there",
        "src/headgate/sources/calendar/events.py",
        "for key in time.keys)",
        "for key in [time.key])",
    ),
    Bug(
        f"{_CALENDAR}::test_a_moved_occurrence_of_whole_days_stands_once_however_it_names_its_day",
        "a midnight in universal time is of the day before",
        _ZONES,
        "timedelta(hours=12) if self.zone is UTC",
        "timedelta() if self.zone is UTC",
    ),
    Bug(
        "tests/sources/test_chat_whatsapp.py::test_the_pages_of_a_signal_export_are_no_notes_but_own_notes_are",
        "a grant for notes shows chats",
        "src/headgate/sources/chat/signal.py",
        " or file.name in pages]",
        "]",
    ),
    Bug(
        "tests/sources/test_conversations.py::test_one_conversation_is_read_as_a_list_of_it_is",
        "a conversation that stands alone is passed over in silence",
        "src/headgate/sources/conversations/assistants.py",
        "wanted = _WHOLE if",
        "wanted = _ITEMS if",
    ),
    Bug(
        "tests/sources/test_importing.py"
        "::test_files_of_which_nothing_is_read_are_reported_and_an_account_without_news_is_not",
        "an import that reads nothing is a success",
        "src/headgate/sources/importing.py",
        "            work.note_nothing()\n",
        "",
    ),
    Bug(
        "tests/sources/test_importing.py"
        "::test_files_of_which_nothing_is_read_are_reported_and_an_account_without_news_is_not",
        "an account without news is a failure",
        "src/headgate/sources/importing.py",
        "if self._job.fingerprint is not None and not has_read:",
        "if not has_read:",
    ),
    Bug(
        f"{_TABLES}::test_lines_above_the_header_are_no_part_of_the_table",
        "a title above a table hides it",
        "src/headgate/sources/tables/text_tables.py",
        "            return above\n",
        "            return 0\n",
    ),
    Bug(
        f"{_BANKS}::test_a_column_of_nothing_but_two_ways_is_the_sign_whatever_its_name",
        "money that went out is stored as income",
        _SIGNS,
        "        if words and words <= _WORDS:\n",
        "        if role is Role.SIGN and words and words <= _WORDS:\n",
    ),
    Bug(
        f"{_BANKS}::test_amounts_that_the_balance_contradicts_are_turned",
        "amounts that the balance contradicts stay",
        _SIGNS,
        "    return opposite > agreeing\n",
        "    return False\n",
    ),
    Bug(
        f"{_BANKS}::test_signs_that_nothing_says_end_the_import_with_65_and_a_declaration_mends_them",
        "a sign that is declared later doubles every line",
        _BANK_TABLES,
        "(written if self._is_older else signed)",
        '(written if self._is_older else -signed if self._sign == "out" else signed)',
    ),
    Bug(
        f"{_BANKS}::test_the_same_file_in_another_currency_changes_nothing_that_is_stored",
        "a statement in another currency changes what is stored",
        _BANK_TABLES,
        '"" if usual else product, currency)',
        '"" if usual else product)',
    ),
    Bug(
        f"{_BANKS}::test_lines_of_an_older_connection_keep_their_keys",
        "importing a statement again into an older home doubles it",
        _BANK_TABLES,
        "older = _found(file, is_older=True) if form < FORM else None",
        "older = None",
    ),
    Bug(
        f"{_BANKS}::test_the_order_of_a_day_is_decided_by_all_that_the_file_says",
        "a day that could be read both ways is read the wrong way, whatever the other lines say",
        "src/headgate/sources/formats/written.py",
        "    return sorted_ones[0] if len(sorted_ones) == 1 else None\n",
        "    return None\n",
    ),
    Bug(
        f"{_BANKS}::test_tables_in_the_encodings_of_windows_are_read",
        "Cyrillic is read as Western letters",
        "src/headgate/sources/formats/texts.py",
        '        return "cp1251"\n',
        "        return None\n",
    ),
    Bug(
        f"{_BANKS}::test_measurements_and_orders_are_no_bank_tables",
        "any table with days and decimals is a bank's",
        "src/headgate/sources/money/headless.py",
        "texts and (currencies or ways))",
        "texts)",
    ),
    Bug(
        f"{_ICS}::test_a_series_comes_back_as_it_was_and_other_programs_read_it",
        "every occurrence of a series is written as one that was changed",
        _CALENDARS,
        '        if len(regular) == 1 and not usual.data.get("recurrence"):\n',
        "        if regular:\n",
    ),
    Bug(
        f"{_ICS}::test_a_series_comes_back_as_it_was_and_other_programs_read_it",
        "zones are written without their definitions",
        "src/headgate/sources/exports/zones.py",
        '        return b"".join(zone.definition() for zone in self._zones.values())\n',
        '        return b""\n',
    ),
    Bug(
        f"{_ICS}::test_a_time_in_utc_stays_one_beside_a_zone",
        "a time in UTC is moved by the offset of the zone beside it",
        "src/headgate/sources/exports/zones.py",
        "        if self.known is not None and naive(time).replace(tzinfo=self.known).utcoffset() != offset:\n",
        "        if offset is None:\n",
    ),
    Bug(
        f"{_ICS}::test_the_days_of_a_series_are_those_of_its_records_whatever_its_rule_says",
        "an occurrence that was erased comes back with its series",
        _CALENDARS,
        '*_dates("EXDATE", first, ruled - there.keys())',
        '*_dates("EXDATE", first, ())',
    ),
    Bug(
        f"{_ICS}::test_calendars_whose_names_fit_one_file_name_are_two_files",
        "two calendars are written into one file",
        "src/headgate/sources/exporting.py",
        "            taken = {path.stem.casefold() for _, path in self._calendars.values()}\n",
        "            taken = set[str]()\n",
    ),
    Bug(
        "tests/sources/test_exports.py::test_only_what_a_spreadsheet_would_run_gets_an_apostrophe_and_comes_back_as_it_was",
        "numbers of phones get an apostrophe",
        "src/headgate/sources/formats/texts.py",
        'r"(?![+-][\\d\\s.,()]*\\Z)[=+\\-@\\t\\r]"',
        'r"[=+\\-@\\t\\r]"',
    ),
    Bug(
        f"{_NEWER}::test_an_mt940_statement_is_read",
        "a credit that was taken back is money that came in",
        "src/headgate/sources/money/mt940.py",
        'is_out=line["mark"] in {"D", "RC"}',
        'is_out=line["mark"] in {"D", "RD"}',
    ),
    Bug(
        f"{_NEWER}::test_securities_in_a_qif_file_have_the_sign_of_the_money",
        "what was paid for securities is money that came in",
        "src/headgate/sources/money/qif.py",
        "return -abs(written) if action",
        "return abs(written) if action",
    ),
    Bug(
        f"{_NEWER}::test_reports_and_notices_of_camt_have_the_lines_of_the_statement",
        "a pending line is stored, and again when it is booked",
        "src/headgate/sources/money/camt.py",
        '("Sts",), ("Sts", "Cd")) not in _PENDING',
        '("Sts",)) not in _PENDING',
    ),
    Bug(
        f"{_WORKBOOKS}::test_every_sheet_with_lines_is_read_and_those_of_sheets_without_numbers_stay_apart",
        "equal lines of two sheets are one",
        "src/headgate/sources/tables/sheets.py",
        '{title}{file.suffix}"',
        '{file.suffix}"',
    ),
    Bug(
        f"{_TABLES}::test_what_only_looks_like_an_amount_or_a_day_stays_text",
        "a telephone number becomes an amount",
        "src/headgate/sources/tables/text_kinds.py",
        "is_amount = unit in text if unit else",
        "is_amount = not unit or",
    ),
    Bug(
        f"{_TABLES}::test_importing_a_table_again_into_an_older_connection_adds_nothing",
        "a table that is understood better is imported twice",
        "src/headgate/sources/importing.py",
        "for key in (job.connector_key, job.older_key) if",
        "for key in (job.connector_key,) if",
    ),
    Bug(
        f"{_TABLES}::test_a_table_without_a_header_loses_no_row",
        "the first payment of a table becomes its header",
        "src/headgate/sources/tables/text_tables.py",
        "return any(kind.form <= form and",
        "return any(kind.form < form and",
    ),
)
