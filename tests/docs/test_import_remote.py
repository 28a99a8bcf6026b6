"""The page on remote servers: its mapping and its commands work, and the second time adds nothing."""

import json
import re
import shlex
from pathlib import Path

from tests.on_socket import headgate
from tests.sources.remote.served import Tasks, app_of, on_loopback

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "import-remote.md").read_text(encoding="utf-8")


def test_the_mapping_and_the_commands_of_the_page_work(tmp_path: Path):
    (mapping,) = re.findall(r"^```toml mapping\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    add, sync = (shlex.split(line)[1:] for line in block.splitlines())
    with on_loopback(app_of(Tasks())) as url:
        (tmp_path / "tasks.toml").write_text(mapping.replace("https://tasks.example", url))
        added = headgate(tmp_path, *add)
        assert added.code == 0, added.err
        counts = []
        for _ in range(2):
            done = headgate(tmp_path, *sync, "--json")
            assert done.code == 0, done.err
            (report,) = json.loads(done.out)
            counts.append((report["display_name"], report["streams"]["tasks"]["added"]))
    assert counts == [("My tasks", 3), ("My tasks", 0)]
