"""Mistakes at the edges: commands, hosts, console and HTTP. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_GRANTS = "tests/cli/test_grants.py"

BUGS = (
    # Choices on the command line
    Bug(
        f"{_GRANTS}::test_a_stream_is_granted_in_every_source_that_has_it_and_the_preview_names_each",
        "a stream is granted in the first source that has it alone",
        "src/headgate/auth/grants.py",
        "    return tuple(request for request in requests if request.streams)",
        "    return tuple(request for request in requests if request.streams)[: 1 if choice.streams else None]",
    ),
    Bug(
        f"{_GRANTS}::test_fields_are_granted_in_each_source_that_has_them_and_a_source_without_any_is_left_out",
        "a source that has none of the chosen fields is granted whole",
        "src/headgate/auth/grants.py",
        "if chosen or (name in choice.streams and name not in fields):",
        "if chosen or name in choice.streams or name in fields:",
    ),
)
