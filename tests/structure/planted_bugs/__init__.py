"""One planted bug, or several, for each acceptance row, by chapter; and those that faults and attacks bring out."""

from __future__ import annotations

from tests.structure.planted_bugs import (
    attacks,
    console,
    counting,
    edges,
    entrypoint,
    envelopes,
    faults,
    files,
    formats,
    hosts,
    identity,
    imports,
    ladder,
    loops,
    origins,
    parsing,
    promises,
    reads,
    search,
    servers,
    store_faults,
    words,
)

BUGS = (
    *imports.BUGS,
    *search.BUGS,
    *entrypoint.BUGS,
    *reads.BUGS,
    *ladder.BUGS,
    *envelopes.BUGS,
    *faults.BUGS,
    *files.BUGS,
    *formats.BUGS,
    *attacks.BUGS,
    *console.BUGS,
    *counting.BUGS,
    *servers.BUGS,
    *promises.BUGS,
    *parsing.BUGS,
    *store_faults.BUGS,
    *loops.BUGS,
    *origins.BUGS,
    *edges.BUGS,
    *identity.BUGS,
    *hosts.BUGS,
    *words.BUGS,
)
#: The rows without one: S4-10 is about which tests there are, and not about code.
WITHOUT_BUG = frozenset({"S4-10"})
