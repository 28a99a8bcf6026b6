"""Histories as a source: each kind that a tree holds is one connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate.sources.declaring import declaration
from headgate.sources.history.browser import BROWSER
from headgate.sources.history.health import HEALTH
from headgate.sources.history.media import SPOTIFY, YOUTUBE
from headgate.sources.history.places import LOCATION
from headgate.sources.inputs.tree import InputTree
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised

_KINDS = {kind.variant: kind for kind in (BROWSER, SPOTIFY, YOUTUBE, LOCATION, HEALTH)}


class HistorySource:
    """Browser history, Spotify, YouTube, locations and Apple Health."""

    name = "history"
    title = "History"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Take the files of each kind."""
        found = ((kind, [file for file in tree.files if kind.is_of(file)]) for kind in _KINDS.values())
        return [
            Recognised(self.name, kind.title, files, Certainty.EXPORT, variant=kind.variant)
            for kind, files in found
            if files
        ]

    def declare(self, found: Recognised) -> Mapping[str, Any]:
        """Declare the streams of the kind."""
        kind = _KINDS[found.variant]
        return declaration(f"history-{kind.variant}", kind.title, kind.streams)

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read one file after the other."""
        return read_each(found, resume, _KINDS[found.variant].read)


HISTORY = HistorySource()
