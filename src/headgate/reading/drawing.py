"""Draw large answers beside the event loop: nested values of some megabytes take longer than other requests may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from headgate import memory
from headgate.model.record import Record, Tombstone

_T = TypeVar("_T")
_Given = TypeVarTuple("_Given")
#: What is drawn in the event loop: it takes a few milliseconds.
_LOOP_BYTES = 128 * 1024
#: One thread: values take several times as much memory as their JSON.
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="headgate-drawing")


async def draw(size_bytes: int, work: Callable[[*_Given], _T], *given: *_Given) -> _T:
    """Call a function that works on so many bytes of JSON: in a thread, if they are many.

    Raises:
        Overloaded: there is too little memory for it.
    """
    if size_bytes <= _LOOP_BYTES:
        return work(*given)

    def do() -> _T:
        with memory.alone():
            memory.require(size_bytes)
            return work(*given)

    return await asyncio.get_running_loop().run_in_executor(_THREAD, do)


def size_of(entries: Iterable[Record | Tombstone]) -> int:
    """Add up the bytes of records and of those they are expanded with."""
    return sum([_size(one) for one in entries if isinstance(one, Record)])


def _size(record: Record) -> int:
    children = record.expanded.values() if record.expanded else ()
    return len(record.body) + sum([size_of(one.records) for one in children])
