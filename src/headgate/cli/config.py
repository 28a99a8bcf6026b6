"""``headgate config``: look at the settings."""

from __future__ import annotations

import json
from typing import cast

import typer

from headgate.cli.terminal import AsJson, settings_of
from headgate.settings import ALL_SETTINGS, Resolved

app = typer.Typer(help="Show the settings.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Show the settings."""


@app.command()
def show(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show every setting, its value, and where the value came from."""
    resolved = settings_of(context)
    typer.echo(json.dumps(_document(resolved), indent=2) if as_json else _table(resolved))
    for name in resolved.unknown_variables:
        typer.echo(f"headgate: {name} is set in the environment but is no setting.", err=True)


def _document(resolved: Resolved) -> dict[str, object]:
    return {
        setting.name: {
            "value": _plain(getattr(resolved.settings, setting.name)),
            "origin": resolved.origins[setting.name].kind,
            "place": resolved.origins[setting.name].place or None,
        }
        for setting in ALL_SETTINGS
    }


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(str(one) for one in cast("frozenset[object]", value))
    return value if isinstance(value, int | str) else str(value)


def _shown(value: object) -> str:
    plain = _plain(value)
    return ", ".join(cast("list[str]", plain)) if isinstance(plain, list) else str(plain)


def _table(resolved: Resolved) -> str:
    rows = [
        (setting.name, _shown(getattr(resolved.settings, setting.name)), _whence(resolved, setting.name))
        for setting in ALL_SETTINGS
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {whence}" for name, value, whence in rows)


def _whence(resolved: Resolved, name: str) -> str:
    origin = resolved.origins[name]
    return f"{origin.kind} ({origin.place})" if origin.place else origin.kind
