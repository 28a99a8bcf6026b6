"""Draw the packages of the program, their sizes and who imports whom, from the code.

`python tools/packages.py` writes docs/explanation/packages.svg; `--check` only says whether it is up to date.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headgate"
DRAWING = ROOT / "docs" / "explanation" / "packages.svg"
#: Sizes are drawn in steps, so that not every change changes the drawing.
_STEP_LINES = 500
_ROW, _TOP, _NAMES, _BARS, _ARCS = 26, 40, 150, 330, 260


@dataclass(frozen=True, slots=True)
class Package:
    """A package or module of the top level: its size, and what it imports of the others."""

    name: str
    modules: int
    lines: int
    imports: frozenset[str]


def layers() -> list[str]:
    """Return the packages from the top layer to the lowest, as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    first = contracts["contracts"][0]["layers"]
    return [name.strip() for layer in first for name in layer.split(":")]


def read_package(name: str) -> Package:
    """Count the lines that are not blank, and find the imports."""
    files = sorted((SOURCE / name).rglob("*.py")) or [SOURCE / f"{name}.py"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    lines = sum(1 for text in texts for line in text.splitlines() if line.strip())
    imported = {top for text in texts for top in _imported(text)}
    return Package(name, len(files), lines, frozenset(imported - {name}))


def _imported(code: str) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "headgate" and len(part) > 1}


def shortest(packages: Mapping[str, Package]) -> dict[str, set[str]]:
    """Leave out an arrow where a longer way of arrows leads to the same package."""
    direct = {name: package.imports & packages.keys() for name, package in packages.items()}

    def reached(name: str) -> set[str]:
        return {further for near in direct[name] for further in (near, *reached(near))}

    return {name: set(near) - {far for one in near for far in reached(one)} for name, near in direct.items()}


def draw(packages: list[Package]) -> str:
    """Draw a bar for each package, the lowest layer at the bottom, and an arc for each import."""
    rows = {package.name: number for number, package in enumerate(packages)}
    longest = max(package.lines for package in packages)
    arrows = shortest({package.name: package for package in packages})
    width, height = _NAMES + _BARS + _ARCS, _TOP + _ROW * len(packages) + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
            (
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
                '<path d="M0 0L8 4L0 8z" fill="#4a6fa5"/></marker></defs>'
            ),
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            '<text x="10" y="22" fill="#555">A package imports those that its arrows lead to, and what these import.</text>',
            *(_bar(package, rows[package.name], longest) for package in packages),
            *(_arc(rows[name], rows[other]) for name in rows for other in sorted(arrows[name])),
            "</svg>",
            "",
        ]
    )


def _bar(package: Package, row: int, longest: int) -> str:
    y = _TOP + row * _ROW
    size = max(round(package.lines / _STEP_LINES) * _STEP_LINES, _STEP_LINES // 5)
    length = max(2, round(size / longest * (_BARS - 150)))
    words = f"about {size:,}" if package.lines >= _STEP_LINES / 2 else "under 250"
    return (
        f'<text x="{_NAMES - 8}" y="{y + 15}" text-anchor="end">{package.name}</text>'
        f'<rect x="{_NAMES}" y="{y + 4}" width="{length}" height="14" fill="#b9cbe4"/>'
        f'<text x="{_NAMES + length + 6}" y="{y + 15}" fill="#777" font-size="11">{words} lines</text>'
    )


def _arc(start: int, end: int) -> str:
    x, top, bottom = _NAMES + _BARS, _TOP + start * _ROW + 12, _TOP + end * _ROW + 10
    bow = min(20 + 11 * (end - start), _ARCS - 20)
    return (
        f'<path d="M{x} {top}C{x + bow} {top} {x + bow} {bottom} {x + 2} {bottom}" '
        'fill="none" stroke="#4a6fa5" stroke-opacity="0.7" marker-end="url(#tip)"/>'
    )


def main() -> int:
    """Write or check the drawing."""
    drawing = draw([read_package(name) for name in layers()])
    if "--check" not in sys.argv:
        DRAWING.write_text(drawing, encoding="utf-8")
        return 0
    if not DRAWING.exists() or DRAWING.read_text(encoding="utf-8") != drawing:
        print("docs/explanation/packages.svg is out of date: run make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
