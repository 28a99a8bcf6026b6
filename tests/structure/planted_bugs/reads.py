"""Mistakes in what agents read: hits and titles, documents, chosen fields, and the refusal of an ambiguous read."""

from __future__ import annotations

from tests.structure.planted import Bug

_ARGUMENTS = "src/headgate/mcp/serve/call.py"
_CHOOSE = "src/headgate/policy/choose.py"
_DECIDE = "src/headgate/policy/decide.py"
_DOCUMENT = "src/headgate/text/document.py"
_FETCH = "src/headgate/mcp/serve/fetch.py"
_HITS = "src/headgate/reading/search.py"
_OUTCOME = "src/headgate/mcp/serve/results.py"
_READS = "src/headgate/model/reads.py"
_SEARCH = "src/headgate/mcp/serve/search.py"

BUGS = (
    Bug(
        "S2-49 S2-51",
        "every stream that is searched has the whole limit",
        _DECIDE,
        "        limit=limit,\n        filters=filters,",
        "        limit=limit * max(1, len(scopes)),\n        filters=filters,",
    ),
    Bug(
        "S2-52",
        "a hit does not name its source",
        _HITS,
        '        "connector_id": origin["connector_key"],\n        **origin,\n',
        '        "connector_id": origin["connector_key"],\n        "connection_id": record.connection_id,\n',
    ),
    Bug(
        "S2-53",
        "two sources are no mix",
        "src/headgate/text/search.py",
        "in list(counts.items())[:_MIX]",
        "in list(counts.items())[:1]",
    ),
    Bug(
        "S2-54",
        "a highlight that is cut is not closed",
        "src/headgate/text/search.py",
        "[*out, CLOSE] if is_written else out",
        "out",
    ),
    Bug(
        "S2-55",
        "the title of a hit is its snippet",
        _SEARCH,
        '"title": title(hit),',
        '"title": str((hit.get("snippet") or {}).get("text") or title(hit)),',
    ),
    Bug(
        "S2-56",
        "a title is dated by sent_at and authored_at only",
        "src/headgate/text/document.py",
        '"authored_at", "created_at", "source_created_at", "occurred_at", "updated_at")',
        '"authored_at")',
    ),
    Bug(
        "S2-57",
        "a search of one connection searches all",
        "src/headgate/policy/clauses.py",
        "    return tuple(part for scope in scopes if (part := scope.on(query.connection_id)) is not None)\n",
        "    return scopes\n",
    ),
    Bug(
        "S2-58",
        "a search of one connection has no limit",
        _READS,
        "        limit=default_limit if read.limit is None else read.limit,",
        "        limit=default_limit if read.connection_id or read.limit is None else read.limit,",
    ),
    Bug(
        "S2-59 S2-71",
        "fields does not narrow a page",
        _READS,
        "        fields=fields(read.fields),\n        view=read.view,",
        "        view=read.view,",
    ),
    Bug(
        "S2-60 S2-61 S2-64",
        "a document has a sixth member",
        _DOCUMENT,
        'members: Json = {"id": asked_id,',
        'members: Json = {"object": "document", "id": asked_id,',
    ),
    Bug(
        "S2-62",
        "the text of a document leaves its metadata out",
        _FETCH,
        "plain(written)",
        'plain(msgspec.json.encode({**made, "metadata": {}}))',
    ),
    Bug(
        "S2-63",
        "the record stands in the document a second time",
        _FETCH,
        "written = msgspec.json.encode(members)",
        'written = msgspec.json.encode({**members, "data": answer.body()})',
    ),
    Bug(
        "S2-65",
        "the text of a long document is cut on its way out",
        _OUTCOME,
        '{"type": "text", "text": self.text}',
        '{"type": "text", "text": self.text[:8000]}',
    ),
    Bug(
        "S2-66",
        "a document has the server's address beside its own",
        _FETCH,
        "written = msgspec.json.encode(members)",
        'written = msgspec.json.encode({**members, "provider_url": reader.provider_url})',
    ),
    Bug(
        "S2-67 S2-70",
        "a document does not name its connector",
        _DOCUMENT,
        '_ORIGIN = ("stream", "connection_id", "connector_key", "connector_id", "display_name")',
        '_ORIGIN = ("stream", "connection_id", "display_name")',
    ),
    Bug(
        "S2-68 S2-69",
        "fields does not narrow a document",
        _ARGUMENTS,
        "        fields=reads.fields(read.fields),\n        expand=expansions(read.expand, read.expand_limit),\n"
        "        key_digest",
        "        expand=expansions(read.expand, read.expand_limit),\n        key_digest",
    ),
    Bug(
        "S2-72",
        "the time of a deletion is not declared",
        "src/headgate/mcp/serve/tools.py",
        'OPERATIONAL = ("deleted", "deleted_at", "expanded")',
        'OPERATIONAL = ("deleted", "expanded")',
    ),
    Bug(
        "S2-73 S2-74",
        "an ambiguous read lists every connection there is",
        _CHOOSE,
        "MAX_CHOICES = 12",
        "MAX_CHOICES = 1200",
    ),
    Bug(
        "S2-75",
        "an ambiguous read says to choose a stream",
        _CHOOSE,
        '"retry_with": "connection_id"',
        '"retry_with": "stream"',
    ),
    Bug(
        "S2-76",
        "streams are counted before a page is decided on",
        "src/headgate/reading/records.py",
        "    decision, labels = read.decisions.page(query,",
        "    from headgate.policy.decide import whole\n\n"
        "    await read.home.store.summaries([whole(scope) for scope in read.decisions.allowance.scopes])\n"
        "    decision, labels = read.decisions.page(query,",
    ),
    Bug(
        "S2-77",
        "the connections to choose from do not name their grants",
        _CHOOSE,
        "if access.token_kind is TokenKind.MCP_PACKAGE else {}",
        "if access.token_kind is TokenKind.OWNER else {}",
    ),
    Bug(
        "S2-78",
        "the number of connections left out is that of all",
        _CHOOSE,
        '["available_connections_omitted"] = len(choices) - MAX_CHOICES',
        '["available_connections_omitted"] = len(choices)',
    ),
    Bug(
        "tests/mcp/serve/test_bytes.py::test_a_usual_page_of_records_has_at_most_14_000_bytes_and_none_more_than_24_000",
        "a page of records for a model has no bound in bytes",
        "src/headgate/store/queries/pages.py",
        "            space -= row_bytes(record)\n",
        "",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_a_row_of_a_page_begins_with_its_line_and_leaves_out_what_says_nothing",
        "a field that was asked for by name is left out where it has no value",
        "src/headgate/text/records.py",
        "        if name in named\n        or (",
        "        if (",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_values_that_every_row_has_stand_once_above_them",
        "a value that most rows have is written as that of all",
        "src/headgate/reading/records.py",
        "        if all(",
        "        if any(",
    ),
)
