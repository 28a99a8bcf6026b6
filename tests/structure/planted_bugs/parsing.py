"""Mistakes by which a stranger's file would end an import or a server again."""

from __future__ import annotations

from tests.structure.planted import Bug

_PROCESS = "src/headgate/sources/parser_process.py"
_FILES = "src/headgate/sources/parsers.py"
_NOTE = "src/headgate/sources/reading_note.py"
_REQUESTS = "src/headgate/sources/parser_requests.py"
_PARTS = "src/headgate/sources/parts.py"
_TESTS = "tests/sources/test_parser_process.py"
_HOSTILE = "tests/sources/test_hostile_files.py"
_ALL_ELSE = f"{_TESTS}::test_what_ends_its_process_is_rejected_with_the_reason_and_all_else_is_imported"
_RECOGNISED = (
    f"{_TESTS}::test_a_file_that_crashes_the_process_while_it_is_recognised_is_named_and_others_are_read"
)
_IDLE = f"{_TESTS}::test_reading_without_progress_is_ended_and_the_rest_is_imported"
_TWICE = f"{_TESTS}::test_what_was_received_before_a_crash_is_not_given_twice"
_KILLED = f"{_TESTS}::test_what_was_being_read_at_two_kills_of_the_whole_program_is_rejected_the_third_time"
_STAYS = f"{_TESTS}::test_no_process_stays_behind_when_the_import_is_ended"
_SECRETS = f"{_TESTS}::test_the_process_has_no_secret_of_the_program_and_no_argument_of_the_data"
_MESSAGE = "tests/sources/mail/test_imap.py::test_a_message_that_ends_its_parser_is_rejected_once_and_the_others_arrive"
_STORES = f"{_HOSTILE}::test_a_file_stores_no_more_than_its_size_allows_and_what_was_stored_stays"
_MAIL = f"{_HOSTILE}::test_a_mail_made_to_end_its_parser_is_imported_with_its_text"
_PDF = f"{_HOSTILE}::test_a_pdf_whose_page_unpacks_without_end_is_stored_without_that_page"
_REFUSED = f"{_HOSTILE}::test_files_that_are_refused_are_refused_in_one_line_and_a_server_goes_on"
_UPLOADS = "tests/sources/test_uploads.py"
_STARTS = f"{_UPLOADS}::test_a_server_removes_what_was_not_imported_and_what_was_killed_when_it_starts"
_CALENDAR = "tests/sources/calendar/test_calendar_account.py"

BUGS = (
    # The process
    Bug(_ALL_ELSE, "a parser may use all memory", _PROCESS, "    limit_process(memory_bytes)\n", ""),
    Bug(_IDLE, "a parser may hang for ever", _PROCESS, "    NOTE.end_when_idle(idle_seconds)\n", ""),
    Bug(
        _ALL_ELSE,
        "a crash of the parser ends the import",
        _FILES,
        "if not run.leave_out(ended):",
        "if run.leave_out(ended) or ended:",
    ),
    Bug(
        _RECOGNISED,
        "a file that crashes the parser at once ends the import",
        _FILES,
        "if not file or file in self._plan.refused:",
        "if file is not None:",
    ),
    Bug(
        _TWICE,
        "what was received before a crash is given again",
        _REQUESTS,
        "                if count > self.received:\n",
        "                if count >= 0:\n",
    ),
    Bug(
        _KILLED,
        "what ended the whole program is read each time",
        _FILES,
        "if left is not None and left.tries >= MOST_TRIES:",
        "if left is not None and left.tries < 0:",
    ),
    Bug(
        _KILLED,
        "what is being read is noted where it is lost with the process",
        _FILES,
        "self._process.ask(run.request(), ImportPart, note)",
        "self._process.ask(run.request(), ImportPart)",
    ),
    Bug(
        _MESSAGE,
        "a message that ends the parser ends the fetch",
        "src/headgate/sources/parsers.py",
        "        except ParserEnded as ended:\n            yield ImportPart(",
        "        except ParserEnded as ended:\n            raise UpstreamProtocolError(ended.reason) from None\n"
        "            yield ImportPart(",
    ),
    Bug(
        f"{_CALENDAR}::test_a_file_that_ends_its_parser_removes_nothing",
        "events of a file that cannot be read are taken as gone",
        "src/headgate/sources/dav.py",
        "if part.is_cut:",
        "if not part:",
    ),
    Bug(
        _STAYS,
        "a parser outlives the process that started it",
        _NOTE,
        "if os.getppid() != self._parent:",
        "if self._parent < 0:",
    ),
    Bug(
        _STAYS,
        "an import that is interrupted waits for its parser",
        "src/headgate/sources/importing.py",
        "        job.end()\n",
        "",
    ),
    Bug(
        _SECRETS,
        "the parser has the whole environment",
        _PROCESS,
        "        if name.startswith(_PASSED_ON) or name in _PASSED_ON_NAMES\n",
        "",
    ),
    Bug(
        "S0-26",
        "the client can load what starts a process",
        "src/headgate/mcp/client/from_mcp.py",
        "from __future__ import annotations\n",
        "from __future__ import annotations\n\nimport headgate.sources.parser_process as _started  # noqa: F401\n",
    ),
    Bug(
        "S0-26",
        "the process that parses is another program",
        _PROCESS,
        '[sys.executable, "-P", "-m", __name__]',
        '["python3", "-P", "-m", __name__]',
    ),
    Bug(
        f"{_TESTS}::test_a_server_answers_while_an_upload_is_recognised",
        "a server waits while an upload is recognised",
        "src/headgate/sources/uploads.py",
        "            plan = await asyncio.to_thread(parser.plan)\n",
        "            plan = parser.plan()\n",
    ),
    # At their places
    Bug(
        _MAIL,
        "the fast parser gets nested mail",
        "src/headgate/sources/mail/parsing.py",
        " or _boundaries(raw) > _FAST_NESTED_PARTS",
        "",
    ),
    Bug(
        _PDF,
        "what unpacks may stand before other filters of a page",
        "src/headgate/sources/documents/pdf.py",
        '    if not all(map(_is_bounded, _streams(page.get("/Contents")))):\n',
        "    if page is None:\n",
    ),
    Bug(
        _REFUSED,
        "a header of a tar has any size",
        "src/headgate/sources/inputs/archives.py",
        "if self._is_listing and not 0 <= size <= _MAX_HEADER_BYTES:",
        "if self._is_listing and size < -1:",
    ),
    Bug(
        _REFUSED,
        "broken XML of a workbook is a mistake of ours",
        "src/headgate/sources/tables/sheets.py",
        "zipfile.BadZipFile, ParseError) as error",
        "zipfile.BadZipFile) as error",
    ),
    Bug(
        _STORES,
        "a text of Parquet is in memory once for each row",
        "src/headgate/sources/tables/binary_tables.py",
        "library.ParquetFile(path, read_dictionary=texts)",
        "library.ParquetFile(path)",
    ),
    # The disk
    Bug(
        _STORES,
        "a file may store any number of times its size",
        _PARTS,
        "_FREE_STORED_BYTES + size_bytes * _MAX_STORED_RATIO",
        "2**60 + size_bytes",
    ),
    Bug(
        f"{_CALENDAR}::test_a_file_of_a_calendar_that_would_store_too_much_is_cut",
        "a calendar that is fetched may store any number of times its size",
        _REQUESTS,
        "yield from within(most_stored_bytes(len(self.content)), parts(items), self.place)",
        "yield from parts(items)",
    ),
    Bug(
        _STARTS,
        "uploads of killed processes stay",
        "src/headgate/sources/uploads.py",
        "if not is_recent and not _is_locked(",
        "if is_recent and not _is_locked(",
    ),
    Bug(
        _STARTS,
        "uploads that are not imported stay",
        "src/headgate/sources/uploads.py",
        "if_gone=0) > now - _HOUR_SECONDS",
        "if_gone=0) > 0",
    ),
    Bug(
        f"{_UPLOADS}::test_an_upload_that_is_being_received_is_not_removed",
        "an upload that is being received is taken for one of a killed process",
        "src/headgate/sources/uploads.py",
        "            lock(handle)\n            make_private",
        "            make_private",
    ),
)
