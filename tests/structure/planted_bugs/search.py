"""Mistakes in self-contained ids and in the text of a search."""

from __future__ import annotations

from tests.structure.planted import Bug

_ARGUMENTS = "src/headgate/mcp/serve/call.py"
_ERRORS = "src/headgate/mcp/serve/failures.py"
_HANDLES = "src/headgate/mcp/serve/reader.py"
_READER = "src/headgate/mcp/serve/reader.py"
_REFERENCE = "src/headgate/model/ids.py"
_SEARCH = "src/headgate/mcp/serve/search.py"
_TEXT = "src/headgate/text/search.py"
_HITS = "src/headgate/reading/search.py"

_ASKING = "src/headgate/reading/asked.py"
_ASKED = "tests/mcp/serve/test_asked.py::"

BUGS = (
    Bug(
        f"{_ASKED}test_a_record_that_holds_the_whole_question_is_not_hidden_by_its_days",
        "days hide a record that holds the whole question",
        _ASKING,
        "        if await _whole_count(read, taken):",
        "        if await _whole_count(read, taken) or _has_any(taken.page):",
    ),
    Bug(
        f"{_ASKED}test_later_pages_keep_what_the_first_one_understood_after_midnight",
        "a later page reads the question anew",
        _ASKING,
        "            asked = plan.after.asked",
        "            asked = recognise(query.q, today)",
    ),
    Bug(
        f"{_ASKED}test_a_sender_narrows_a_search_where_a_visible_sender_has_the_name",
        "a sender is looked for in every field",
        "src/headgate/store/search/asked.py",
        "texts[is_sender[text.columns.runs_of(texts)]]",
        "texts",
    ),
    Bug(
        f"{_ASKED}test_days_say_nothing_to_a_grant_that_does_not_show_the_time",
        "times that a grant does not show decide which records are of some days",
        "src/headgate/policy/decide.py",
        "        shows_time=time_field in scope.capability.fields,",
        "        shows_time=True,",
    ),
    Bug(
        "tests/questions/test_recognise.py::test_what_may_be_something_else_stays_a_word",
        "two periods in one question narrow the search",
        "src/headgate/questions/recognise.py",
        "if kinds.count(kind) == 1)",
        "if kinds.count(kind))",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::"
        "test_a_row_of_a_page_begins_with_its_line_and_leaves_out_what_says_nothing",
        "rows begin with the fields in the order of the grant",
        "src/headgate/policy/capability.py",
        "    names = dict.fromkeys((*(name for name in stream.line.fields if name in granted), *granted))",
        "    names = dict.fromkeys(granted)",
    ),
    Bug(
        "tests/store/test_forgiving_search.py::test_a_title_does_not_make_up_for_words_that_are_missing",
        "each field of a record is saturated by itself",
        "src/headgate/store/search/ranking.py",
        "    return of_records * (_SATURATION + 1) / (of_records + _SATURATION)",
        "    return of_records * (_SATURATION + 1)",
    ),
    Bug(
        "tests/store/test_forgiving_search.py::"
        "test_a_record_with_every_word_that_there_is_comes_before_better_matches_of_some",
        "a word that no record holds is missed like any other",
        "src/headgate/store/search/lexical.py",
        "tier=np.where(holds_present, _PRESENT, matches.tier)",
        "tier=matches.tier",
    ),
    Bug(
        "tests/store/test_forgiving_search.py::"
        "test_a_word_that_was_taken_for_another_ranks_below_words_that_are_there",
        "a corrected word counts like one that was typed",
        "src/headgate/store/search/lexical.py",
        "for place in typed or held)",
        "for place in held)",
    ),
    Bug(
        "tests/web/test_quoted.py::test_what_a_record_quotes_does_not_hide_what_it_says_itself",
        "a hit shows what it quotes, although it holds the words itself",
        "src/headgate/reading/search.py",
        "    if snippet.field == declared.quoted and not hit.is_quoted:",
        "    if snippet.field == declared.quoted and hit.is_quoted:",
    ),
    Bug(
        "tests/mcp/serve/test_documents.py::"
        "test_payments_that_differ_in_the_month_they_are_for_are_alike_and_others_are_not",
        "each month of a standing order is a hit of its own",
        "src/headgate/reading/search.py",
        'line["title"] = undated(line["title"])',
        'line["title"] = line["title"]',
    ),
    Bug(
        "tests/mcp/serve/test_understood.py::test_each_alternative_has_its_own_count",
        "an alternative has the count of all",
        "src/headgate/store/search/matching.py",
        "            name: part.occurrences\n",
        "            name: occurrences\n",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::"
        "test_a_row_of_a_page_begins_with_its_line_and_leaves_out_what_says_nothing",
        "a row of the structure begins with its time",
        "src/headgate/reading/records.py",
        "    return {line.title: data[line.title], **data} if line.title in data else data",
        "    return data",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::"
        "test_a_row_of_a_page_begins_with_its_line_and_leaves_out_what_says_nothing",
        "the columns of a table are in the order of the structure",
        "src/headgate/text/records.py",
        "[*(path for path in line if path in counts), *counts]",
        "[*counts]",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_the_fields_of_a_line_are_logged",
        "the fields of a line are not logged",
        "src/headgate/reading/search.py",
        "        return _PageHit(hit, row, tuple(dict.fromkeys((*texts, *of_line))))",
        "        return _PageHit(hit, row, tuple(dict.fromkeys(texts)))",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_the_words_around_a_match_come_from_a_text_if_one_matches",
        "a sender's name is shown in place of the text that matched",
        "src/headgate/reading/search.py",
        "key=lambda snippet: _rank(snippet.field, declared), default=None)",
        "key=lambda snippet: -_rank(snippet.field, declared), default=None)",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::"
        "test_a_title_that_matches_does_not_hide_what_the_text_says_about_the_words",
        "a word counts for the excerpt as often as a text holds it",
        "src/headgate/store/search/snippets.py",
        "_WEIGHT // (1 + counts.get(word, 1).bit_length())",
        "_WEIGHT",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_a_text_that_fits_is_shown_whole_wherever_the_match_stands",
        "a text that fits begins close before its match",
        "src/headgate/store/search/snippets.py",
        "chars // 4), len(text) - chars)",
        "chars // 4), len(text))",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_few_hits_with_all_the_words_are_followed_by_those_with_most_"
        "and_the_others_come_with_the_cursor",
        "one hit with all the words ends a page",
        "src/headgate/reading/search.py",
        "len(hits) >= _ENOUGH_HITS and",
        "len(hits) >= 1 and",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_a_person_cannot_forge_a_line",
        "people are printed as they are written",
        "src/headgate/text/line.py",
        "else json_within(str(text), part_bytes)\n",
        "else str(text)\n",
    ),
    Bug(
        "S1-01",
        "an id that needs a second look loses its connection",
        _HANDLES,
        "if text is None and ref.connection_id is not None and not _fits(ref.connection_id):",
        "if ref.connection_id is not None:",
    ),
    Bug(
        "S1-02 S2-50",
        "a hit's reference has no connection",
        _READER,
        'return _ref(hit.get("connection_id"),',
        "return _ref(None,",
    ),
    Bug(
        "S1-03 S1-10",
        "an id without a connection gets an empty one",
        _REFERENCE,
        "connection_id = None if plain[1] is None else ConnectionId(plain[1])",
        'connection_id = ConnectionId(plain[1] or "")',
    ),
    Bug(
        "S1-04 S1-15 S1-27 S1-35",
        "the text names a hit by stream and key",
        _TEXT,
        "    return f\"id={result['id']}\"\n",
        "    return f\"id={str(result['id']).rpartition('/')[2]}\"\n",
    ),
    Bug(
        "S1-05",
        "a long id is cut",
        _HANDLES,
        "        uri = self.record_uri(ref)\n",
        "        uri = RECORD + str(text)[:ID_BYTES]\n",
    ),
    Bug(
        "S1-06",
        "only plain keys are found without a connection",
        _REFERENCE,
        "if not colon:",
        "if not colon or not slash:",
    ),
    Bug(
        "S1-07 S1-17",
        "the connection of an id is not passed on",
        _ARGUMENTS,
        "        connection_id=ref.connection_id,\n        fields=reads.fields(read.fields),",
        "        fields=reads.fields(read.fields),",
    ),
    Bug(
        "S1-08",
        "a connection's id is lowered",
        _REFERENCE,
        "None if plain[1] is None else ConnectionId(plain[1])",
        "None if plain[1] is None else ConnectionId(plain[1].lower())",
    ),
    Bug("S1-09", "every refusal is a 404", _ERRORS, '"http_status": error.status', '"http_status": 404'),
    Bug(
        "S1-11",
        "a path step inside a key is let through",
        _REFERENCE,
        'if ".." in part or part == ".":',
        'if part in {"..", "."}:',
    ),
    Bug(
        "S1-12",
        "an address is wrapped like a record",
        _SEARCH,
        'return str(hit.get("id") or _url(hit))',
        'return "record:" + str(hit.get("id") or _url(hit))',
    ),
    Bug(
        "S1-13",
        "a connection with a colon is embedded",
        _REFERENCE,
        '(_problem(ref.connection_id) or ":" in ref.connection_id)',
        "_problem(ref.connection_id)",
    ),
    Bug(
        "S1-14",
        "all hits get the connection of the first",
        _SEARCH,
        "results = [_result(reader, hit) for hit in hits]",
        'results = [_result(reader, {**hit, "connection_id": hits[0].get("connection_id")}) for hit in hits]',
    ),
    Bug(
        "S1-16",
        "a result has no connection beside its id",
        _SEARCH,
        'if hit.get("connection_id") is not None:',
        'if not hit.get("stream"):',
    ),
    Bug(
        "S1-18",
        "a short handle forgets the connection",
        _HANDLES,
        "        place = [short.connection_id, short.stream, short.record_id]\n",
        "        place = [None, short.stream, short.record_id]\n",
    ),
    Bug(
        "S1-19",
        "a document has the server's id instead of the id of the call",
        _ARGUMENTS,
        "return query, asked_id",
        "return query, handles.result_id(ref)",
    ),
    Bug(
        "S1-20",
        "connection_id beside an old id is ignored",
        _ARGUMENTS,
        "return replace(ref, connection_id=connection_id)",
        "return ref",
    ),
    Bug(
        "S1-21",
        "the connections to choose from are left out of an error",
        _ERRORS,
        "**{key: short for key in _RETRY if (short := _short(error.data.get(key))) is not None},",
        "",
    ),
    Bug(
        "S1-22",
        "a conflict names neither connection",
        _ARGUMENTS,
        "f\"The id names connection '{ref.connection_id}', connection_id names '{connection_id}'.\"",
        '"The id and connection_id name two connections."',
    ),
    Bug(
        "S1-23",
        "of two connections the argument wins",
        _ARGUMENTS,
        "    if ref.connection_id is not None:\n        raise ConflictingConnectionId(",
        "    if ref.connection_id is None:\n        raise ConflictingConnectionId(",
    ),
    Bug("S1-24", "an empty part of an id is let through", _REFERENCE, "if not part:", "if part is None:"),
    Bug(
        "S1-25",
        "an id with one slash too many is read",
        _REFERENCE,
        'if "/" in part or "\\\\" in part:',
        'if "\\\\" in part:',
    ),
    Bug(
        "S1-26",
        "the text describes hits and prints no id",
        _TEXT,
        '    return "\\n".join([*lines, f"   {_id(result)}"])\n',
        '    return "\\n".join(lines)\n',
    ),
    Bug(
        "S1-28",
        "the text leaves the label of a source out",
        _TEXT,
        '    label = hit.get("display_name") or _connector(hit)\n',
        "    label = None\n",
    ),
    Bug(
        "S1-29",
        "a connection is printed beside the id that holds it",
        _TEXT,
        '    return bool(connection) and not str(result["id"]).startswith(',
        '    return bool(connection) and str(result["id"]) != str(',
    ),
    Bug(
        "S1-30",
        "a connection that no id can hold is not printed",
        _TEXT,
        '    return bool(connection) and not str(result["id"]).startswith(',
        '    return not connection and not str(result["id"]).startswith(',
    ),
    Bug(
        "S1-31 S1-38",
        "hits are printed beyond the budget",
        "src/headgate/text/writing.py",
        "        if space < 0:\n            break\n        lines.append(text)",
        "        lines.append(text)",
    ),
    Bug(
        "S1-32",
        "the text is the envelope",
        _SEARCH,
        "    return Outcome(_bounded(structured, body, text), text, ",
        "    text = msgspec.json.encode(body).decode()\n    return Outcome(_bounded(structured, body, text), text, ",
    ),
    Bug(
        "S1-33",
        "the envelope has no cursor beside the one of the text",
        _SEARCH,
        "    return Outcome(_bounded(structured, body, text), text, ",
        '    body.pop("next_cursor", None)\n    return Outcome(_bounded(structured, body, text), text, ',
    ),
    Bug(
        "S1-34",
        "a result has no address",
        _SEARCH,
        '        result["url"] = reader.short_url(ref)\n',
        '        del result["url"]\n',
    ),
    Bug(
        "S1-36",
        "no line has a snippet",
        _TEXT,
        "if printed.snippet and snippet_chars:",
        "if printed.snippet and snippet_chars > 240:",
    ),
    Bug(
        "S1-37",
        "the text does not say when connection_id is needed",
        _TEXT,
        "; add connection_id only where a line prints it.",
        ".",
    ),
    Bug(
        "S1-39",
        "a member of a hit that this server does not know is lost",
        _SEARCH,
        '    for member in ("line", "data", "previews", "read"):',
        '    for member in ("line", "data", "previews", "read", "score"):',
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_what_pages_print_and_what_is_alike_make_the_count",
        "hits that are alike are lost",
        _HITS,
        "            same[likeness].alike.append(drawn)\n",
        "            pass\n",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_what_pages_print_and_what_is_alike_make_the_count",
        "the next page begins after hits that were read but not shown",
        _HITS,
        "            return _with_alike(hits), page.hits[place - 1].place\n",
        "            return _with_alike(hits), page.next\n",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_hits_that_are_alike_are_logged",
        "hits that are alike are not logged",
        _HITS,
        "        for hit in (drawn.hit, *(other.hit for other in drawn.alike))\n",
        "        for hit in (drawn.hit,)\n",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_records_of_different_texts_are_not_alike",
        "hits with one title are alike",
        _HITS,
        '            snippet.get("text"),\n',
        "",
    ),
    Bug(
        "tests/reading/test_daily_budget.py::test_a_day_ends_before_hits_that_are_alike_exceed_it",
        "hits that are alike do not count to the limit of a day",
        _HITS,
        "ahead=min(plan.ahead, most - limited.limit)",
        "ahead=plan.ahead",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_hits_with_long_texts_are_alike_wherever_they_stand_on_a_page",
        "hits are compared as they are shown, and later ones show less",
        _HITS,
        "        drawn = drawing.draw(hit, scope)\n",
        "        drawn = drawing.draw(hit, scope, is_first=len(hits) < _FIRST_HITS)\n",
    ),
)
