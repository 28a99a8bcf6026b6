"""``headgate doctor``: find what keeps agents from connecting."""

from __future__ import annotations

import dataclasses
import json

import typer

from headgate.cli.mcp import cache_root_of
from headgate.cli.terminal import AsJson, State, echo, settings_of
from headgate.doctor.judging import Finding
from headgate.doctor.probing import Examined, examine
from headgate.wiring import now, server_address

_MARKS = {"good": "ok", "warning": "note", "problem": "FAULT"}


def doctor(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Find what keeps agents from connecting, and how to fix it.

    It checks files, tokens, the clock, the tools and the metadata that agents see. It ends with 1 on a fault.
    """
    state: State = context.obj
    settings = settings_of(context).settings
    examined = Examined(settings, server_address(settings), cache_root_of(state.environment), now())
    found = list(examine(examined))
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    else:
        for one in found:
            echo(context, _line(one))
    if any(one.level == "problem" for one in found):
        raise typer.Exit(1)


def _line(finding: Finding) -> str:
    advice = f"\n       {finding.advice}" if finding.advice else ""
    return f"{_MARKS[finding.level]:<5}  {finding.text}{advice}"
