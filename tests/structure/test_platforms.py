"""The program needs nothing that only one operating system has, outside the modules that know the others' way."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "headgate"
#: They test for the system before they use such a name.
AWARE = {"memory.py", "system.py", "workers.py"}
MODULES = {"fcntl", "grp", "msvcrt", "posix", "pwd", "resource", "termios", "tty"}
#: What `os` lacks on Windows or on macOS.
NAMES = {
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "chown", "fchmod", "fchown", "fork", "getegid", "geteuid"),
    *("getgid", "getloadavg", "getuid", "mkfifo", "posix_fadvise", "posix_fallocate", "pread", "pwrite"),
    *("sched_getaffinity", "sendfile", "statvfs", "sysconf", "uname", "wait", "waitpid"),
}


def uses(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in NAMES:
                found.add(f"os.{name}")
            case ast.Import(names=names):
                found |= {one.name for one in names} & MODULES
            case ast.ImportFrom(module=module, names=names):
                found |= {str(module)} & MODULES
                found |= {f"os.{one.name}" for one in names if module == "os" and one.name in NAMES}
            case _:
                pass
    return found


def test_no_other_module_uses_what_one_system_lacks():
    modules = [path for path in SOURCE.rglob("*.py") if str(path.relative_to(SOURCE)) not in AWARE]
    found = {
        str(path.relative_to(SOURCE)): names
        for path in modules
        if (names := uses(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not found


def test_the_list_has_the_names_that_the_aware_modules_use():
    found = set().union(*(uses(ast.parse((SOURCE / name).read_text(encoding="utf-8"))) for name in AWARE))
    assert {"fcntl", "resource", "msvcrt", "os.fork", "os.pread", "os.posix_fallocate"} <= found


@pytest.mark.soak
@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_the_types_hold_on_other_systems(system: str):
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonplatform", system],
        cwd=ROOT,
        env={
            **os.environ,
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
            "PYRIGHT_PYTHON_CACHE_DIR": str(ROOT / ".cache" / "pyright"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
