"""Calendars of an account: an iCalendar file at an address, or the calendars of a CalDAV server. Only reads.

Occurrences of series reach two years beyond the day of the run; after a month everything is fetched again, so that they
go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from headgate.errors import ConfigInvalid, UpstreamProtocolError
from headgate.sources.calendar.source import AHEAD, EVENTS, TASKS
from headgate.sources.dav import CALENDARS, DavAccount, DavRun, Ids, collections, gone, is_due
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Covered, Item, Mark
from headgate.sources.secrets import FORMS

_UNCHANGED = 304


class CalendarAccount(DavAccount):
    name = "calendar"
    title = "Calendar"
    streams = (EVENTS, TASKS)
    kind = CALENDARS
    settings: Mapping[str, str] = {
        "url": "The https address of an .ics file, of a CalDAV calendar, or of a CalDAV server.",
        "user": "The name to sign in with (optional)",
        "secret": f"Where the password is: {FORMS} (optional)",
        "kind": "ics or caldav; caldav if there is a user (optional)",
        "whole": "true, to remove events that are gone from an .ics file (optional)",
        "allow_private": "true, if the server may have a private address (optional)",
    }

    def sync(self, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
        """Fetch what changed; it is read in another process."""
        kind = settings.get("kind") or ("caldav" if settings.get("user") else "ics")
        if kind not in {"ics", "caldav"}:
            raise ConfigInvalid("'kind' is ics or caldav.", hint="Leave it out to have it chosen.")
        with self.opened(settings) as run:
            if kind == "ics":
                yield from _file(run, settings, state)
            else:
                yield from collections(run, settings["url"], state)
                # Series are followed so far; what is later may still come.
                yield Covered("events", end=(run.now + AHEAD).date().isoformat())
                yield Covered("tasks")


def _file(run: DavRun, settings: Mapping[str, str], state: Mapping[str, Any]) -> Iterator[Item | ImportPart]:
    url = settings["url"]
    before: Mapping[str, Any] = state.get("file") or {}
    is_all = is_due(before, run.now)
    wanted = {"If-None-Match": before["etag"]} if before.get("etag") and not is_all else {}
    answer = run.account.request("GET", url, wanted)
    if answer.status == _UNCHANGED:
        return
    if b"BEGIN:VCALENDAR" not in answer.body[:4096].upper():
        raise UpstreamProtocolError("The address gives no iCalendar file.")
    ids: Ids = []
    name = unquote(Path(urlsplit(url).path).stem) or "calendar"
    yield from run.records(name, answer.body, name, ids, before.get("ids") or ())
    is_whole = settings.get("whole") == "true"
    if is_whole:
        yield from gone(before.get("ids") or (), ids)
    etag = answer.headers.get("etag", "")
    yield Mark(
        "file", 0, {"etag": etag, "ids": ids if is_whole else [], "expanded": run.now.date().isoformat()}
    )
