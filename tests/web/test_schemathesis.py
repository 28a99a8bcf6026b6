"""Schemathesis reads the OpenAPI document of a real server and tries what it can think of against it.

For every kind of caller nothing is our fault, no status or shape is undeclared, no request that breaks the document is
taken, what was removed is gone, and no token means no answer. One of its checks is left out: a request that
fits the document may still be refused with the declared 400, for which parameters go together, and which
names there are, depends on the owner's data and cannot be written there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Figure
from tests.on_socket import ServedProgram, line, served_program

ROOT = Path(__file__).parents[2]
CONFIG = """
hooks = "tests.web.fuzz_hooks"
[cache]
enabled = false
[dictionaries]
streams = {{ values = ["messages", "attachments"] }}
records = {{ values = ["m1", "m2"] }}
connections = {{ values = ["{connection}"] }}
fields = {{ values = ["id", "subject", "sent_at", "size", "body"] }}
[parameters]
"path.stream" = {{ dictionary = "streams", probability = 0.7 }}
"path.id" = {{ dictionary = "records", probability = 0.7 }}
"query.connection_id" = {{ dictionary = "connections", probability = 0.5 }}
"query.connector_instance_id" = {{ dictionary = "connections", probability = 0.5 }}
"query.field" = {{ dictionary = "fields", probability = 0.7 }}
"query.group_by" = {{ dictionary = "fields", probability = 0.7 }}
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    code: int
    output: str
    cases: int
    statuses: dict[int, int]


@dataclass(frozen=True, slots=True)
class Range:
    served: ServedProgram
    tokens: dict[str, str | None]
    place: Path

    def shoot(self, who: str, location: str, *options: str) -> Verdict:
        """Let schemathesis loose as somebody, and give what it found."""
        token = self.tokens[who]
        header = [] if token is None else ["--header", f"Authorization: Bearer {token}"]
        report = self.place / "report.ndjson"
        done = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "--config-file", str(self.place / "config.toml"), "run",
                location, *header, "--exclude-checks", "positive_data_acceptance",
                "--report", "ndjson", "--report-ndjson-path", str(report), *options,
            ],
            cwd=self.place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        cases, statuses = _answers(report)
        return Verdict(done.returncode, done.stdout + done.stderr, cases, statuses)


def _answers(report: Path) -> tuple[int, dict[int, int]]:
    """Count what was sent and which statuses came back."""
    statuses: dict[int, int] = {}
    for text in report.read_text(encoding="utf-8").splitlines():
        for status in _statuses(json.loads(text)):
            statuses[status] = statuses.get(status, 0) + 1
    return sum(statuses.values()), statuses


def _statuses(value: Any) -> Iterator[int]:
    match value:
        case {"status_code": int(status)}:
            yield status
        case dict():
            for inner in value.values():
                yield from _statuses(inner)
        case list():
            for inner in value:
                yield from _statuses(inner)
        case _:
            return


@pytest.fixture(scope="module")
def shooting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Range]:
    place = tmp_path_factory.mktemp("fuzzed")
    with served_program(place) as served:
        connection = served.connect()
        served.ingest(connection, [line(f"m{n}", subject="a b", size=n) for n in range(20)])
        tokens = {
            "owner": served.owner,
            "client": served.grant("--fields", "messages=subject,size"),
            "none": None,
        }
        (place / "config.toml").write_text(CONFIG.format(connection=connection), encoding="utf-8")
        yield Range(served, tokens, place)


EXPECTED = {"owner": {200, 201, 204, 400, 404}, "client": {200, 400, 403}, "none": {401}}


def check(shooting: Range, who: str, phases: str, examples: int) -> str:
    address = f"{shooting.served.address}/openapi.json"
    found = shooting.shoot(who, address, "--phases", phases, "--max-examples", str(examples))
    assert found.code == 0, found.output[-6000:]
    assert EXPECTED[who] <= set(found.statuses)
    assert found.cases > 100
    assert shooting.served.ask("GET", "/v1/streams", shooting.served.owner).status == 200
    assert "request_failed" not in shooting.served.log.read_text(encoding="utf-8")
    return f"{who}: {found.cases} requests, {dict(sorted(found.statuses.items()))}"


@pytest.mark.parametrize(
    ("who", "phases", "examples"),
    [
        pytest.param("owner", "coverage,fuzzing,stateful", 2, marks=pytest.mark.soak),
        ("client", "coverage,fuzzing,stateful", 2),
        ("none", "fuzzing,stateful", 10),
    ],
)
def test_no_request_gets_an_answer_that_is_not_declared(
    shooting: Range, figure: Figure, who: str, phases: str, examples: int
):
    figure("F26", check(shooting, who, phases, examples))


@pytest.mark.soak
@pytest.mark.parametrize("who", EXPECTED)
def test_no_request_of_many_gets_an_answer_that_is_not_declared(shooting: Range, figure: Figure, who: str):
    figure("F26", check(shooting, who, "coverage,fuzzing,stateful", 100))


def test_a_document_that_keeps_a_status_to_itself_is_found_out(shooting: Range):
    """Otherwise the tests above would prove nothing."""
    document = shooting.served.ask("GET", "/openapi.json").body
    del document["paths"]["/v1/streams"]["get"]["responses"]["401"]
    altered = shooting.place / "altered.json"
    altered.write_text(json.dumps(document), encoding="utf-8")
    found = shooting.shoot(
        "none", str(altered), "--url", shooting.served.address, "--include-path", "/v1/streams", "--phases", "fuzzing", "-n", "1",
    )  # fmt: skip
    assert found.code == 1
    assert "Undocumented status code" in found.output
