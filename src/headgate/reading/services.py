"""What all reads of a home share: its store, its catalog, its keys and its log."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from headgate.audit.budget import DailyBudgets
from headgate.audit.disclose import Discloser
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import GrantId, SubjectId
from headgate.model.sealed import Sealer
from headgate.policy.allowance import SourceCatalog, allow
from headgate.policy.capability import Rules
from headgate.policy.cursors import Seals
from headgate.reading.memo import DecisionMemo
from headgate.reading.turns import FairTurns

if TYPE_CHECKING:
    from headgate.store.relational.store import Store

MICROSECONDS = 1_000_000
_MOST_ACCESSES = 512
_AccessKey = tuple[TokenKind, SubjectId, tuple[GrantId, ...]]


@dataclass(frozen=True, slots=True)
class _CatalogMemo:
    """The catalog at one version, and the decisions that were made under it."""

    #: The store's number of the catalog.
    version: int | None = None
    #: The version of the home's file at which the catalog was last seen to be current.
    epoch: int | None = None
    catalog: SourceCatalog = field(default_factory=lambda: SourceCatalog({}, {}))
    decisions: OrderedDict[_AccessKey, DecisionMemo] = field(
        default_factory=OrderedDict[_AccessKey, DecisionMemo]
    )


class ReadServices:
    """One home, open for reading."""

    __slots__ = (
        "_memo",
        "budgets",
        "clock",
        "computations",
        "discloser",
        "logs_queries",
        "rules",
        "sealer",
        "searches",
        "store",
    )

    def __init__(
        self,
        store: Store,
        *,
        sealer: Sealer,
        discloser: Discloser,
        budgets: DailyBudgets,
        clock: Callable[[], int],
        rules: Rules,
        logs_queries: bool = False,
    ) -> None:
        self.store = store
        self.sealer = sealer
        self.discloser = discloser
        self.budgets = budgets
        #: Gives the time in microseconds since 1970.
        self.clock = clock
        self.rules = rules
        #: Whether the log holds the words of searches, which the owner decides.
        self.logs_queries = logs_queries
        #: The store has a thread for each of these.
        self.searches, self.computations = FairTurns(), FairTurns()
        self._memo = _CatalogMemo()

    def seals(self) -> Seals:
        """Make what seals and opens cursors at this time."""
        return Seals(self.sealer, self.clock() // MICROSECONDS)

    async def catalog(self) -> SourceCatalog:
        """Read what is declared and connected now."""
        return (await self._current(None)).catalog

    async def decisions(self, access: Access) -> DecisionMemo:
        """Work out what an access may read, or take it from the memo.

        As long as the access has the memo's epoch, nothing was written since the catalog was read, and it
        is not looked at again.
        """
        memo = self._memo
        if access.epoch is None or access.epoch != memo.epoch:
            memo = await self._current(access.epoch)
        key = (access.token_kind, access.subject_id, access.grant_ids)
        known = memo.decisions.get(key)
        if known is None or not _is_same(known.allowance.access, access):
            known = memo.decisions[key] = DecisionMemo(allow(access, memo.catalog, self.rules))
            if len(memo.decisions) > _MOST_ACCESSES:
                memo.decisions.popitem(last=False)
        return known

    async def _current(self, epoch: int | None) -> _CatalogMemo:
        """Bring the memo up to date. The epoch was read before, so what is read now is not older than it."""
        version = await self.store.catalog_version()
        memo = self._memo
        if memo.version == version:
            # The decisions stay: what was written did not touch the catalog.
            memo = replace(memo, epoch=epoch)
        else:
            declarations = dict(await self.store.declarations())
            connections = {one.id: one for one in await self.store.connections()}
            catalog = SourceCatalog(declarations, connections, await self.store.declared_versions())
            memo = _CatalogMemo(version, epoch, catalog)
        self._memo = memo
        return memo


def _is_same(known: Access, access: Access) -> bool:
    # Admission returns one object until something is written, and comparing it with itself takes a while.
    return known is access or known == access
