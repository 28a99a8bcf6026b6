"""What others install from: the bundle, the description for registries, and the container's files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import yaml

from headgate import __version__
from tests.docs.commands import problems
from tests.test_extras import PROJECT

ROOT = Path(__file__).parents[1]


def test_the_bundle_runs_a_command_that_exists_and_has_the_whole_program():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "bundle"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(ROOT / done.stdout.strip()) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        names = set(bundle.namelist())
    assert manifest["version"] == __version__
    assert {"pyproject.toml", "README.md", "LICENSE", manifest["server"]["entry_point"]} <= names
    arguments = manifest["server"]["mcp_config"]["args"]
    assert problems([" ".join(arguments[arguments.index("headgate") :])]) == []
    asked = set(re.findall(r"\$\{user_config\.(\w+)\}", " ".join(arguments)))
    assert asked == manifest["user_config"].keys()


def test_the_description_for_registries_names_this_version_and_a_command_that_exists():
    described = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    (package,) = described["packages"]
    assert {described["version"], package["version"]} == {__version__}
    assert len(described["description"]) <= 100
    assert package["identifier"] == PROJECT["name"]
    # The registry looks for this line in the description of the package, to see that both have one owner.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"mcp-name: (\S+)", readme) == [described["name"]]
    release = (ROOT / "docs" / "how-to" / "release.md").read_text(encoding="utf-8")
    assert f"`{described['name']}`" in release
    words = [one.get("value") or f"{one['name']} NAME" for one in package["packageArguments"]]
    assert problems([f"headgate {' '.join(words)}"]) == []


def test_the_container_runs_a_command_that_exists_from_files_that_exist():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    for line in lines:
        if line.startswith("COPY "):
            assert all((ROOT / name).exists() for name in line.split()[1:-1]), line
    (command,) = (json.loads(line.removeprefix("CMD ")) for line in lines if line.startswith("CMD "))
    assert problems([" ".join(command)]) == []
    (service,) = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"].values()
    (port,) = service["ports"]
    assert port.startswith("127.0.0.1:")
    assert service["volumes"][0].split(":")[1] in (ROOT / "Dockerfile").read_text(encoding="utf-8")
