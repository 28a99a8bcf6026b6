"""The page on calendars: its commands on accounts work with a real server, and it names every setting."""

import json
import re
import shlex
from pathlib import Path

from headgate.sources.calendar.account import CalendarAccount
from tests.on_socket import headgate
from tests.sources.calendar.caldav import PASSWORD, caldav_server
from tests.sources.calendar.test_calendar_account import feed, served_files

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "import-calendar.md").read_text(encoding="utf-8")


def test_the_commands_on_accounts_fetch_and_a_second_time_add_nothing(tmp_path: Path):
    _, block = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "dav").mkdir()
    with caldav_server(tmp_path / "dav") as server, served_files() as files:
        server.make_calendar("work")
        server.put("work", "one")
        files.answers["/team.ics"] = feed("a", "b")
        real = block.replace("https://dav.example", server.url).replace("https://calendar.example", files.url)
        *adding, sync = (shlex.split(line)[1:] for line in real.splitlines())
        secret = {"CALENDAR_PASSWORD": PASSWORD}
        for words in adding:
            added = headgate(tmp_path, *words, **secret)
            assert added.code == 0, added.err
        counts = []
        for _ in range(2):
            done = headgate(tmp_path, *sync, "--json", **secret)
            assert done.code == 0, done.err
            counts.append(sorted(one["streams"]["events"]["added"] for one in json.loads(done.out)))
    assert counts == [[1, 2], [0, 0]]


def test_the_page_names_the_settings_that_an_owner_must_know():
    text = PAGE.partition("## From an address")[2].partition("\n## ")[0]
    assert {name for name in CalendarAccount.settings if f"{name}=" in text} >= {
        "url",
        "user",
        "secret",
        "whole",
    }
