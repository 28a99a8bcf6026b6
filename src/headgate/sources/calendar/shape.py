"""What calendars look like: events, and tasks."""

from __future__ import annotations

from typing import Any

from headgate.sources.declaring import BOOLEAN, INTEGER, LIST, TEXT, TIME, StreamSpec

_EVENT_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "title": TEXT,
    "calendar": TEXT,
    "starts_at": {
        **TIME,
        "description": "A date for an event of whole days. Without an offset: the time of wherever the person is, "
        "compared as if it were UTC.",
    },
    "ends_at": {**TIME, "description": "When it is over; for whole days, the day after the last one."},
    "all_day": BOOLEAN,
    "time_zone": TEXT,
    "location": TEXT,
    "description": TEXT,
    "organizer": TEXT,
    "attendees": LIST,
    "status": {**TEXT, "description": "confirmed, tentative or cancelled."},
    "is_busy": {**BOOLEAN, "description": "Whether the time counts as taken."},
    "visibility": {**TEXT, "description": "public, private or confidential."},
    "categories": LIST,
    "url": TEXT,
    "meeting_url": TEXT,
    "recurrence": {
        **TEXT,
        "description": "The rule of a recurring event; each of its occurrences is a record.",
    },
    "series_id": {**TEXT, "description": "The id that all occurrences of a recurring event have in common."},
    "created_at": TIME,
    "updated_at": TIME,
}
_TASK_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "title": TEXT,
    "calendar": {**TEXT, "description": "The list that it is in."},
    "due_at": TIME,
    "starts_at": TIME,
    "completed_at": TIME,
    "status": {**TEXT, "description": "needs-action, in-process, completed or cancelled."},
    "priority": {**INTEGER, "description": "1 is the highest, 9 the lowest."},
    "description": TEXT,
    "location": TEXT,
    "categories": LIST,
    "url": TEXT,
    "created_at": TIME,
    "updated_at": TIME,
}
_TIMES = ("id", "calendar", "starts_at", "ends_at", "all_day", "time_zone", "status", "is_busy", "series_id")
_TEXTS = frozenset({"description", "attendees", "organizer", "url", "meeting_url"})

EVENTS = StreamSpec(
    name="events",
    label="Events",
    detail="One event of a calendar; each occurrence of a recurring event is one.",
    fields=_EVENT_FIELDS,
    time="starts_at",
    title="title",
    words=("title", "description", "location"),
    groups=("calendar", "status", "location", "all_day", "organizer", "series_id"),
    views=(
        ("times", "Free and busy times only", _TIMES),
        (
            "without_texts",
            "Titles, times and places, without descriptions and people",
            tuple(name for name in _EVENT_FIELDS if name not in _TEXTS),
        ),
    ),
)
TASKS = StreamSpec(
    name="tasks",
    label="Tasks",
    detail="One task of a list.",
    fields=_TASK_FIELDS,
    time="created_at",
    title="title",
    words=("title", "description"),
    groups=("calendar", "status", "priority"),
    views=(
        (
            "without_texts",
            "Titles and times, without descriptions",
            tuple(name for name in _TASK_FIELDS if name != "description"),
        ),
    ),
)
