"""What was played and done: Spotify's listening history, and the videos, searches and other activity of a Takeout."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import unquote_plus

from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.json_values import json_rows, object_of, objects_of
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, iso_of, number_of, text_of, without_empty
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_ITEMS = frozenset({"item"})
_MAX_TEXT = 2000
_LISTENS = StreamSpec(
    name="listens",
    label="Music and podcasts",
    detail="One song or episode that was played: when, by whom and for how long.",
    fields=fields(
        "id title artist album kind played_at:time seconds:number is_skipped:boolean platform country uri"
    ),
    time="played_at",
    times="UTC",
    title="title",
    words=("title", "artist", "album"),
    groups=("artist", "album", "kind", "platform", "country"),
    views=(
        ("music", "What was played and when", ("id", "title", "artist", "album", "played_at", "seconds")),
    ),
    is_append_only=True,
)
_WATCHED = StreamSpec(
    name="watched_videos",
    label="Watched videos",
    detail="One video that was watched, and its channel.",
    fields=fields("id title channel url watched_at:time product"),
    time="watched_at",
    times="UTC",
    title="title",
    words=("title", "channel"),
    groups=("channel", "product"),
    is_append_only=True,
)
_SEARCHES = StreamSpec(
    name="searches",
    label="Searches",
    detail="One search for videos.",
    fields=fields("id query url searched_at:time"),
    time="searched_at",
    times="UTC",
    title="query",
    words=("query",),
    is_append_only=True,
)


def _is_spotify(file: InputFile) -> bool:
    head = file.head
    has_fields = b'"ms_played"' in head or (b'"msPlayed"' in head and b'"endTime"' in head)
    return file.suffix == ".json" and head.lstrip().startswith(b"[") and has_fields


def _read_spotify(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = OrderedKeys()
    return json_rows(file, content, _ITEMS, lambda _, entry: _listen(keys, entry))


_NAMING = ("spotify_track_uri", "spotify_episode_uri", "audiobook_uri", "master_metadata_album_artist_name")


def _listen(keys: OrderedKeys, entry: dict[str, Any]) -> list[Row] | None:
    played_at = iso_of(entry.get("ts") or entry.get("endTime"))
    track = _first(entry, "master_metadata_track_name", "trackName")
    title = track or _first(entry, "episode_name", "audiobook_chapter_title")
    if played_at is None or title is None:
        # Spotify writes plays of what it has no name for.
        is_nameless = played_at is not None and not any(entry.get(name) for name in _NAMING)
        return None if is_nameless else []
    milliseconds = number_of(entry.get("ms_played", entry.get("msPlayed")))
    artist = _first(
        entry, "master_metadata_album_artist_name", "artistName", "episode_show_name", "audiobook_title"
    )
    skipped = entry.get("skipped")
    data = {
        "id": keys.key(played_at, title, artist, milliseconds),
        "title": title,
        "artist": artist,
        "album": _first(entry, "master_metadata_album_album_name"),
        "kind": "song" if track else "episode",
        "played_at": played_at,
        "seconds": None if milliseconds is None else milliseconds / 1000,
        "is_skipped": skipped if isinstance(skipped, bool) else None,
        "platform": _first(entry, "platform"),
        "country": _first(entry, "conn_country"),
        "uri": _first(entry, "spotify_track_uri", "spotify_episode_uri"),
    }
    return [Row("listens", without_empty(data))]


_PRODUCT = re.compile(rb'"header":\s*"([^"\\]{1,100})"')
_QUERY = re.compile(r"[?&](?:q|query)=([^&#]{1,2000})")
_WATCHED_BEFORE = re.compile(r"^(?:Watched|Viewed|Angesehen:|Vous avez regardé|Has visto|Hai guardato)\s+")
_SEARCHED_BEFORE = re.compile(
    r"^(?:Searched for|Gesucht nach:?|Vous avez recherché|Has buscado|Hai cercato)\s+"
)
_AFTER = re.compile(r"\s+(?:angesehen|gesucht)$")


def _is_youtube(file: InputFile) -> bool:
    return _product(file).startswith("YouTube")


def _read_youtube(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = OrderedKeys()
    return json_rows(file, content, _ITEMS, lambda _, entry: _video(keys, entry))


def _video(keys: OrderedKeys, entry: dict[str, Any]) -> list[Row]:
    at, title, url = iso_of(entry.get("time")), _first(entry, "title"), _first(entry, "titleUrl")
    if at is None or title is None:
        return []
    key = keys.key(at, title, url)
    if "search_query=" in (url or ""):
        query = _AFTER.sub("", _SEARCHED_BEFORE.sub("", title))
        return [Row("searches", without_empty({"id": key, "query": query, "url": url, "searched_at": at}))]
    channel = next((object_of(subtitle) for subtitle in objects_of(entry.get("subtitles"))), dict[str, Any]())
    data = {
        "id": key,
        "title": _AFTER.sub("", _WATCHED_BEFORE.sub("", title)),
        "channel": _first(channel, "name"),
        "url": url,
        "watched_at": at,
        "product": _first(entry, "header"),
    }
    return [Row("watched_videos", without_empty(data))]


_ACTIVITIES = StreamSpec(
    name="activities",
    label="Activity",
    detail="One thing that was done in a product of Google: a search, a page, a place that was looked up.",
    fields=fields(
        "id title query product url about at:time", query="What was searched for, if it was a search."
    ),
    time="at",
    times="UTC",
    title="title",
    words=("title", "query", "about"),
    groups=("product",),
    is_append_only=True,
)


def _product(file: InputFile) -> str:
    """Return what the first entry says that it is of; empty if the file is no list of such entries."""
    is_list = file.suffix == ".json" and file.head.lstrip().startswith(b"[") and b'"time"' in file.head
    match = _PRODUCT.search(file.head) if is_list else None
    return match[1].decode("utf-8", "replace") if match else ""


def _read_activity(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    keys = OrderedKeys()
    return json_rows(file, content, _ITEMS, lambda _, entry: _activity(keys, entry))


def _activity(keys: OrderedKeys, entry: dict[str, Any]) -> list[Row]:
    at, title, url = iso_of(entry.get("time")), _first(entry, "title"), _first(entry, "titleUrl")
    if at is None or title is None:
        return []
    about = [*objects_of(entry.get("subtitles")), *objects_of(entry.get("details"))]
    query = _QUERY.search(url or "")
    data = {
        "id": keys.key(at, title, url),
        "title": title,
        "query": one_line(unquote_plus(query[1]), _MAX_TEXT) if query else None,
        "product": _first(entry, "header"),
        "url": url,
        "about": ", ".join(name for one in about if (name := _first(one, "name"))),
        "at": at,
    }
    return [Row("activities", without_empty(data))]


def _first(entry: dict[str, Any], *names: str) -> str | None:
    return next((text for name in names if (text := one_line(text_of(entry.get(name)), _MAX_TEXT))), None)


def _whole(_file: InputFile) -> str:
    """Read all files as parts of one log."""
    return ""


SPOTIFY = FileFormat("Spotify history", _is_spotify, _read_spotify, "spotify", (_LISTENS,), log_of=_whole)
ACTIVITY = FileFormat(
    "Google activity",
    lambda file: bool(_product(file)) and not _is_youtube(file),
    _read_activity,
    "activity",
    (_ACTIVITIES,),
    # Each product is a connection, so that a grant can show maps and not searches.
    part_of=_product,
    log_of=_whole,
)
YOUTUBE = FileFormat(
    "YouTube history", _is_youtube, _read_youtube, "youtube", (_WATCHED, _SEARCHES), log_of=_whole
)
