"""How much one remote server may cost us: bytes, seconds, calls, pages.

Values only; who keeps to them is said beside each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds for one server; every one of them can be set."""

    #: Bytes of one answer, its whole event stream included.
    max_bytes: int = 8 * 1024 * 1024
    #: Events in the stream of one answer.
    max_events: int = 1000
    connect_seconds: float = 5.0
    #: Silence, before the first byte or between two. Common servers send a first sign of life after 15 s.
    idle_seconds: float = 20.0
    #: From the call to the last byte, whatever the caller allows.
    total_seconds: float = 60.0
    #: Discovery: pages of the tool list, and tools on all of them.
    max_pages: int = 50
    max_tools: int = 1000
    #: Questions that a tool may ask in one call, and rounds it may ask them in, when it may ask at all.
    max_questions: int = 10
    #: Characters of the state that a tool hands out with a question and wants back.
    max_state_chars: int = 64 * 1024
    #: Calls running at once, and calls waiting for their turn.
    concurrency: int = 8
    queue: int = 64
    #: Failures in a row after which the server is left alone, and for how long.
    failures: int = 5
    suspend_seconds: float = 30.0
