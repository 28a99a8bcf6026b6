"""The owner's rules on what no client ever sees: made, tried, added, listed and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.errors import InvalidRequest
from headgate.model.hiding import HidingRule, RuleCount, RuleId, RuleKind
from headgate.model.ids import FieldName, StreamName, field_name, stream_name
from headgate.policy.hiding import make_rule

if TYPE_CHECKING:
    from headgate.store.engines.store import Store


@dataclass(frozen=True, slots=True)
class ChosenRule:
    """A rule as the owner typed it; an empty field or stream means every one."""

    kind: RuleKind
    text: str
    field: str = ""
    stream: str = ""


@dataclass(frozen=True, slots=True)
class ActiveRule:
    """A rule, and how many records it hides now."""

    rule: HidingRule
    hidden: int


async def active_rules(store: Store) -> tuple[ActiveRule, ...]:
    """List the rules with what each hides, the oldest first."""
    rules = await store.rules()
    counts: Mapping[RuleId, int] = await store.hidden_counts() if rules else {}
    return tuple(ActiveRule(rule, counts.get(rule.id, 0)) for rule in rules)


async def try_rule(store: Store, chosen: ChosenRule) -> RuleCount:
    """Count what a rule would hide, without adding it."""
    return await store.count_found(await _made(store, chosen, RuleId("rul_try"), 0))


async def add_rule(store: Store, chosen: ChosenRule, rule_id: RuleId, now: int) -> ActiveRule:
    """Add a rule; it is in effect when this returns.

    Raises:
        InvalidRequest: it cannot work.
    """
    rule = await _made(store, chosen, rule_id, now)
    return ActiveRule(rule, await store.add_rule(rule, at=now))


async def _made(store: Store, chosen: ChosenRule, rule_id: RuleId, now: int) -> HidingRule:
    field = field_name(chosen.field) if chosen.field else None
    stream = stream_name(chosen.stream) if chosen.stream else None
    await _refuse_unknown(store, field, stream)
    return make_rule(rule_id, chosen.kind, chosen.text, field=field, stream=stream, now=now)


async def _refuse_unknown(store: Store, field: FieldName | None, stream: StreamName | None) -> None:
    """Refuse a name that nothing declares: a rule with a typing error would hide nothing, and would not be noticed."""
    declared = [
        candidate for source in (await store.declarations()).values() for candidate in source.streams.values()
    ]
    if stream is not None:
        declared = [candidate for candidate in declared if candidate.name == stream]
        if not declared:
            raise InvalidRequest(
                f"There is no stream '{stream}'.", param="stream", hint="See 'headgate store stats'."
            )
    if field is not None and not any(field in candidate.fields for candidate in declared):
        where = "No stream has" if stream is None else f"Stream '{stream}' does not have"
        raise InvalidRequest(
            f"{where} a field '{field}'.",
            param="field",
            hint="Look at a record in the console for the names of its fields.",
        )
