"""What the lines of one session of a coding assistant have in common, collected while they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headgate.sources.cleaning import without_empty
from headgate.sources.conversations.shape import title_of


@dataclass(slots=True)
class CodingSession:
    """A session: what is known of it after the lines that were read."""

    service: str
    id: str = ""
    title: str | None = None
    first_text: str | None = None
    started_at: str | None = None
    updated_at: str | None = None
    model: str | None = None
    folder: str | None = None
    branch: str | None = None
    message_count: int = 0

    @property
    def shown_title(self) -> str | None:
        """The title that the program gave, or the beginning of the person's first text."""
        return self.title or title_of(self.first_text)

    def note_message(self, author: str | None, text: str | None, time: str | None) -> None:
        """Count a message."""
        self.message_count += 1
        if author == "user" and self.first_text is None:
            self.first_text = text
        if time is not None:
            self.started_at = self.started_at or time
            self.updated_at = time

    def record(self) -> dict[str, Any]:
        """Return the record of the conversation."""
        return without_empty(
            {
                "id": self.id,
                "title": self.shown_title,
                "service": self.service,
                "started_at": self.started_at,
                "updated_at": self.updated_at,
                "model": self.model,
                "message_count": self.message_count,
                "folder": self.folder,
                "branch": self.branch,
            }
        )
