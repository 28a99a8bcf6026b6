"""Access control of operations: identities, requirements, and the rule that compares them.

Only ``refusal`` decides, and only by the identity. Which identity that is (the caller, or the authority of a
composing operation) is decided by the registry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.errors import RegistrationInvalid


def _no_resources() -> dict[str, frozenset[str]]:
    return {}


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller: its scopes, and the actions it may take on resources.

    A resource is named ``type:id``, ``type:*`` or plain ``type``.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    resources: Mapping[str, frozenset[str]] = field(default_factory=_no_resources)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(self.scopes))
        frozen = {key: frozenset(actions) for key, actions in self.resources.items()}
        object.__setattr__(self, "resources", frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """What an identity must hold; the default requires nothing, not even an identity."""

    #: All of these.
    required_scopes: tuple[str, ...] = ()
    #: At least one of these.
    required_scopes_any: tuple[str, ...] = ()
    resource_type: str | None = None
    resource_action: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "required_scopes", tuple(self.required_scopes))
        object.__setattr__(self, "required_scopes_any", tuple(self.required_scopes_any))
        if self.resource_action is not None and self.resource_type is None:
            raise RegistrationInvalid("A resource action needs a resource type.", param="resource_action")

    @property
    def is_open(self) -> bool:
        """Whether every caller passes, including an anonymous one."""
        return not (self.required_scopes or self.required_scopes_any or self.resource_type)


#: Requires nothing.
OPEN = AccessControl()


def refusal(
    access: AccessControl, identity: Identity | None, *, resource_id: str | None = None
) -> str | None:
    """Return why this identity is refused, or None if it is allowed.

    With a resource id only that resource counts, or the wildcard; without one any of the type does.
    """
    if access.is_open:
        return None
    if identity is None:
        return "Authentication is required."
    for scope in access.required_scopes:
        if scope not in identity.scopes:
            return f"The scope '{scope}' is required."
    if access.required_scopes_any and identity.scopes.isdisjoint(access.required_scopes_any):
        return f"One of the scopes {_listed(access.required_scopes_any)} is required."
    return _resource_refusal(access, identity, resource_id)


def _resource_refusal(access: AccessControl, identity: Identity, resource_id: str | None) -> str | None:
    kind, action = access.resource_type, access.resource_action
    if kind is None:
        return None
    for key, actions in identity.resources.items():
        if _names_resource(key, kind, resource_id) and (action is None or action in actions):
            return None
    wanted = f"'{action}' on '{kind}'" if action else f"'{kind}'"
    return f"Access to {wanted} is required."


def _names_resource(key: str, kind: str, resource_id: str | None) -> bool:
    held_kind, separator, held_id = key.partition(":")
    if held_kind != kind:
        return False
    return resource_id is None or not separator or held_id == "*" or (held_id == resource_id != "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
