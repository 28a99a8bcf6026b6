"""Small exports of every kind of history."""

from __future__ import annotations

import tempfile
from pathlib import Path

import apsw
import msgspec

CHROME = """CREATE TABLE urls(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR);
CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER, visit_duration INTEGER);
INSERT INTO urls VALUES (1, 'https://www.canal.example/locks?x=1', 'Locks'), (2, 'file:///plan', ''),
  (3, CAST(x'68ff' AS TEXT), 'bad');
INSERT INTO visits VALUES (1, 1, 13416883200000000, 2500000), (2, 2, 13416883200000000, 0),
  (3, 1, 13416883200000000, 2500000), (4, 3, 13416883200000001, 0), (5, 1, 'soon', 0), (6, 9, 1, 0);"""
#: The first visit of the database, and one that cannot be read.
CHROME_TAKEOUT = {
    "Browser History": [
        {
            "title": "Locks",
            "page_transition": "LINK",
            "url": "https://www.canal.example/locks?x=1",
            "client_id": "c",
            "time_usec": 1772409600000000,
        },
        {"title": "No time", "url": "https://canal.example/"},
    ]
}
FIREFOX = """CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR);
CREATE TABLE moz_historyvisits(id INTEGER PRIMARY KEY, place_id INTEGER, visit_date INTEGER);
INSERT INTO moz_places VALUES (1, 'https://weir.example/', NULL);
INSERT INTO moz_historyvisits VALUES (1, 1, 1772352000000000), (2, 1, 9223372036854775807);"""
SAFARI = """CREATE TABLE history_items(id INTEGER PRIMARY KEY, url TEXT);
CREATE TABLE history_visits(id INTEGER PRIMARY KEY, history_item INTEGER, visit_time REAL, title TEXT);
INSERT INTO history_items VALUES (1, 'https://mill.example/a');
INSERT INTO history_visits VALUES (1, 1, 794044800.5, 'Mill');"""
OLD_FIREFOX_PHONE = """CREATE TABLE bookmarks(_id INTEGER PRIMARY KEY, url TEXT);
CREATE TABLE history(_id INTEGER PRIMARY KEY, title TEXT, url TEXT NOT NULL, date INTEGER, guid TEXT NOT NULL);
CREATE TABLE remote_devices(_id INTEGER PRIMARY KEY);
CREATE TABLE visits(_id INTEGER PRIMARY KEY, history_guid TEXT NOT NULL, date INTEGER NOT NULL);
INSERT INTO history VALUES (1, 'Mill', 'https://mill.example/', 1400000000000, 'g');
INSERT INTO visits VALUES (1, 'g', 1400000000000000), (2, 'g', 1400000005000000), (3, 'gone', 1);"""
QUTEBROWSER = """CREATE TABLE History(url TEXT NOT NULL, title TEXT NOT NULL, atime INTEGER NOT NULL, redirect BOOLEAN);
CREATE TABLE CompletionHistory(url TEXT UNIQUE, title TEXT, last_atime INTEGER);
INSERT INTO History VALUES ('https://mill.example/', 'Mill', 1400000000, 0);"""
#: What an entry of Spotify says of what was played.
SPOTIFY_NAMES = (
    *("master_metadata_track_name", "master_metadata_album_artist_name", "spotify_track_uri"),
    *("episode_name", "episode_show_name"),
)
SPOTIFY_OLD = [
    {"endTime": "2026-03-01 08:00", "artistName": "The Sluices", "trackName": "Gate", "msPlayed": 0},
    {"endTime": "2026-03-01 08:00", "artistName": "The Sluices", "trackName": "Gate", "msPlayed": 0},
    {"endTime": "never", "trackName": "x", "msPlayed": 1},
]
SPOTIFY_NEW = [
    {
        "ts": "2026-03-01T08:00:00Z",
        "platform": "linux",
        "ms_played": 61500,
        "conn_country": "DE",
        "ip_addr": "192.0.2.1",
        "master_metadata_track_name": "Gate",
        "master_metadata_album_artist_name": "The Sluices",
        "master_metadata_album_album_name": "Open",
        "spotify_track_uri": "spotify:track:1",
        "episode_name": None,
        "skipped": False,
    },
    {
        "ts": "2026-03-01T09:00:00Z",
        "ms_played": 5,
        "episode_name": "Weirs",
        "episode_show_name": "Water talk",
    },
]
YOUTUBE = [
    {
        "header": "YouTube",
        "title": "Watched How locks work",
        "titleUrl": "https://www.youtube.com/watch?v=abc",
        "subtitles": [{"name": "Canal channel", "url": "https://www.youtube.com/channel/1"}],
        "time": "2026-03-01T08:00:00.123Z",
        "products": ["YouTube"],
    },
    {
        "header": "YouTube",
        "title": "Searched for mill wheel",
        "titleUrl": "https://www.youtube.com/results?search_query=mill+wheel",
        "time": "2026-03-01T08:01:00Z",
    },
]
RECORDS = {
    "locations": [
        {
            "latitudeE7": 481371000,
            "longitudeE7": -115750000,
            "accuracy": 20,
            "source": "WIFI",
            "timestamp": "2026-03-01T08:00:00Z",
        },
        {"latitudeE7": 481371000, "longitudeE7": 115750000, "timestampMs": "1772352000000"},
        {"latitudeE7": 9999999999, "longitudeE7": 1, "timestamp": "2026-03-01T08:00:00Z"},
    ]
}
MONTH = {
    "timelineObjects": [
        {
            "placeVisit": {
                "location": {
                    "latitudeE7": 481371000,
                    "longitudeE7": 115750000,
                    "placeId": "p1",
                    "name": "Mill",
                    "address": "Canal 1",
                },
                "duration": {
                    "startTimestamp": "2026-03-01T08:00:00Z",
                    "endTimestamp": "2026-03-01T09:00:00Z",
                },
            }
        },
        {
            "activitySegment": {
                "startLocation": {"latitudeE7": 10000000, "longitudeE7": 20000000},
                "endLocation": {"latitudeE7": 30000000, "longitudeE7": 40000000},
                "duration": {
                    "startTimestamp": "2026-03-01T09:00:00Z",
                    "endTimestamp": "2026-03-01T09:10:00Z",
                },
                "distance": 900,
                "activityType": "ON_BICYCLE",
            }
        },
        {"other": 1},
    ]
}
PHONE = {
    "semanticSegments": [
        {
            "startTime": "2026-03-01T09:00:00.000+01:00",
            "endTime": "2026-03-01T10:00:00.000+01:00",
            "visit": {
                "topCandidate": {
                    "placeId": "p1",
                    "semanticType": "HOME",
                    "placeLocation": {"latLng": "48.1371°, -11.575°"},
                }
            },
        },
        {
            "startTime": "2026-03-01T09:00:00.000+01:00",
            "endTime": "2026-03-01T10:00:00.000+01:00",
            "timelinePath": [{"point": "48.1371°, 11.575°", "time": "2026-03-01T09:30:00.000+01:00"}],
        },
    ]
}
IPHONE = [
    {
        "startTime": "2026-03-01T09:00:00.000+01:00",
        "endTime": "2026-03-01T10:00:00.000+01:00",
        "activity": {
            "start": "geo:48.1,11.5",
            "end": "geo:48.2,11.6",
            "distanceMeters": "120.5",
            "topCandidate": {"type": "walking"},
        },
        "timelinePath": [{"point": "geo:48.1,11.5", "durationMinutesOffsetFromStartTime": "5"}],
    }
]
HEALTH = b"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!ELEMENT HealthData (Record*)>
<!ATTLIST HealthData locale CDATA #REQUIRED>
]>
<HealthData locale="de_DE"><ExportDate value="2026-03-02 08:00:00 +0100"/>
 <Record type="HKQuantityTypeIdentifierHeartRate" sourceName="Watch" unit="count/min" startDate="2026-03-01 09:00:00 +0100" endDate="2026-03-01 09:00:00 +0100" value="61.5"/>
 <Record type="HKCategoryTypeIdentifierSleepAnalysis" sourceName="Watch" startDate="2026-03-01 01:00:00 +0100" endDate="2026-03-01 02:00:00 +0100" value="HKCategoryValueSleepAnalysisAsleepDeep"><MetadataEntry key="a" value="b"/></Record>
 <Record type="HKQuantityTypeIdentifierStepCount" value="1"/>
 <Correlation type="x"><Record type="HKQuantityTypeIdentifierBloodPressureSystolic" startDate="2026-03-01 09:00:00 +0100" value="1"/></Correlation>
 <Workout workoutActivityType="HKWorkoutActivityTypeRowing" duration="0.5" durationUnit="hr" sourceName="Watch" startDate="2026-03-01 10:00:00 +0100" endDate="2026-03-01 10:30:00 +0100">
  <WorkoutStatistics type="HKQuantityTypeIdentifierDistanceRowing" sum="3.2" unit="km"/>
 </Workout>
</HealthData>"""


def database(script: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made"
        connection = apsw.Connection(str(path))
        connection.execute(script).fetchall()
        connection.close()
        return path.read_bytes()


ACTIVITY = [
    {
        "header": "Maps",
        "title": "Searched for lock caf\u00e9",
        "titleUrl": "https://www.google.com/maps/search/?q=lock+caf%C3%A9&hl=en",
        "time": "2026-03-01T08:00:00.123Z",
        "details": [{"name": "From your device"}],
    },
    {"header": "Maps", "title": "Viewed Weir on YouTube", "time": "2026-03-01T09:00:00Z"},
    {"header": "Maps", "title": "No time"},
]
GPX = b"""<?xml version="1.0"?><gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1">
<metadata><name>Sunday</name><time>2026-03-01T07:00:00Z</time></metadata>
<wpt lat="52.5" lon="13.4"><name>Weir</name><type>Landmark</type></wpt>
<trk><name>Along the canal</name><type>running</type><trkseg>
<trkpt lat="52.50" lon="13.40"><ele>30</ele><time>2026-03-01T08:00:00Z</time></trkpt>
<trkpt lat="52.51" lon="13.40"><time>2026-03-01T08:05:00Z</time></trkpt>
<trkpt lat="200" lon="13.40"><time>2026-03-01T08:06:00Z</time></trkpt></trkseg></trk>
<rte><name>Planned</name><rtept lat="52.5" lon="13.4"/></rte></gpx>"""
FILES = {
    "Default/History": database(CHROME),
    "Chrome/History.json": msgspec.json.encode(CHROME_TAKEOUT),
    "places.sqlite": database(FIREFOX),
    "History.db": database(SAFARI),
    "StreamingHistory0.json": msgspec.json.encode(SPOTIFY_OLD),
    "Streaming_History_Audio_2026.json": msgspec.json.encode(SPOTIFY_NEW),
    "watch-history.json": msgspec.json.encode(YOUTUBE),
    "Records.json": msgspec.json.encode(RECORDS),
    "2026_MARCH.json": msgspec.json.encode(MONTH),
    "Timeline.json": msgspec.json.encode(PHONE),
    "location-history.json": msgspec.json.encode(IPHONE),
    "export.xml": HEALTH,
    "My Activity/Maps/MyActivity.json": msgspec.json.encode(ACTIVITY),
    "canal.gpx": GPX,
}
VARIANTS = {
    "Default/History": "browser",
    "Chrome/History.json": "browser",
    "places.sqlite": "browser",
    "History.db": "browser",
    "StreamingHistory0.json": "spotify",
    "Streaming_History_Audio_2026.json": "spotify",
    "watch-history.json": "youtube",
    "Records.json": "location",
    "2026_MARCH.json": "location",
    "Timeline.json": "location",
    "location-history.json": "location",
    "export.xml": "health",
    "My Activity/Maps/MyActivity.json": "activity",
    "canal.gpx": "gpx",
}
