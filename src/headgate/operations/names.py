"""Names of operations: the canonical spelling, and a parser for the others.

The key is ``(namespace, local name)``. ``github/list_issues``, ``/github/list_issues`` and
``github.list_issues`` are the same operation; a local name may hold dots, a namespace may not.
"""

from __future__ import annotations

from typing import TypeAlias

from headgate.errors import RegistrationInvalid

OperationKey: TypeAlias = tuple[str, str]


def check_namespace(namespace: str) -> str:
    """Return the namespace if it is valid.

    Raises:
        RegistrationInvalid: it is empty, has blanks at its ends, or holds a separator.
    """
    if not namespace or namespace != namespace.strip() or "/" in namespace or "." in namespace:
        raise RegistrationInvalid(
            "A namespace is not empty and holds neither '.' nor '/'.", param="namespace"
        )
    return namespace


def local_name(namespace: str, name: str) -> str:
    """Take the namespace off a name that carries it as a prefix."""
    return name.removeprefix(namespace + "/")


def operation_id(namespace: str, name: str) -> str:
    """Write the canonical id of an operation."""
    return f"{namespace}/{local_name(namespace, name)}"


def parse_operation_id(text: str) -> OperationKey:
    """Read any spelling of an id; text that is no id gives a key that matches nothing."""
    bare = text.removeprefix("/")
    separator = "/" if "/" in bare else "."
    namespace, _, name = bare.partition(separator)
    return namespace, name
