"""Logs and metrics: text on a terminal, JSON lines elsewhere; ids, never values.

A line may carry only the keys of a closed list. The last processor replaces the value of every other key, so
that no caller can log a record's content or a token by mistake.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections import defaultdict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger
    from structlog.typing import Processor

WITHHELD = "<withheld>"
#: Libraries that log whole messages and headers below a warning, and quote a server's words in warnings. The MCP
#: SDK calls one of its loggers "client".
_LIBRARIES = ("authlib", "client", "httpcore2", "httpx2", "mcp")
_MAX_LIBRARY_CHARS = 500

#: The only keys a log line may carry; their values are names, ids, codes, counts or times.
LOGGABLE = frozenset(
    {
        "address",
        "client_id",
        "code",
        "connection_id",
        "connector_key",
        "count",
        "duration_ms",
        "event",
        "exception",
        "grant_id",
        "home",
        "level",
        "loop",
        "method",
        "operation_id",
        "package_id",
        "parent_id",
        "reason",
        "request_id",
        "route",
        "server",
        "size_bytes",
        "status",
        "stream",
        "subject",
        "timestamp",
        "tool",
        "version",
        "worker",
    }
)


def configure_logs(level: str, log_format: str, out: TextIO) -> None:
    """Send every log line of the process, including those of libraries, to one stream."""
    as_text = log_format == "text" or (log_format == "auto" and out.isatty())
    _replace_handlers(level, _Lines(as_text=as_text, has_colors=out.isatty()), out)
    tame_library_logs()


class _Lines(logging.Formatter):
    """Formats lines with structlog, which is slow to import: a command that logs nothing does without it."""

    def __init__(self, *, as_text: bool, has_colors: bool) -> None:
        super().__init__()
        self._as_text = as_text
        self._has_colors = has_colors

    def format(self, record: logging.LogRecord) -> str:
        return self._formatter.format(record)

    @cached_property
    def _formatter(self) -> logging.Formatter:
        import structlog  # noqa: PLC0415 - see above

        render: Processor = (
            structlog.dev.ConsoleRenderer(colors=self._has_colors)
            if self._as_text
            else structlog.processors.JSONRenderer()
        )
        return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_processors(), processor=render)


def _processors() -> list[Processor]:
    import structlog  # noqa: PLC0415 - slow to import

    return [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        exception_without_values,
        withhold_values,
    ]


def tame_library_logs() -> None:
    """Keep messages, headers and long quotes of the libraries out of the log; doing it twice changes nothing."""
    names = list(logging.root.manager.loggerDict)
    for library in _LIBRARIES:
        # The level holds for loggers that are made later; the filter for those that were given another level.
        logging.getLogger(library).setLevel(logging.WARNING)
        for name in (library, *(name for name in names if name.startswith(f"{library}."))):
            logging.getLogger(name).addFilter(_tame)


def _tame(record: logging.LogRecord) -> bool:
    if record.levelno < logging.WARNING:
        return False
    text = record.getMessage().partition("\n")[0][:_MAX_LIBRARY_CHARS]
    record.msg, record.args = ascii(text)[1:-1], ()
    record.exc_info = record.exc_text = None
    return True


def get_logger() -> BoundLogger:
    """Return the logger; its events are named in snake_case, and it takes ids, never values."""
    import structlog  # noqa: PLC0415 - slow to import

    return structlog.wrap_logger(
        logging.getLogger("headgate"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            *_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
    )


def logs_requests() -> bool:
    """Return whether request lines are written; checking is cheaper than building one."""
    return logging.root.isEnabledFor(logging.INFO)


def logs_calls() -> bool:
    """Return whether the end of each call is written."""
    return logging.getLogger("headgate").isEnabledFor(logging.DEBUG)


def withhold_values(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Replace the value of every key that is not loggable."""
    for name in event:
        # structlog's internal keys start with an underscore and do not reach the line.
        if name not in LOGGABLE and not name.startswith("_"):
            event[name] = WITHHELD
    return event


def exception_without_values(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Turn an exception into its type and the lines it passed, without its message or locals.

    Messages of foreign exceptions quote input, and input may be a record or a token.
    """
    error = _exception_of(event.pop("exc_info", None))
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        event["exception"] = " < ".join(
            [
                type(error).__qualname__,
                *(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames)),
            ]
        )
    return event


def _exception_of(info: Any) -> BaseException | None:
    if isinstance(info, BaseException):
        return info
    if isinstance(info, tuple):
        return cast("tuple[Any, BaseException | None, Any]", info)[1]
    return sys.exc_info()[1] if info else None


def _replace_handlers(level: str, formatter: logging.Formatter, out: TextIO) -> None:
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
    # Uvicorn's access lines hold query values; headgate.web logs requests and the start of the server instead.
    logging.getLogger("uvicorn.access").disabled = True
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


@dataclass(slots=True)
class Metrics:
    """Requests by route and status, their time by route, and how many are under way."""

    requests: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    under_way: int = 0

    def record(self, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        self.requests[route, status] += 1
        self.seconds[route] += seconds

    def text(self) -> str:
        """Write the numbers the way Prometheus reads them."""
        lines = ["# TYPE headgate_requests_total counter"]
        lines += [
            f'headgate_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE headgate_request_seconds_sum counter")
        lines += [
            f'headgate_request_seconds_sum{{route="{route}"}} {total:.6f}'
            for route, total in sorted(self.seconds.items())
        ]
        lines += ["# TYPE headgate_requests_under_way gauge", f"headgate_requests_under_way {self.under_way}"]
        return "\n".join(lines) + "\n"
