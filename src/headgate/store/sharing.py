"""What machines that share a home let each other know, about once a second."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol


class MachineSharing(Protocol):
    """Where the machines of a home meet."""

    @property
    def latest_time(self) -> int:
        """The latest time that a machine has seen, as far as this one knows; every admission brings it up to date."""
        ...

    async def raise_latest_time(self, at: int) -> None:
        """Let every machine know a time, from its next admission on."""
        ...

    async def exchange_uses(
        self, uses: Mapping[bytes, int], watched: Collection[bytes]
    ) -> Mapping[bytes, int]:
        """Add uses of limits to those of other machines; gives for each watched name how often all have used it.

        A name that no machine used for ten minutes starts again from nothing.
        """
        ...

    async def take(self, name: bytes, *, rate: float, burst: float) -> bool:
        """Take one from a bucket that all machines share, filled at a rate a second; False when it holds none."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...
