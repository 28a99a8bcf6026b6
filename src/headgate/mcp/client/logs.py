"""Keep what servers say out of the log.

The protocol library logs whole messages when it is asked for details, and quotes answers in its complaints.
Both are somebody's data, or a stranger's words; its lines are shortened and its quotes left out.
"""

from __future__ import annotations

import logging

_TALKATIVE = (
    "client",
    "mcp.client.streamable_http",
    "mcp.client.session",
    "mcp.client.subscriptions",
    "mcp.shared.jsonrpc_dispatcher",
    "httpx2",
    "httpcore2",
)
_MAX_CHARS = 500


def _tame(record: logging.LogRecord) -> bool:
    # Details name arguments, results and session ids; nothing of that is for a log.
    if record.levelno < logging.WARNING:
        return False
    text = record.getMessage().partition("\n")[0][:_MAX_CHARS]
    record.msg, record.args = ascii(text)[1:-1], ()
    record.exc_info = record.exc_text = None
    return True


def tame_library_logs() -> None:
    """Shorten the library's log lines; doing it twice changes nothing."""
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_tame)
