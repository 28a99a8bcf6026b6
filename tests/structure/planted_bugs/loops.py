"""Mistakes by which background work ends in silence, or an account reaches what it should not. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_TASKS = "src/headgate/tasks.py"
_SYNCING = "src/headgate/sources/accounts.py"
_WEB = "src/headgate/sources/web_account.py"
_ACCOUNTS = "tests/sources/test_syncing.py"
_CALENDAR = "tests/sources/calendar/test_calendar_account.py"

BUGS = (
    Bug(
        "tests/test_tasks.py::test_a_loop_goes_on_after_any_failure_and_waits_longer_each_time",
        "a loop goes on only after failures of ours",
        _TASKS,
        "except Exception as error:  # noqa: BLE001 - a loop that ends",
        "except HeadgateError as error:  # noqa: BLE001 - a loop that ends",
    ),
    Bug(
        "tests/test_tasks.py::test_a_failure_is_logged_once_with_where_it_came_from_and_without_its_words",
        "every failure of a loop is logged",
        _TASKS,
        "if before is None or before.code != code:",
        "if count:",
    ),
    Bug(
        f"{_ACCOUNTS}::test_an_account_that_fails_as_no_account_should_stops_no_other_and_is_tried_again",
        "an account's failure that is not ours is forgotten",
        _SYNCING,
        "self._supervisor.failed(LOOP, error, subject=connection.id)",
        "pass",
    ),
    Bug(
        f"{_ACCOUNTS}::test_a_slow_account_holds_up_no_other",
        "accounts are fetched one after the other",
        _SYNCING,
        "_AT_ONCE = 4",
        "_AT_ONCE = 1",
    ),
    Bug(
        f"{_CALENDAR}::test_a_server_elsewhere_leads_to_no_service_of_this_machine",
        "a server elsewhere may lead to this machine",
        _WEB,
        'if not self._is_here and (scheme != "https" or is_this_machine(host.rstrip("."))):',
        'if not self._is_here and scheme != "https" and not is_this_machine(host.rstrip(".")):',
    ),
    Bug(
        f"{_CALENDAR}::test_a_server_that_sends_a_byte_at_a_time_is_left_when_the_time_of_an_account_is_over",
        "a slow connection is never cut",
        "src/headgate/sources/accounts.py",
        "    timer.start()\n",
        "",
    ),
    Bug(
        "tests/web/test_server.py::test_a_worker_that_cannot_begin_stops_the_server_and_says_why",
        "a worker that cannot begin is replaced for ever",
        "src/headgate/workers.py",
        "if not self._is_stopping and code == _NOT_STARTED:",
        "if not self._is_stopping and code == _NOT_STARTED + 1:",
    ),
    Bug(
        "tests/console/test_pages.py::test_an_import_that_fails_by_our_fault_ends_and_is_shown",
        "an import that fails by our fault is forgotten",
        "src/headgate/sources/uploads.py",
        "            self._supervisor.failed(_LOOP, error)\n",
        "            del error\n",
    ),
    Bug(
        "tests/mcp/gateway/test_hosted_gateway.py"
        "::test_a_server_whose_secret_cannot_be_read_is_tried_again_and_its_problem_is_shown",
        "the page shows no problem of a server",
        "src/headgate/mcp/gateway/hosted.py",
        "if (trouble.loop, trouble.subject) == (_LOOP, name)",
        "if trouble.subject == _LOOP",
    ),
)
