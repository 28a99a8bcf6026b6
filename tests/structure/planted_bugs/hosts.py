"""Mistakes in what agent programs need of us: the words of tools, versions, configurations. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_KINDS = "tests/mcp/serve/test_kinds.py"
_MODEL = "src/headgate/model/kinds.py"

BUGS = (
    Bug(
        f"{_KINDS}::test_what_another_declares_is_never_repeated",
        "a source of another publisher counts as ours",
        _MODEL,
        "    if publisher != PUBLISHER:\n        return None\n",
        "",
    ),
    Bug(
        f"{_KINDS}::test_a_grant_that_has_ended_is_named_on_no_surface",
        "stdio names what a revoked grant showed",
        "src/headgate/store/quick.py",
        "WHERE revoked_at IS NULL AND (id=? OR package_id=?)",
        "WHERE (id=? OR package_id=?)",
    ),
    Bug(
        f"{_KINDS}::test_the_tools_name_the_kinds_that_a_grant_shows_on_every_surface",
        "the hosted tools name no kinds",
        "src/headgate/mcp/serve/server.py",
        "self.surface.naming(grant.source_id for grant in _call_of(context).access.grants)",
        "self.surface",
    ),
    Bug(
        "tests/mcp/serve/test_tools.py"
        "::test_the_words_are_listed_under_the_name_that_hosts_use_and_taken_under_both",
        "words under the older name are not searched for",
        "src/headgate/mcp/serve/call.py",
        "    return read.query or read.q\n",
        "    return read.query\n",
    ),
    Bug(
        "tests/web/test_messages.py::test_a_version_that_is_named_twice_is_one",
        "a version that was joined is not taken apart",
        "src/headgate/web/mcp.py",
        'part.strip(b" \\t") for value in values for part in value.split(b",")',
        "value for value in values",
    ),
    Bug(
        "tests/web/test_messages.py::test_a_version_that_is_not_served_is_refused_in_words_about_versions",
        "a version that is not served is given to the SDK",
        "src/headgate/web/mcp.py",
        "    if len(versions) != 1 or not versions <= _VERSIONS:\n        return None\n",
        "    if len(versions) != 1 or not versions <= _VERSIONS:\n        return scope\n",
    ),
    Bug(
        "tests/cli/test_connect.py::test_a_command_is_written_as_the_program_documents_it",
        "Codex does not wait for our tools",
        "src/headgate/agent_programs/programs.py",
        'stdio_kind={"required": True, "startup_timeout_sec": 30}',
        'stdio_kind={"startup_timeout_sec": 30}',
    ),
    Bug(
        "tests/agent_programs/test_merging.py::test_a_yaml_file_keeps_its_comments_and_its_other_servers",
        "an earlier entry of a YAML file stays beside the new one",
        "src/headgate/agent_programs/merging.py",
        "for item in items if not _is_named(item, name) for line in item",
        "for item in items for line in item",
    ),
    Bug(
        "tests/mcp/serve/test_handshake.py::test_ordinary_sessions_with_a_handshake_begin_without_the_sdk",
        "an old version waits for the SDK",
        "src/headgate/mcp/serve/results.py",
        'LEGACY = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"})',
        'LEGACY = frozenset({"2025-06-18", "2025-11-25"})',
    ),
)
