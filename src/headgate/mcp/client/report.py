"""What became of an import: its tools, what is blocked, and how a listing differs from what was approved. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.mcp.client.pins import JudgedTools, ToolChange

if TYPE_CHECKING:
    # Only for annotations: an import uses this module at run time.
    from headgate.mcp.client.from_mcp import ImportedOperations


@dataclass(frozen=True, slots=True)
class Refreshed:
    """How a server's tools differ from the approved ones; no change takes effect until it is approved."""

    #: Tools that were not there, waiting for approval.
    added: tuple[str, ...]
    removed: tuple[str, ...]
    #: Tools whose definition changed, waiting for approval.
    changed: tuple[ToolChange, ...]

    @classmethod
    def of(cls, judged: JudgedTools) -> Refreshed:
        """Sort the differences of a listing."""
        blocked = judged.blocked.values()
        added = sorted(change.tool for change in blocked if change.grade in _ADDED)
        removed = sorted(change.tool for change in judged.vanished)
        return cls(tuple(added), tuple(removed), tuple(c for c in blocked if c.grade not in _ADDED))


_ADDED = frozenset({"new", "renamed"})


def import_report(imported: ImportedOperations, judged: JudgedTools) -> dict[str, Any]:
    """Report what was imported, from which server, and what waits for approval; JSON without secrets."""
    client, first = imported.client, imported.client.first
    info = None if first is None else first.server_info
    return {
        "namespace": imported.name,
        "endpoint": client.endpoint.public,
        "protocolVersion": client.era.version,
        "serverInfo": None if info is None else {"name": info.name, "version": info.version},
        "stale": imported.stale,
        "watching": first is not None and first.is_watching,
        "tools": [
            {
                "tool": name,
                "operation": registration.id,
                "digest": registration.meta["mcp"]["digest"],
                "outputKind": str(registration.output_kind),
                "blocked": name in judged.blocked,
                "notes": [
                    *judged.listing.tools[name].notes,
                    *(finding.text for finding in judged.listing.findings.get(name, ())),
                ],
            }
            for registration in imported
            for name in [registration.meta["mcp"]["tool"]]
        ],
        "skipped": [{"tool": s.name, "code": s.code, "reason": s.reason} for s in imported.skipped],
        "blocked": [change.to_dict() for change in judged.blocked.values()],
        "vanished": [change.tool for change in judged.vanished],
    }
