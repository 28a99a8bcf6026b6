"""Mistakes by which a format would be read wrongly, or not at all, without a word."""

from __future__ import annotations

from tests.structure.planted import Bug

_SOURCES = "src/headgate/sources"
_WHATSAPP = "tests/sources/test_chat_whatsapp.py"
_CALENDAR = "tests/sources/test_calendar.py"
_CONTACTS = "tests/sources/test_contacts_account.py"
_OUTLOOK = "tests/sources/mail/test_outlook.py"

BUGS = (
    Bug(
        "tests/sources/notes/test_notes.py"
        "::test_the_title_is_the_property_or_the_heading_that_begins_the_note_or_the_name",
        "the title of a part is the title of the note",
        f"{_SOURCES}/notes.py",
        'if first[:2] in {"# ", "#\\t"}:',
        'if first[:2] in {"# ", "#\\t", "##"}:',
    ),
    Bug(
        "tests/sources/mail/test_folders.py::test_a_message_in_a_maildir_may_have_any_name",
        "a mail of a Maildir is passed over for its name",
        f"{_SOURCES}/mail/mbox.py",
        "(_MAILDIR_NAME.fullmatch(path.name) or _mail_headers(file))",
        "_MAILDIR_NAME.fullmatch(path.name)",
    ),
    Bug(
        "tests/sources/mail/test_messages.py::test_people_in_old_forms_have_their_names",
        "a name behind an address is lost",
        f"{_SOURCES}/mail/parsing.py",
        "return _named(people or _loose_people(plain), values)",
        "return (people or _loose_people(plain))",
    ),
    Bug(
        "tests/sources/mail/test_messages.py::test_people_in_old_forms_have_their_names",
        "a comment inside an address is taken for its letters",
        f"{_SOURCES}/mail/parsing.py",
        'return value if depth else "".join(outside)',
        "return value",
    ),
    Bug(
        "tests/sources/mail/test_messages.py::test_subjects_are_read_in_every_encoding",
        "a raw byte in an encoded word is dropped",
        f"{_SOURCES}/mail/parsing.py",
        "return self.mended.get(name) or unfolded(self.header(name))",
        "return unfolded(self.header(name))",
    ),
    Bug(
        "tests/sources/mail/test_messages.py"
        "::test_a_body_whose_type_has_only_one_word_is_the_text_of_the_message",
        "the body of an old message is a file without a name",
        f"{_SOURCES}/mail/parsing.py",
        'if name or "/" in kind:',
        "if True:",
    ),
    Bug(
        "tests/sources/mail/test_folders.py"
        "::test_messages_beside_the_directories_of_a_maildir_and_those_of_mh_are_read",
        "what is being delivered to a Maildir is read",
        f"{_SOURCES}/mail/mbox.py",
        ' and path.parent.name != "tmp"',
        "",
    ),
    Bug(
        "tests/sources/history/test_history.py"
        "::test_histories_of_older_and_rarer_browsers_are_read_under_any_name",
        "a history without the seconds of its visits cannot be read",
        f"{_SOURCES}/history/browser.py",
        "if self.seconds and self.seconds[1] in database.columns(self.seconds[0]):",
        "if self.seconds:",
    ),
    Bug(
        "tests/sources/history/test_history.py::test_plays_without_any_name_are_no_fault_of_the_file",
        "an entry of nothing makes an import fail",
        f"{_SOURCES}/history/media.py",
        "return None if is_nameless else []",
        "return []",
    ),
    Bug(
        "tests/sources/history/test_history.py::test_sleep_and_stays_have_the_clock_of_the_place",
        "a stay that is told by another clock is another stay",
        f"{_SOURCES}/history/places.py",
        'keys.key(iso_of(started_at) or "", "place"',
        'keys.key(started_at or "", "place"',
    ),
    Bug(
        "tests/sources/test_chat_slack.py"
        "::test_a_file_of_an_older_export_is_named_and_what_lies_beside_it_is_no_table",
        "the file of an older message is lost",
        f"{_SOURCES}/chat/slack.py",
        'message.get("files") or [message.get("file")]',
        'message.get("files")',
    ),
    Bug(
        "tests/sources/test_conversations.py"
        "::test_a_chatgpt_conversation_without_a_current_message_goes_on_to_its_newest",
        "a conversation that names no current message has none",
        f"{_SOURCES}/conversations/assistants.py",
        "leaf if leaf in nodes else _newest(nodes)",
        "leaf",
    ),
    Bug(
        "tests/sources/tables/test_tables.py::test_a_birthday_is_not_when_a_row_was_written",
        "people are ordered by their birthdays",
        f"{_SOURCES}/tables/source.py",
        "is_late = form == FORM and _BIRTH.search(name) is not None",
        "is_late = False",
    ),
    Bug(
        f"{_CALENDAR}::test_a_series_of_an_old_file_is_followed_for_two_years_from_the_month_in_which_it_is_given",
        "the holidays of an old file end long ago",
        f"{_SOURCES}/calendar/source.py",
        'partial(read_calendar, now=recognised.facts["now"])',
        "partial(read_calendar, now=None)",
    ),
    Bug(
        f"{_CALENDAR}::test_a_series_of_an_old_file_is_followed_for_two_years_from_the_month_in_which_it_is_given",
        "an import that goes on the next day counts other records than the first one",
        f"{_SOURCES}/calendar/source.py",
        "datetime(given.year, given.month, 1)",
        "datetime(given.year, given.month, given.day)",
    ),
    Bug(
        f"{_WHATSAPP}::test_a_chat_in_a_form_that_is_not_known_is_reported_and_no_note",
        "a chat that is not understood is shown to a grant for notes",
        f"{_SOURCES}/chat/whatsapp.py",
        "_CHAT_NAME.fullmatch(file.stem) or _is_chat(file)",
        "_is_chat(file)",
    ),
    Bug(
        "tests/sources/documents/test_documents.py"
        "::test_footnotes_endnotes_and_comments_of_word_stand_after_its_text",
        "the comments of a document come before it, and number its pages anew",
        f"{_SOURCES}/documents/office.py",
        "(name in _BESIDE_TEXT, len(name), name)",
        "(len(name), name)",
    ),
    Bug(
        "tests/sources/test_chat_meta.py::test_a_chat_of_messenger_is_read_with_its_letters_and_its_files",
        "letters of a chat stay bytes",
        f"{_SOURCES}/chat/meta.py",
        'text.encode("latin-1").decode()',
        "text",
    ),
    Bug(
        "tests/sources/test_chat_meta.py"
        "::test_instagram_and_messenger_are_two_connections_and_other_files_beside_chats_are_not_taken",
        "a note beside a chat is shown to a grant for chats",
        f"{_SOURCES}/chat/meta.py",
        "file.name.startswith(media) and file.name not in chats",
        "file.name not in chats",
    ),
    Bug(
        "tests/sources/notes/test_note_exports.py"
        "::test_a_note_of_keep_is_read_with_its_list_and_its_page_is_no_second_one",
        "a list of Keep is lost",
        f"{_SOURCES}/note_exports.py",
        'or "", *items]',
        'or ""]',
    ),
    Bug(
        "tests/sources/history/test_history.py::test_activity_is_read_and_each_product_is_a_connection_of_its_own",
        "a grant for maps shows searches",
        f"{_SOURCES}/history/media.py",
        "    part_of=_product,\n",
        "",
    ),
    Bug(
        "tests/sources/history/test_history.py::test_activity_is_read_and_each_product_is_a_connection_of_its_own",
        "a search for YouTube is a video that was watched",
        f"{_SOURCES}/history/media.py",
        'return _product(file).startswith("YouTube")',
        'return bool(_product(file)) and b"YouTube" in file.head',
    ),
    Bug(
        "tests/sources/history/test_history.py::test_tracks_and_places_of_gpx_are_read",
        "a track is called like the file",
        f"{_SOURCES}/history/gpx.py",
        "                way = {} if event.name in _WAYS else way\n",
        "",
    ),
    Bug(
        "tests/sources/documents/test_documents.py"
        "::test_a_book_that_unpacks_to_more_than_a_document_has_is_cut",
        "a book unpacks without end",
        f"{_SOURCES}/documents/office.py",
        "                left = content.left\n",
        "",
    ),
    Bug(
        "tests/sources/test_every_source.py::test_importing_twice_is_importing_once",
        "a report counts rows as records",
        f"{_SOURCES}/importing.py",
        "min(accepted - added, before)",
        "accepted - added",
    ),
    Bug(
        "tests/sources/test_plain_keys.py"
        "::test_a_connection_that_was_named_by_an_earlier_version_is_used_again",
        "files that were imported before are imported once more under their new name",
        f"{_SOURCES}/importing.py",
        "older_names=() if name else recognised.older_titles",
        "older_names=()",
    ),
    Bug(
        "tests/sources/test_plain_keys.py"
        "::test_a_connection_that_was_named_by_an_earlier_version_is_used_again",
        "mail is named by any of its receivers",
        f"{_SOURCES}/mail/source.py",
        "2 * count > receivers.total()",
        "count > 0",
    ),
    Bug(
        f"{_OUTLOOK}::test_texts_of_old_versions_are_read_in_the_code_page_of_the_message",
        "old messages of Outlook are all Western European",
        f"{_SOURCES}/mail/outlook.py",
        "_charset(item.number(0x3FFD) or item.number(0x3FDE))",
        "_charset(0)",
    ),
    Bug(
        f"{_OUTLOOK}::test_a_message_that_is_saved_again_is_the_same_one",
        "a message of Outlook that was saved twice is two",
        f"{_SOURCES}/mail/rows.py",
        '        head, blank_line = "\\n".join((*message.plain, *message.html)).encode(), b""\n',
        "        pass\n",
    ),
    Bug(
        f"{_OUTLOOK}::test_storages_that_hold_each_other_are_rejected",
        "a storage that holds itself is read without end",
        f"{_SOURCES}/formats/compound.py",
        "if number in self._seen or depth > _MAX_DEPTH:",
        "if number < 0:",
    ),
    Bug(
        f"{_OUTLOOK}::test_streams_that_share_their_sectors_take_no_more_than_the_file",
        "a small file of Outlook fills the memory",
        f"{_SOURCES}/formats/compound.py",
        "        self._left -= size\n",
        "",
    ),
    Bug(
        "tests/sources/test_coverage.py::test_a_log_covers_the_days_after_the_one_with_which_it_begins",
        "the day with which a log begins counts as whole",
        f"{_SOURCES}/file_source.py",
        "yield Covered(stream, part, day_after(first), last)",
        "yield Covered(stream, part, first, last)",
    ),
    Bug(
        "tests/sources/test_coverage.py::test_an_export_of_slack_covers_the_days_that_its_name_says",
        "an export of some days is taken for one of all",
        f"{_SOURCES}/chat/slack.py",
        "case [str() as first, str() as last]:",
        "case [first, last]:",
    ),
    Bug(
        f"{_CONTACTS}::test_the_address_books_of_a_server_are_found_and_read_and_no_calendar_is",
        "the calendars of a server are read as address books",
        f"{_SOURCES}/dav.py",
        "if run.kind.name in part.kinds]",
        "if len(part.kinds) > 1]",
    ),
    Bug(
        f"{_CONTACTS}::test_a_person_who_stands_in_another_address_book_as_well_stays",
        "a person leaves with one of two address books",
        f"{_SOURCES}/dav.py",
        "if tuple(entry) not in others)",
        "if entry)",
    ),
    Bug(
        "tests/sources/test_unknown_files.py::test_thousands_of_pictures_hide_no_other_file_that_is_not_read",
        "a picture is named for each picture, until nothing else is",
        f"{_SOURCES}/unknown.py",
        "names[: 1 if reason else most]",
        "names[:most]",
    ),
    Bug(
        "tests/sources/test_takeout.py::test_a_takeout_is_taken_whole_and_a_later_one_adds_only_what_is_new",
        "what Google notes of each picture is a table of people",
        f"{_SOURCES}/tables/source.py",
        "not is_about_picture(file) and ",
        "",
    ),
    Bug(
        "tests/sources/test_every_source.py::test_entities_of_a_file_are_not_followed",
        "a file unpacks itself by its entities",
        f"{_SOURCES}/formats/xml_events.py",
        "        self.parser.StartDoctypeDeclHandler = self._begin_doctype\n"
        "        self.parser.EntityDeclHandler = self._refuse_entity\n",
        "",
    ),
    Bug(
        f"{_OUTLOOK}::test_a_sender_without_an_address_has_the_one_of_the_headers",
        "a sender inside an organisation has no address",
        f"{_SOURCES}/mail/outlook.py",
        '("@" in sender.address or not sent_by)',
        "True",
    ),
)
