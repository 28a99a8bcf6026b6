"""What all reads of a home share: its store, its catalog, its keys and its log."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headgate.audit.disclose import Discloser
from headgate.model.declaration import SourceDeclaration
from headgate.model.grant import Access
from headgate.model.ids import ConnectorKey
from headgate.model.sealed import Sealer
from headgate.policy.allowance import Allowance, SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.policy.cursors import Seals
from headgate.store.protocol import Store

MICROSECONDS = 1_000_000
_REMEMBERED = 512


@dataclass(slots=True)
class _Known:
    """What was last seen of the catalog, and the allowances worked out from it."""

    declarations: Mapping[ConnectorKey, SourceDeclaration] | None = None
    catalog: SourceCatalog = field(default_factory=lambda: SourceCatalog({}, {}))
    allowances: OrderedDict[tuple[str, ...], Allowance] = field(
        default_factory=OrderedDict[tuple[str, ...], Allowance]
    )
    #: The same by the very object that was asked with.
    admitted: dict[int, tuple[Access, Allowance]] = field(default_factory=dict[int, tuple[Access, Allowance]])


class ReadServices:
    """One home, open for reading."""

    __slots__ = ("_known", "clock", "discloser", "rules", "sealer", "store")

    def __init__(
        self, store: Store, *, sealer: Sealer, discloser: Discloser, clock: Callable[[], int], rules: Rules
    ) -> None:
        self.store = store
        self.sealer = sealer
        self.discloser = discloser
        #: Gives the time in microseconds since 1970.
        self.clock = clock
        self.rules = rules
        self._known = _Known()

    def seals(self) -> Seals:
        """Give what seals and opens cursors now."""
        return Seals(self.sealer, self.clock() // MICROSECONDS)

    async def catalog(self) -> SourceCatalog:
        """Give what is declared and connected; the same value as long as nothing has changed."""
        declarations = await self.store.declarations()
        # A store gives the same mapping as long as nothing is declared, connected or renamed.
        if self._known.declarations is not declarations:
            connections = {one.id: one for one in await self.store.connections()}
            self._known = _Known(declarations, SourceCatalog(dict(declarations), connections))
        return self._known.catalog

    def allowance_of_admitted(self, access: Access) -> Allowance | None:
        """Remember what an access reaches that admission has given out just now, without a look at the catalog.

        Admission gives out the same object only as long as nothing at all was written, so what was worked out
        for it still holds.
        """
        known = self._known.admitted.get(id(access))
        return known[1] if known is not None and known[0] is access else None

    async def allowance(self, access: Access) -> Allowance:
        """Work out what an access reaches, or remember it: grants never change, and the catalog seldom."""
        catalog = await self.catalog()
        remembered = self._known.allowances
        key = (access.token_kind.value, access.subject_id, *access.grant_ids)
        found = remembered.get(key)
        if found is None or (found.access is not access and found.access != access):
            found = remembered[key] = allow(access, catalog, self.rules)
            if len(remembered) > _REMEMBERED:
                remembered.popitem(last=False)
        if len(self._known.admitted) >= _REMEMBERED:
            self._known.admitted.clear()
        self._known.admitted[id(access)] = access, found
        return found
