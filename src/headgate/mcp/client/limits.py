"""How much one remote server may cost: bytes, seconds, calls, pages."""

from __future__ import annotations

from dataclasses import dataclass

#: Of the ``_meta`` of one tool or one result.
MAX_META_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds for one server."""

    #: Bytes of one response, of its whole event stream, or of all tools that are listed.
    max_bytes: int = 8 * 1024 * 1024
    #: JSON values in one response, or in all tools that are listed; an object counts as four, a list as two.
    max_values: int = 100_000
    #: Content blocks in one result.
    max_blocks: int = 10_000
    #: Events in the stream of one response.
    max_events: int = 1000
    connect_seconds: float = 5.0
    #: Silence, before the first byte or between two. Common servers send a comment line every 15 s.
    idle_seconds: float = 20.0
    #: From the call to the last byte; a caller can only allow less.
    total_seconds: float = 60.0
    #: Discovery: pages of the tool list, and tools on all of them.
    max_pages: int = 100
    max_tools: int = 1000
    #: Patterns in the schemas of all tools that are listed; further ones are not checked here.
    max_patterns: int = 256
    #: Questions of a tool in one call, and rounds of questions, when the import answers questions.
    max_questions: int = 10
    #: Characters of the state that a tool sends with a question and expects back.
    max_state_chars: int = 64 * 1024
    #: Calls running at once, and calls waiting for their turn.
    concurrency: int = 8
    queue: int = 64
    #: Failures in a row after which calls are suspended, and for how long.
    failures: int = 5
    suspend_seconds: float = 30.0
