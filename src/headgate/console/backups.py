"""A backup as a download: everything the home holds, in one file that only a passphrase opens.

It is always encrypted, because a browser writes it into a folder that other programs read and that may be copied to
other machines. A backup without a passphrase is made on the machine that serves.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import IO

from headgate.console.pages import Frame, OwnerRequest, page
from headgate.console.preferences import settings_page_view
from headgate.console.services import ConsoleServices
from headgate.console.words import moment
from headgate.errors import InvalidRequest
from headgate.model.disclosure import ANSWERED
from headgate.model.maintenance import LEAST_PASSPHRASE_CHARS
from headgate.web.replies import NO_STORE, HttpReply

_PIECE_BYTES = 256 * 1024


async def download(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Make a backup and send it."""
    form = await asked.form()
    passphrase = form.get("passphrase")
    problem = _problem(passphrase, form.get("again"))
    if problem:
        view = await settings_page_view(console, asked, backup_problem=problem)
        return page("settings.html", Frame("Settings", asked, "settings"), view, status=InvalidRequest.status)
    await console.flush_log()
    made = await asyncio.to_thread(console.make_backup, passphrase)
    console.note(asked.request.context, ANSWERED)
    name = f"headgate-{moment(console.clock()):%Y-%m-%d}.age"
    headers = (
        (b"content-type", b"application/octet-stream"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        (b"content-length", b"%d" % os.fstat(made.fileno()).st_size),
        NO_STORE,
    )
    return HttpReply(headers=headers, stream=_pieces(made))


def _problem(passphrase: str, again: str) -> str:
    if len(passphrase) < LEAST_PASSPHRASE_CHARS:
        return f"A passphrase has at least {LEAST_PASSPHRASE_CHARS} characters. Choose several words."
    return "" if passphrase == again else "The two passphrases differ. Type the same one twice."


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
