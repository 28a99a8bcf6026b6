"""Mistakes in who is let in, for how long, how often, and in what the log proves. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_RESTORED = "tests/console/test_restored.py::test_a_restore_ends_every_credential_unless_the_owner_keeps_them"

BUGS = (
    Bug(
        _RESTORED,
        "a restore keeps the owner tokens",
        "src/headgate/store/relational/maintenance/credentials.py",
        'len(ended("token", "revoke_owner_tokens", at))',
        "0 * at",
    ),
    Bug(
        _RESTORED,
        "a restore keeps the sessions",
        "src/headgate/store/relational/maintenance/credentials.py",
        '                ("owner_browser", "end_browser_secrets"),\n',
        "",
    ),
    Bug(
        _RESTORED,
        "a restore keeps the tokens of gateway callers",
        "src/headgate/store/postgres/sql/maintenance.sql",
        "kind IN ('gateway_caller', 'gateway_token')",
        "kind IN ('gateway_caller')",
    ),
)
