"""Work on what a server sent, beside the event loop.

Threads share one interpreter, so this keeps the loop free only because no single step of the work is long: the
limits bound every parse, compilation and check. The threads are few and used for nothing else, so that a server that
makes work delays at most the answers of other servers. Work of many steps pauses between them: see ``let_loop_run``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from headgate.errors import UpstreamTimeout

_P = ParamSpec("_P")
_T = TypeVar("_T")
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="headgate-upstream")
_PAUSE_SECONDS = 0.0001


async def off_loop(deadline: float, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread, and wait for it until a time on the loop's clock.

    Raises:
        UpstreamTimeout: it was not done in time; what it returns later is dropped.
    """
    running = asyncio.get_running_loop().run_in_executor(_THREADS, lambda: work(*args, **kwargs))
    try:
        async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
            return await running
    except TimeoutError:
        raise UpstreamTimeout("The answer could not be read in time.") from None


def let_loop_run() -> None:
    """Pause in a thread, between two steps of long work, for long enough that the loop can go on.

    Compiling a schema gives the interpreter up for a moment and takes it back before the loop has woken. Each such
    moment starts the loop's wait anew, so without pauses the loop waits until the work is done.
    """
    time.sleep(_PAUSE_SECONDS)
