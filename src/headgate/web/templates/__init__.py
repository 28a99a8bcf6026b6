"""The HTML of the server's pages, one file each; what changes is filled in where ``$name`` stands."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(name: str) -> Template:
    """Read a page."""
    return Template(files(__name__).joinpath(name).read_text(encoding="utf-8"))
