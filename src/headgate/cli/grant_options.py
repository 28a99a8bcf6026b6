"""The options that say what a grant covers and for how long, for every command that makes one."""

from __future__ import annotations

from typing import Annotated

import typer

Connections = Annotated[
    list[str] | None,
    typer.Option("--connection", help="Only this connection; may be repeated.", metavar="NAME"),
]
Streams = Annotated[
    list[str] | None, typer.Option("--stream", help="Only this stream; may be repeated.", metavar="STREAM")
]
Fields = Annotated[
    list[str] | None, typer.Option("--fields", help="Only these fields of a stream.", metavar="STREAM=A,B")
]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Only records from this time on: a date, 30d or yesterday.", metavar="TIME"),
]
Until = Annotated[str | None, typer.Option("--until", help="Only records before this time.", metavar="TIME")]
Days = Annotated[int, typer.Option("--days", help="Days until the grant expires.")]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Limit the grant to N records a day.", metavar="N/day")
]
Confirmed = Annotated[bool, typer.Option("--yes", help="Do not ask before granting everything.")]
