"""Move journals into the chain: those of this process while it runs, and those that dead processes left."""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial

from headgate.audit.chain import seal_block, write_head
from headgate.audit.journal import Journal, abandoned_journals, remove_journal, whole_lines
from headgate.errors import LogUnverifiable, StorageFull, StorageReadOnly, StorageUnusable
from headgate.home import Home
from headgate.store.ledger.ledger import Ledger
from headgate.tasks import Supervisor, stop

LOOP, HEAD = "log of disclosures", "head of the log"
PAUSE_SECONDS = 0.2
#: Every commit makes readers drop the pages they cache, so a busy server makes fewer and larger ones.
_BUSY_PAUSE_SECONDS = 1.0
_BUSY_LINES = 200
#: The lines are safe in the file meanwhile, but nothing else shows them.
_MOST_PAUSE_SECONDS = 5.0


class Pump:
    """Keeps moving a journal into the chain, and notes the chain's head in its file."""

    def __init__(
        self, home: Home, journal: Journal, ledger: Ledger, *, key: bytes, supervisor: Supervisor
    ) -> None:
        self._home = home
        self._journal = journal
        self._ledger = ledger
        self._key = key
        self._seal = partial(seal_block, key)
        self._supervisor = supervisor
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Take over what dead processes left behind, then keep up with this process."""
        try:
            await take_over(self._home, self._ledger, self._key)
        except (StorageReadOnly, StorageFull) as trouble:
            self._supervisor.failed(LOOP, trouble)
        self._task = self._supervisor.start(LOOP, self._keep_up, most_seconds=_MOST_PAUSE_SECONDS)

    async def stop(self) -> None:
        """Move everything that waits, and remove the journal; one that cannot be moved is left for the next."""
        await stop(self._task)
        try:
            await self.flush()
        except StorageUnusable as trouble:
            self._supervisor.failed(LOOP, trouble)
            self._journal.leave()
        else:
            await self._journal.close(self._ledger)

    async def flush(self) -> None:
        """Move everything that waits now."""
        async with self._turn:
            # What comes in meanwhile is for the next time: else a busy server would commit without end.
            head, left = None, self._journal.waiting
            while left > 0 and (moved := await self._journal.flush(self._ledger, self._seal)) is not None:
                head, left = moved[0], left - moved[1]
            if head is not None:
                # In a thread: it waits for the disk, and requests must not.
                try:
                    await asyncio.to_thread(write_head, self._home, head)
                except LogUnverifiable as trouble:
                    # The entries are in the chain. The damaged file is evidence, and stays as it is.
                    self._supervisor.failed(HEAD, trouble)
                else:
                    self._supervisor.worked(HEAD)

    async def _keep_up(self) -> float:
        is_busy = self._journal.waiting >= _BUSY_LINES
        await asyncio.shield(self.flush())
        return _BUSY_PAUSE_SECONDS if is_busy else PAUSE_SECONDS


async def take_over(home: Home, ledger: Ledger, key: bytes) -> int:
    """Move into the chain what processes that died left in their journals, and count those journals.

    Raises:
        StorageReadOnly: it cannot be moved; nothing is lost.
    """
    count = 0
    for path, handle in abandoned_journals(home):
        try:
            start = await ledger.taken(path.name)
            lines = whole_lines(path.read_bytes()[start:])
            if lines:
                head = await ledger.append(path.name, start, lines, partial(seal_block, key))
                # A damaged file is evidence, and stays as it is; checking the log reports it.
                with contextlib.suppress(LogUnverifiable):
                    write_head(home, head)
            await remove_journal(path, ledger)
        finally:
            os.close(handle)
        count += 1
    return count
