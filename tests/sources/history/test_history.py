"""Histories: what is read of each kind of export, and of damaged ones."""

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.protocol import Certainty, Recognised
from headgate.sources.registry import HISTORY
from tests.sources.history.exports import (
    CHROME,
    FILES,
    GPX,
    HEALTH,
    OLD_FIREFOX_PHONE,
    QUTEBROWSER,
    SPOTIFY_NAMES,
    SPOTIFY_NEW,
    VARIANTS,
    database,
)
from tests.sources.reading import check_resume, input_file, read_all, rejects_of, rows_of, stored, tree_from


def read_anyway(name, content=None):
    file = input_file(name, FILES[name] if content is None else content)
    number = [form.variant for form in HISTORY.formats].index(VARIANTS[name])
    found = Recognised("history", "x", [file], Certainty.EXPORT, {"format": number}, VARIANTS[name])
    return read_all(HISTORY, found)


def without_id(rows):
    return [{name: value for name, value in row.items() if name != "id"} for row in rows]


def test_every_export_is_recognised_as_its_kind():
    found = HISTORY.detect(tree_from(FILES))
    assert {file.name: one.variant for one in found for file in one.files} == VARIANTS
    other = {
        "a.json": b"[]",
        "b.json": b'{"locations": []}',
        "c.xml": b"<x/>",
        "d.db": database("CREATE TABLE x(y)"),
    }
    assert HISTORY.detect(tree_from(other)) == []


def test_visits_of_chrome_are_read():
    items = read_anyway("Default/History")
    first, second, again, bad = rows_of(items)
    assert without_id([first]) == [
        {
            "title": "Locks",
            "url": "https://www.canal.example/locks?x=1",
            "site": "canal.example",
            "visited_at": "2026-03-02T00:00:00Z",
            "seconds": 2.5,
            "browser": "chrome",
        }
    ]
    assert (second["title"], second.get("site")) == ("file:///plan", None)
    assert bad["url"] == "hÿ"
    assert len({first["id"], second["id"], again["id"], bad["id"]}) == 4
    assert [reject.place for reject in rejects_of(items)] == ["Default/History, visit 5"]


def test_a_visit_of_a_takeout_is_the_same_as_in_the_database_of_the_browser():
    items = read_anyway("Chrome/History.json")
    (visit,) = rows_of(items)
    stored_by_the_browser = rows_of(read_anyway("Default/History"))[0]
    assert {**visit, "seconds": 2.5} == stored_by_the_browser
    assert [reject.place for reject in rejects_of(items)] == ["Chrome/History.json, entry 2"]


def test_visits_of_firefox_and_safari_are_read():
    (firefox,) = rows_of(read_anyway("places.sqlite"))
    assert (firefox["visited_at"], firefox["site"], firefox["title"]) == (
        "2026-03-01T08:00:00Z",
        "weir.example",
        "https://weir.example/",
    )
    (safari,) = rows_of(read_anyway("History.db"))
    assert (safari["visited_at"], safari["title"], safari["browser"]) == (
        "2026-03-01T08:00:00.500000Z",
        "Mill",
        "safari",
    )


@pytest.mark.parametrize(
    ("tables", "browser", "visited_at"),
    [
        (CHROME.replace(", visit_duration INTEGER", "").replace("00, 2500000)", "00)").replace(", 0)", ")"),
         "chrome", "2026-03-02T00:00:00Z"),
        (OLD_FIREFOX_PHONE, "firefox", "2014-05-13T16:53:20Z"),
        (QUTEBROWSER, "qutebrowser", "2014-05-13T16:53:20Z"),
    ],
)  # fmt: skip
def test_histories_of_older_and_rarer_browsers_are_read_under_any_name(tables, browser, visited_at):
    (found,) = HISTORY.detect(tree_from({"copy.sqlite": database(tables)}))
    visit = rows_of(read_all(HISTORY, found))[0]
    assert (visit["browser"], visit["visited_at"], visit.get("seconds")) == (browser, visited_at, None)
    assert visit["title"] == ("Locks" if browser == "chrome" else "Mill")


def test_a_view_in_the_place_of_a_table_is_never_run():
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'u' AS url, 't' AS title FROM n"
    hostile = database(f"{CHROME} DROP TABLE urls; CREATE VIEW urls AS {endless};")
    (reject,) = rejects_of(read_anyway("Default/History", hostile))
    assert reject.reason == "It is no history of a browser that is known here."


def test_a_later_copy_of_a_history_adds_only_what_is_new():
    later = (
        CHROME + "DELETE FROM visits WHERE id = 2; INSERT INTO visits VALUES (7, 1, 13416883300000000, 0);"
    )
    both = stored(read_anyway("Default/History"), read_anyway("Default/History", database(later)))
    assert len(both) == 5


def test_listens_are_read_and_equal_ones_both_stay():
    old = read_anyway("StreamingHistory0.json")
    first, second = rows_of(old)
    assert first["id"] != second["id"]
    assert without_id([first]) == without_id([second])
    assert len(rejects_of(old)) == 1
    song, episode = rows_of(read_anyway("Streaming_History_Audio_2026.json"))
    assert without_id([song]) == [
        {
            "title": "Gate",
            "artist": "The Sluices",
            "album": "Open",
            "kind": "song",
            "played_at": "2026-03-01T08:00:00Z",
            "seconds": 61.5,
            "is_skipped": False,
            "platform": "linux",
            "country": "DE",
            "uri": "spotify:track:1",
        }
    ]
    assert (episode["title"], episode["artist"], episode["kind"]) == ("Weirs", "Water talk", "episode")


def test_plays_without_any_name_are_no_fault_of_the_file():
    nameless = {**SPOTIFY_NEW[0], **dict.fromkeys(SPOTIFY_NAMES)}
    items = read_anyway("Streaming_History_Audio_2026.json", msgspec.json.encode([nameless, *SPOTIFY_NEW]))
    assert (len(rows_of(items)), rejects_of(items)) == (2, [])
    untimed = msgspec.json.encode([{**nameless, "ts": None}])
    assert len(rejects_of(read_anyway("Streaming_History_Audio_2026.json", untimed))) == 1


def test_sleep_and_stays_have_the_clock_of_the_place():
    sleep = read_anyway("export.xml", HEALTH.replace(b"+0100", b"+0900"))
    assert {row["started_at"][-6:] for row in rows_of(sleep, "measurements")} == {"+09:00"}
    stay = {
        "startTime": "2026-03-01T23:05:00.000+09:00",
        "endTime": "2026-03-02T07:05:00.000+09:00",
        "visit": {"topCandidate": {"semanticType": "UNKNOWN", "placeLocation": {"latLng": "35.1°, 139.1°"}}},
    }
    items = read_anyway("Timeline.json", msgspec.json.encode({"semanticSegments": [stay]}))
    (place,) = rows_of(items, "places")
    assert (place["started_at"], place["ended_at"]) == (
        "2026-03-01T23:05:00+09:00",
        "2026-03-02T07:05:00+09:00",
    )
    assert (place["name"], place.get("kind")) == ("Place", None)
    in_utc = msgspec.json.encode(
        {
            "semanticSegments": [
                {**stay, "startTime": "2026-03-01T14:05:00Z", "endTime": "2026-03-01T22:05:00Z"}
            ]
        }
    )
    assert rows_of(read_anyway("Timeline.json", in_utc), "places")[0]["id"] == place["id"]


def test_videos_and_searches_are_read():
    items = read_anyway("watch-history.json")
    assert without_id(rows_of(items, "watched_videos")) == [
        {
            "title": "How locks work",
            "channel": "Canal channel",
            "url": "https://www.youtube.com/watch?v=abc",
            "watched_at": "2026-03-01T08:00:00.123000Z",
            "product": "YouTube",
        }
    ]
    assert [row["query"] for row in rows_of(items, "searches")] == ["mill wheel"]


def test_positions_places_and_trips_of_every_shape_are_read():
    records = read_anyway("Records.json")
    assert [(row["at"], row["latitude"], row["longitude"]) for row in rows_of(records)] == [
        ("2026-03-01T08:00:00Z", 48.1371, -11.575),
        ("2026-03-01T08:00:00Z", 48.1371, 11.575),
    ]
    assert len(rejects_of(records)) == 1
    month = read_anyway("2026_MARCH.json")
    (stay,), (trip,) = rows_of(month, "places"), rows_of(month, "trips")
    assert (stay["name"], stay["address"], stay["ended_at"]) == ("Mill", "Canal 1", "2026-03-01T09:00:00Z")
    assert (trip["kind"], trip["metres"], trip["end_longitude"]) == ("on bicycle", 900.0, 4.0)
    phone = read_anyway("Timeline.json")
    (stay,), (position,) = rows_of(phone, "places"), rows_of(phone, "positions")
    assert (stay["name"], stay["longitude"], position["at"]) == ("HOME", -11.575, "2026-03-01T08:30:00Z")
    iphone = read_anyway("location-history.json")
    (trip,), (position,) = rows_of(iphone, "trips"), rows_of(iphone, "positions")
    assert (trip["metres"], position["at"]) == (120.5, "2026-03-01T08:05:00Z")


def test_activity_is_read_and_each_product_is_a_connection_of_its_own():
    search = msgspec.json.encode(
        [{"header": "Search", "title": "Searched for YouTube", "time": "2026-03-01T08:00:00Z"}]
    )
    maps = FILES["My Activity/Maps/MyActivity.json"]
    found = HISTORY.detect(tree_from({"a/Maps/MyActivity.json": maps, "a/Search/MyActivity.json": search}))
    assert {one.title: [file.name for file in one.files] for one in found} == {
        "Google activity: Maps": ["a/Maps/MyActivity.json"],
        "Google activity: Search": ["a/Search/MyActivity.json"],
    }
    items = read_all(HISTORY, found[0])
    first, second = rows_of(items)
    assert first == {
        "id": first["id"],
        "title": "Searched for lock café",
        "query": "lock café",
        "product": "Maps",
        "url": "https://www.google.com/maps/search/?q=lock+caf%C3%A9&hl=en",
        "about": "From your device",
        "at": "2026-03-01T08:00:00.123000Z",
    }
    assert (second["title"], "query" in second, len(rejects_of(items))) == (
        "Viewed Weir on YouTube",
        False,
        1,
    )


def test_tracks_and_places_of_gpx_are_read():
    items = read_all(HISTORY, HISTORY.detect(tree_from({"canal.gpx": GPX}))[0])
    (track,) = rows_of(items, "trips")
    assert (track["name"], track["kind"], track["metres"]) == (
        "Along the canal",
        "running",
        pytest.approx(1112, abs=1),
    )
    assert (track["started_at"], track["ended_at"]) == ("2026-03-01T08:00:00Z", "2026-03-01T08:05:00Z")
    assert (track["start_latitude"], track["end_latitude"]) == (52.5, 52.51)
    assert [row["latitude"] for row in rows_of(items, "positions")] == [52.5, 52.51]
    (place,) = rows_of(items, "places")
    assert (place["name"], place["latitude"], place.get("started_at")) == ("Weir", 52.5, None)
    assert [reject.reason for reject in rejects_of(items)] == ["A track or route has no times."]


def test_measurements_and_workouts_are_read():
    items = read_anyway("export.xml")
    assert without_id(rows_of(items, "measurements")) == [
        {
            "kind": "heart rate",
            "value": 61.5,
            "unit": "count/min",
            "started_at": "2026-03-01T09:00:00+01:00",
            "ended_at": "2026-03-01T09:00:00+01:00",
            "origin": "Watch",
        },
        {
            "kind": "sleep analysis",
            "state": "sleep analysis asleep deep",
            "started_at": "2026-03-01T01:00:00+01:00",
            "ended_at": "2026-03-01T02:00:00+01:00",
            "origin": "Watch",
        },
    ]
    (workout,) = rows_of(items, "workouts")
    assert (workout["kind"], workout["minutes"], workout["distance"], workout["distance_unit"]) == (
        "rowing",
        30.0,
        3.2,
        "km",
    )
    assert len(rejects_of(items)) == 1


@pytest.mark.parametrize(
    "declared", [b'<!ENTITY a "aaaaaaaa">', b'<!ENTITY % a SYSTEM "file:///etc/passwd">%a;']
)
def test_a_document_type_with_entities_is_refused(declared):
    items = read_anyway("export.xml", HEALTH.replace(b"<!ELEMENT", declared + b"<!ELEMENT", 1))
    assert rows_of(items) == []
    assert len(rejects_of(items)) == 1


def test_depth_and_endless_texts_cost_no_memory_and_end_with_a_reason():
    deep = b'[{"ms_played":1,"ts":' + b"[" * 200_000
    assert rejects_of(read_anyway("Streaming_History_Audio_2026.json", deep))
    long = b'[{"ms_played":1,"ts":"' + b"x" * 40_000_000
    assert rejects_of(read_anyway("Streaming_History_Audio_2026.json", long))


def test_numbers_and_times_that_no_store_takes_are_left_out():
    entry = {"ts": "9999-12-31T23:59:59-23:00", "ms_played": 1e300, "master_metadata_track_name": "a\0b"}
    later = {**entry, "ts": "2026-03-01T08:00:00Z"}
    items = read_anyway("Streaming_History_Audio_2026.json", msgspec.json.encode([entry, later]))
    (row,) = rows_of(items)
    assert "seconds" not in row
    assert len(rejects_of(items)) == 1


@pytest.mark.parametrize("name", sorted(FILES))
def test_reading_again_and_from_every_mark_gives_the_same(name):
    (found,) = HISTORY.detect(tree_from({name: FILES[name]}))
    check_resume(HISTORY, found)


@given(st.sampled_from(sorted(FILES)), st.data(), st.binary(max_size=10))
@settings(max_examples=150, deadline=None)
def test_cut_and_damaged_exports_are_read_without_an_exception(name, data, bad):
    content = FILES[name]
    at = data.draw(st.integers(0, len(content)))
    read_anyway(name, content[:at])
    read_anyway(name, content[:at] + bad + content[at + len(bad) :])
