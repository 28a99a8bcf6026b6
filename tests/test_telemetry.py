from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from headgate.telemetry import WITHHELD, configure_logs, get_logger, tame_library_logs

CANARY = "canary-3f9a"


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    yield io.StringIO()
    root.handlers[:], root.level = before
    structlog.reset_defaults()


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_logs_are_json_lines_without_a_terminal(out: io.StringIO):
    configure_logs("info", "auto", out)
    get_logger().info("read", request_id="req_1", count=3)
    (line,) = lines(out)
    assert line["event"] == "read"
    assert (line["level"], line["request_id"], line["count"]) == ("info", "req_1", 3)
    assert str(line["timestamp"]).endswith("Z")


def test_logs_are_text_when_asked(out: io.StringIO):
    configure_logs("info", "text", out)
    get_logger().info("read", request_id="req_1")
    assert "read" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_a_value_is_withheld_whatever_its_name(out: io.StringIO):
    configure_logs("info", "json", out)
    get_logger().info("read", body=CANARY, token=CANARY, text=CANARY)
    (line,) = lines(out)
    assert CANARY not in out.getvalue()
    assert (line["body"], line["token"], line["text"]) == (WITHHELD, WITHHELD, WITHHELD)


def test_an_exception_is_logged_without_its_message_or_locals(out: io.StringIO):
    configure_logs("info", "json", out)

    def fail(secret: str) -> None:
        raise ValueError(secret)

    try:
        fail(CANARY)
    except ValueError as error:
        get_logger().exception("failed")
        get_logger().error("failed", exc_info=error)
        logging.getLogger("some.library").exception("failed")
    assert CANARY not in out.getvalue()
    assert len(lines(out)) == 3
    for line in lines(out):
        assert str(line["exception"]).startswith("ValueError < ")
        assert "fail" in str(line["exception"])


def test_a_line_break_cannot_forge_a_line(out: io.StringIO):
    configure_logs("info", "json", out)
    get_logger().info('x\n{"level":"critical"}', reason='a\n{"b":1}')
    assert len(lines(out)) == 1


def test_a_quieter_level_is_kept(out: io.StringIO):
    configure_logs("warning", "json", out)
    get_logger().info("small")
    get_logger().warning("large")
    assert [line["event"] for line in lines(out)] == ["large"]


def test_libraries_log_warnings_only_and_each_as_one_short_line(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    library = logging.getLogger("httpcore2.http11")
    level = library.level
    library.setLevel(logging.DEBUG)
    try:
        tame_library_logs()
        library.debug("received %s", CANARY)
        library.warning("x" * 2000 + "\n" + CANARY)
        library.error("odd \x1b[31m answer", exc_info=ValueError(CANARY))
    finally:
        library.setLevel(level)
    assert CANARY not in caplog.text
    assert [len(record.message) for record in caplog.records] == [500, len("odd \\x1b[31m answer")]
